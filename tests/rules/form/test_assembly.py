"""A rulebook of several texts: what it includes, its variables, the defaults of its rules."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tidegate import rules
from tidegate.engine.loop.compiled_rulebook import digests_of
from tidegate.engine.store import KeptRulebook
from tidegate.rules.errors import InputError, Place
from tidegate.rules.eventscript import tree
from tidegate.rules.form.variables import Filled, Variables
from tidegate.rules.model import Context, Rulebook, Severity, TableEvent
from tidegate.rules.yaml.reader import Scalar

MAIN = """\
rulebook: bank
vars: {floor: 100, pair: placed, flag: true}
include: [parts/events.yaml, parts/rules.yaml]
defaults: {severity: warning, labels: {team: x, on_call: y}, context: latest}
tables: {own: {path: "${TIDEGATE_VAR_LAKE}/own"}}
rules:
  r:
    on: ${pair} ; paid within 5 min
    per: id
    labels: {team: z}
    if: amount_of > ${floor}
    enabled: ${flag}
  s: {on: told, context: recent, severity: error}
"""
EVENTS = """\
tables:
  orders: {path: lake/orders, key: [id]}
  far: {path: s3://far/orders}
  other: {path: "${TIDEGATE_VAR_LAKE}/other"}
events:
  placed: {on: insert, table: orders, where: "amount > ${floor}"}
  paid: {on: update, table: orders}
  told: {signal: {n: bigint}}
include: more.yaml
"""
SCRIPT = "scripts: {counting: {file: count.es}}\nvars: {unused: 1}\nreads: [a.b.c]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "parts").mkdir()
    files = {
        "bank.yaml": MAIN,
        "parts/events.yaml": EVENTS,
        "parts/rules.yaml": "rules: {included: {on: placed}}\n",
        "parts/more.yaml": SCRIPT,
        "parts/count.es": "in {long n;} told out {long n;} counted (told(x) { !> counted(x); })*",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("TIDEGATE_VAR_LAKE", "/lake")
    return tmp_path


def load(folder: Path, **options: Any) -> Rulebook:
    return rules.load(folder / "bank.yaml", **options)


def problems(folder: Path) -> list[str]:
    """As `file:line:column message | hint`."""
    with pytest.raises(InputError) as refused:
        load(folder)
    return [
        f"{p.place}: {p.message} | {p.hint}".replace(f"{folder}/", "")
        for p in refused.value.problems
    ]


def test_what_is_included_is_the_rulebooks_own(folder: Path) -> None:
    book = load(folder)
    paths = {name: table.path for name, table in book.tables.items()}
    assert paths == {
        "own": "/lake/own",
        "orders": str(folder / "parts/lake/orders"),  # relative to its file
        "far": "s3://far/orders",
        "other": "/lake/other",
    }
    assert [*book.rules] == ["r", "s", "included"]
    assert [*book.scripts] == ["counting"]
    assert book.reads == (("a", "b", "c"),)
    assert book.included == ("parts/events.yaml", "parts/more.yaml", "parts/rules.yaml")
    assert book.rules["included"].place.file == str(folder / "parts/rules.yaml")


def test_variables_are_filled_in(folder: Path) -> None:
    book = load(folder)
    placed, rule = book.events["placed"], book.rules["r"]
    assert isinstance(placed, TableEvent)
    assert placed.where == "amount > 100"
    assert rule.pattern.text == "placed ; paid within 5 min"
    assert rule.condition is not None
    assert rule.condition.text == "amount_of > 100"
    assert rule.enabled


def test_variables_are_filled_in_in_scripts_and_their_files(folder: Path) -> None:
    script = (
        "in {long n;} told out {long n;} counted (told(x) { x.n > ${floor} ? !> counted(x); })*"
    )
    (folder / "parts/count.es").write_text(script)
    before = load(folder)
    block = (
        MAIN + "scripts:\n  own:\n    text: |\n      " + script.replace("counted", "seen") + "\n"
    )
    (folder / "bank.yaml").write_text(block)
    found = load(folder)
    assert script_text(found, "own") == script_text(found, "counting") == [100]
    (folder / "bank.yaml").write_text(MAIN.replace("floor: 100", "floor: 200"))
    after = load(folder)
    assert script_text(after, "counting") == [200]
    assert digests_of(after)["counting"] != digests_of(before)["counting"]


def script_text(book: Rulebook, name: str) -> list[Any]:
    """The numbers that a script names."""
    regex = book.scripts[name].program.regex
    return [node.value for node in tree.nodes(regex) if isinstance(node, tree.Literal)]


def test_what_is_wrong_with_a_variable_of_a_script_is_told_where_it_is_written(
    folder: Path,
) -> None:
    text = "in long told\nout long n\ntold(x) { x > ${flor} ? !> n(x); } // ${pair}"
    (folder / "parts/count.es").write_text(text)
    text = text.replace("\n", "\n      ").replace("flor} ?", "floor} ) ?")
    (folder / "bank.yaml").write_text(f"{MAIN}scripts:\n  own:\n    text: |\n      {text}\n")
    assert problems(folder) == [
        "bank.yaml:19:30: ')' cannot stand here | expected ?",
        "parts/count.es:3:15: there is no variable 'flor' | did you mean 'floor'?",
    ]


def test_defaults_are_of_rules_that_do_not_say_otherwise(folder: Path) -> None:
    book = load(folder, added={"put": "{on: placed}"})
    said = {name: (r.about.severity, r.pattern.context) for name, r in book.rules.items()}
    warned = (Severity.WARNING, Context.RESTRICTED)
    assert said == {
        "r": warned,
        "s": (Severity.ERROR, Context.RECENT),
        "included": warned,
        "put": warned,
    }
    assert book.rules["r"].about.labels == {"team": "z", "on_call": "y"}
    assert book.rules["s"].about.labels == {"team": "x", "on_call": "y"}


def test_a_stored_version_is_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = load(folder)
    files = json.loads(json.dumps(dict(book.files)))
    monkeypatch.delenv("TIDEGATE_VAR_LAKE")
    for path in folder.rglob("*.*"):
        path.unlink()
    kept = KeptRulebook(book.text, book.file, files=files).load()
    assert (kept.tables, kept.files) == (book.tables, book.files)
    assert digests_of(kept) == digests_of(book)


def test_errors_stand_in_the_file_that_is_wrong(folder: Path) -> None:
    (folder / "parts/events.yaml").write_text(
        EVENTS.replace("on: update", "on: updat").replace("${floor}", "${flor}")
    )
    (folder / "parts/rules.yaml").write_text("rules:\n  included: {on: plcd}\nsettings: {}\n")
    (folder / "bank.yaml").write_text(MAIN.replace("${pair} ; paid", "${pair} ; piad"))
    assert problems(folder) == [
        "bank.yaml:8:19: unknown event 'piad' | did you mean 'paid'?",
        "parts/events.yaml:6:56: there is no variable 'flor' | did you mean 'floor'?",
        "parts/events.yaml:7:14: 'updat' is not one of insert, update, delete, change, transaction,"
        " commit | did you mean 'update'?",
        "parts/rules.yaml:2:18: unknown event 'plcd' | did you mean 'placed'?",
        "parts/rules.yaml:3:1: an included file has no key 'settings' | it stands in the rulebook"
        " itself",
    ]


def test_a_circle_of_files_is_refused_by_name(folder: Path) -> None:
    (folder / "parts/more.yaml").write_text("include: [../bank.yaml, events.yaml, more.yaml]\n")
    found = [problem for problem in problems(folder) if "circle" in problem]
    assert found == [
        "parts/more.yaml:1:11: a circle of files: bank.yaml includes parts/events.yaml includes"
        " parts/more.yaml includes bank.yaml | leave one of them out",
        "parts/more.yaml:1:25: a circle of files: parts/events.yaml includes parts/more.yaml"
        " includes parts/events.yaml | leave one of them out",
        "parts/more.yaml:1:38: a circle of files: parts/more.yaml includes parts/more.yaml |"
        " leave one of them out",
    ]


def test_a_file_is_included_once_and_a_name_stands_in_one(folder: Path) -> None:
    (folder / "parts/more.yaml").write_text(SCRIPT + "include: rules.yaml\n")
    assert load(folder).included[-1] == "parts/rules.yaml"
    (folder / "parts/rules.yaml").write_text("rules:\n  s: {on: placed}\nvars: {pair: x}\n")
    assert problems(folder) == [
        "parts/rules.yaml:2:3: 's' of rules stands in bank.yaml:13:3, too | rename one of them",
        "parts/rules.yaml:3:8: 'pair' of vars stands in bank.yaml:2:20, too | rename one of them",
    ]


def test_what_cannot_be_included(folder: Path) -> None:
    (folder / "parts/rules.yaml").unlink()
    (folder / "parts/more.yaml").write_text("- a list\n")
    assert problems(folder)[:2] == [
        "bank.yaml:3:30: parts/rules.yaml: there is no such file | ",
        "parts/more.yaml:1:1: an included file is a mapping | begin with: tables: ..",
    ]
    with pytest.raises(InputError, match="a rulebook without a file includes none"):
        rules.load("rulebook: x\ninclude: [a.yaml]\nevents: {a: {signal: {}}}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "events: {a: {on: insert, table: t, where: 'x > ${TIDEGATE_VAR_N}'}}",
            "4:48 ${TIDEGATE_VAR_N}: variables of the environment stand in tables' paths and names"
            " | elsewhere vars: {x: ..}, ${x}",
        ),
        (
            "tables: {u: {path: '/${LAKE}/u'}}",
            "4:22 there is no variable 'LAKE' | write ${TIDEGATE_VAR_LAKE}, or vars: {LAKE: ..}",
        ),
        (
            "tables: {u: {table: 'c.${TIDEGATE_VAR_NONE}'}}",
            "4:24 the variable TIDEGATE_VAR_NONE is not set in the environment |"
            " export TIDEGATE_VAR_NONE=..",
        ),
        ("vars: {a: [1]}", "4:11 expected a value, found a list | "),
        ("vars: {a-b: 1}", "4:8 'a-b' is not a variable | write a_b"),
        ("defaults: {on: a}", "4:12 unknown key 'on' in defaults | "),
        ("defaults: {severity: hgih}", "4:22 'hgih' is not one of info, warning, error, critical"),
        ("include: 7", "4:10 expected a file, found 7"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    head = "rulebook: x\nscripts: {}\nrules: {r: {on: s}}\n"
    if not text.startswith("tables"):
        text += "\ntables: {t: {path: /t}}"
    if not text.startswith("events"):
        text += "\nevents: {s: {signal: {}}}"
    with pytest.raises(InputError) as refused:
        rules.load(head + text)
    shown = [
        f"{p.place.line}:{p.place.column} {p.message} | {p.hint}" for p in refused.value.problems
    ]
    assert any(one.startswith(said) for one in shown), shown


def test_values_cannot_blow_a_rulebook_up() -> None:
    many = " ".join(["${a}"] * 2_000)
    text = f"rulebook: x\nvars: {{a: {'y' * 1_000}}}\nevents: {{s: {{signal: {{}}}}}}\n"
    with pytest.raises(InputError, match="longer than yaml_bytes_max"):
        rules.load(f"{text}rules: {{r: {{on: s, description: '{many}'}}}}\n")


def test_included_files_have_one_bound_together(folder: Path) -> None:
    size = len(MAIN)
    (folder / "parts/more.yaml").write_text(SCRIPT.ljust(size - len(EVENTS) - 40))
    assert load(folder, settings={"yaml_bytes_max": str(size)})
    (folder / "parts/rules.yaml").write_text("rules: {included: {on: placed}}\n".ljust(41))
    with pytest.raises(InputError, match=f"more bytes than yaml_bytes_max = {size} "):
        load(folder, settings={"yaml_bytes_max": str(size)})


@pytest.mark.parametrize("given", ["7", "[[more.yaml]]", "{a: more.yaml}", "' '"])
def test_an_include_of_an_included_file_names_files(folder: Path, given: str) -> None:
    (folder / "parts/more.yaml").write_text(SCRIPT + f"include: {given}\n")
    [said] = problems(folder)
    at = 11 if given.startswith("[") else 10
    expected = "include names files | write include: [tables.yaml]"
    assert said == f"parts/more.yaml:4:{at}: {expected}"


def test_without_variables_a_dollar_doubled_is_text() -> None:
    text = "rulebook: x\n{}events: {{s: {{signal: {{}}}}}}\n"
    rule = "rules: {r: {on: s, if: \"'$${x} ${x}' = '$${TIDEGATE_VAR_X}'\"}}\n"
    found = rules.load(text.format("") + rule).rules["r"].condition
    assert found is not None
    assert found.text == "'$${x} ${x}' = '${TIDEGATE_VAR_X}'"  # else the latter is refused
    found = rules.load(text.format("vars: {x: 1}\n") + rule).rules["r"].condition
    assert found is not None
    assert found.text == "'${x} 1' = '${TIDEGATE_VAR_X}'"


def test_a_dollar_doubled_and_secrets_are_left(folder: Path) -> None:
    text = MAIN.replace("amount_of > ${floor}", "x = '$${floor}'")
    hook = "    do: {webhook: {url: https://x.org, headers: {A: '${TIDEGATE_SECRET_A}'}}}\n"
    (folder / "bank.yaml").write_text(text.replace("    enabled", f"{hook}    enabled"))
    rule = load(folder).rules["r"]
    assert rule.condition is not None
    assert rule.condition.text == "x = '${floor}'"
    [webhook] = rule.reaction.actions
    assert webhook.headers == {"A": "${TIDEGATE_SECRET_A}"}  # type: ignore[union-attr]


def test_places_behind_a_variable_are_exact(folder: Path) -> None:
    (folder / "bank.yaml").write_text(MAIN.replace("within 5 min", "within 5 mim"))
    [said] = problems(folder)
    assert said.startswith("bank.yaml:8:33: unknown unit 'mim'")


def test_places_among_many_variables_are_found_without_a_walk_over_them() -> None:
    text = "a ${x} ${empty}${x}b ${x}"
    values = {"x": "long value", "empty": ""}
    filled = Variables(values, {}, {}, 1_000, []).node(Scalar(Place(), text, '"', text))
    assert isinstance(filled, Filled)
    walked = []

    class Watched(tuple[tuple[int, int, int, int], ...]):
        __slots__ = ()

        def __getitem__(self, index: Any) -> Any:
            walked.append(index)
            return super().__getitem__(index)

        def __reversed__(self) -> Any:
            return (self[i] for i in range(len(self) - 1, -1, -1))

    at = replace(filled, pieces=Watched(filled.pieces)).locator()
    assert filled.text == "a long value long valueb long value"
    columns = [at(offset).column for offset in range(len(filled.text))]
    # All of a value is where its variable begins, of an empty one's end what follows it
    assert columns == [1, 2, *[3] * 10, 7, *[16] * 10, 20, 21, *[22] * 10]
    assert len(walked) <= len(filled.text)


def test_an_included_section_of_another_form_is_refused(folder: Path) -> None:
    (folder / "parts/rules.yaml").write_text("rules: [{on: placed}]\n")
    with pytest.raises(InputError, match="rules has another form in "):
        load(folder)


def test_only_regular_files_are_included(folder: Path) -> None:
    (folder / "parts/rules.yaml").unlink()
    os.mkfifo(folder / "parts/rules.yaml")
    with pytest.raises(InputError, match="is no regular file"):
        load(folder)
