"""Whole rulebooks: what is refused and warned about, and where; as text fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate import rules
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.errors import InputError, Problem
from tidegate.rules.loader import validated

FOLDER = Path(__file__).parent
FILE = "/rulebooks/bank.yaml"


def blocks(file: str) -> list[object]:
    """The cases of a fixture: `=== title`, the YAML text, `---`, the problems, one a line."""
    found = []
    for block in (FOLDER / file).read_text(encoding="utf-8").split("=== ")[1:]:
        title, _, rest = block.partition("\n")
        text, _, said = rest.partition("---\n")
        found.append(pytest.param(text, said.splitlines(), id=title))
    return found


def lines(problems: tuple[Problem, ...]) -> list[str]:
    """Each problem as the fixtures write it."""
    return [
        f"{p.place.line}:{p.place.column} {p.place.path or '.'} | {p.message} | {hint}".rstrip()
        + "".join(f" | {at.line}:{at.column}" for at in p.others)
        for p in problems
        for hint in [" ".join(p.hint.split())]
    ]


def refused(text: str, **options: object) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        rules.load(text, file=FILE, **options)  # type: ignore[arg-type]
    return caught.value.problems


@pytest.mark.parametrize(("text", "said"), blocks("refused.txt"))
def test_refused(text: str, said: list[str]) -> None:
    problems = refused(text, features=all_features(), functions=())
    assert lines(problems) == said
    assert {p.place.file for p in problems} == {FILE}


@pytest.mark.parametrize(("text", "said"), blocks("unbuilt.txt"))
def test_unbuilt(text: str, said: list[str]) -> None:
    problems = refused(text)
    assert lines(problems) == said
    assert {p.code for p in problems} == {"unbuilt"}
    assert rules.load(text, file=FILE, features=all_features())


@pytest.mark.parametrize(("text", "said"), blocks("warnings.txt"))
def test_warnings(text: str, said: list[str]) -> None:
    assert lines(rules.load(text, file=FILE, features=all_features()).warnings) == said


def test_what_is_refused_brings_no_warning_of_its_own(tmp_path: Path) -> None:
    """Neither of what is not built even to be simulated, nor of the key of an unknown event."""
    file = tmp_path / "bank.yaml"
    file.write_text(
        "rulebook: b\nevents:\n  a: {on: insert, table: t}\n  c: {on: inserted, table: t}\n"
        "  d: {signal: {}}\ntables: {t: {path: /t}}\n"
        "rules:\n  r: {on: a ; paied or c, per: k, expire_key_after: 5 min}\n"
        "  s: {on: begin_of s, do: [{signal: d}]}\n  p: {on: 'P(a, [5 ms], a)'}\n"
    )
    with pytest.raises(InputError) as caught:
        validated(file, {})
    assert [p.message for p in caught.value.problems] == [
        "'inserted' is not one of insert, update, delete, change, transaction, commit",
        "unknown event 'paied'",
        "'rule key expire_key_after' is not built yet",
    ]
    told = [w.message for w in caught.value.warnings if "`run`" in w.message]
    assert told == ["a period below 1,000 ms is refused in `run`"]


def test_one_feature_can_be_accepted_alone() -> None:
    text = "rulebook: b\nevents: {a: {signal: {}}}\nrules:\n"
    text += "  q: {on: a, expire_key_after: 5 min}\n  r: {on: a, granularity: set}\n"
    expires, sets = ("'rule key expire_key_after' is", "'rule key granularity' is")
    assert [p.message.partition(" not")[0] for p in refused(text)] == [expires, sets]
    left = refused(text, features=frozenset({"rule key expire_key_after"}))
    assert [p.message.partition(" not")[0] for p in left] == [sets]


def test_s11_the_shortest_period_that_may_run_is_a_setting() -> None:
    text = "rulebook: b\nevents: {a: {signal: {}}}\nrules:\n  r: {on: 'P*(a, [999 ms], a)'}\n"
    assert [p.message for p in refused(text)] == ["a period below 1,000 ms is refused"]
    assert rules.load(text, settings={"period_min_ms": "999"})


def test_a_problem_prints_place_message_path_excerpt_and_hint() -> None:
    text = "rulebook: b\nevents: {withdrawal: {signal: {}}}\n"
    text += "rules:\n  r: {on: withdrawl or withdrawal}\n"
    with pytest.raises(InputError) as caught:
        rules.load(text, file=FILE)
    assert str(caught.value) == (
        "/rulebooks/bank.yaml:4:11: unknown event 'withdrawl' (rules.r.on)\n"
        "    withdrawl or withdrawal\n"
        "    ^^^^^^^^^\n"
        "    did you mean 'withdrawal'?"
    )
    assert caught.value.exit_code == 1


def test_malformed_yaml_has_one_place(tmp_path: Path) -> None:
    file = tmp_path / "bank.yaml"
    file.write_text("rulebook: bank\nrules:\n  r: {on: L: (a)}\n")
    with pytest.raises(InputError) as caught:
        rules.load(file)
    (problem,) = caught.value.problems
    assert (problem.place.file, problem.place.line) == (str(file), 3)
    assert problem.message.startswith("YAML")
    assert problem.hint == 'inside { } quote it: on: "L: (a)"'


@pytest.mark.parametrize("text", ["", "# nothing\n", "- a\n", "bank\n"])
def test_the_top_is_a_mapping(text: str, tmp_path: Path) -> None:
    file = tmp_path / "bank.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match="a rulebook is a mapping"):
        rules.load(file)


def test_several_documents_are_refused() -> None:
    (problem,) = refused("rulebook: a\n---\nrulebook: b\n")
    assert (problem.place.line, problem.message) == (2, "a second document in one file")


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        rules.load(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="cannot be read"):
        rules.load(tmp_path)
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"rulebook: a\n# caf\xe9\n")
    with pytest.raises(InputError) as caught:
        rules.load(file)
    place = caught.value.problems[0].place
    assert (place.line, place.column) == (2, 6)


def test_characters_that_yaml_forbids() -> None:
    (problem,) = refused("rulebook: a\nrules: \x07\n")
    assert (problem.place.line, problem.place.column) == (2, 8)
    assert "U+0007" in problem.message


def test_yaml_bytes_max() -> None:
    text = "rulebook: bank\n# " + "é" * 100
    (problem,) = refused(text, settings={"yaml_bytes_max": "200"})
    assert problem.message == "the text is 217 bytes, more than yaml_bytes_max = 200"
    assert rules.load(text, settings={"yaml_bytes_max": "217"}).name == "bank"


def test_deep_nesting_is_refused_and_does_not_crash() -> None:
    (problem,) = refused("rulebook: bank\nrules: " + "[" * 100_000)
    assert "nested deeper" in problem.message


def test_hostile_scalars() -> None:
    text = (
        "rulebook: bank\nevents: {a: {signal: {}}}\nrules:\n  r: {on: a, priority: " + "9" * 5_000
    )
    (problem,) = refused(text + "}\n")
    assert problem.place.path == "rules.r.priority"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('rulebook: b\nx: "\\UFFFFFFFF"\n', 2, "invalid Unicode character escape"),
        ('rulebook: b\nx: "\\ud800"\n', 2, "invalid Unicode character escape"),
        ("rulebook: b\n# \u2028rules: {}\n", 2, "U+2028 is not allowed"),
        ("rulebook: b\nrules: {}\n\ufeff x: 1\n", 3, "U+FEFF is not allowed"),
        ("rulebook: \ud800\n", 1, "U+D800 is not allowed"),
        ("%YAML 2.0\n---\nrulebook: b\n", 1, "incompatible YAML document"),
        ("rulebook: b\nevents: {c: {cron: '" + "9" * 5_000 + " * * * *'}}\n", 2, "minute '999"),
        ("rulebook: b\nevents: {c: {signal: {x: " + "array<" * 500 + "}}}\n", 2, "nested types"),
        ("rulebook: b\nrules: {r: {on: a within " + "9" * 6_000 + "}}\n", 2, "9...' is longer"),
    ],
)
def test_what_the_yaml_parser_or_python_would_stumble_on(
    text: str, line: int, message: str
) -> None:
    found = [p for p in refused(text) if message in p.message]
    assert [p.place.line for p in found] == [line]


def test_a_rule_in_error_takes_no_other_rules_warnings_along() -> None:
    """Only the bound of what uses it stays unsaid, be it broken, unknown or a cycle."""
    text = """\
rulebook: b
events: {a: {signal: {}}, c: {signal: {}}}
rules:
  broken: {on: a and}
  uses: {on: broken ; c, context: chronicle}
  missing: {on: a ; nobody, context: chronicle}
  turn: {on: turned ; c, context: chronicle, if: count(*) = 0}
  turned: {on: turn ; a, context: chronicle}
  good: {on: a ; c, context: chronicle}
  further: {on: good ; c, context: chronicle}
  absent: {on: broken or (a - c)}
  empty: {on: "A*(a, c, a) within 1 h", if: count(*) = 0}
  late: {on: 'c + [5]'}
"""
    with pytest.raises(InputError) as caught:
        rules.load(text, file=FILE, features=all_features())
    assert [p.code for p in caught.value.problems] == ["expression", "unknown-event", "cycle"]
    assert [(w.place.path, w.code) for w in caught.value.warnings] == [
        ("rules.good.on", "unbounded"),
        ("rules.further.on", "unbounded"),
        ("rules.absent.on", "instant-absence"),
        ("rules.empty.if", "empty-firing"),
        ("rules.late.on", "no-unit"),
    ]


def test_a_remedy_fits_a_screen() -> None:
    query = "SELECT order_id FROM event WHERE amount > 100 AND kind = 'x' AND place = 'here'"
    text = "rulebook: b\ntables: {t: {path: /t}}\nsettings: {bucket_rows: 3}\n"
    text += "events: {a: {signal: {order_id: int}}}\nrules:\n"
    text += f'  r: {{on: a, do: "DELETE FROM t WHERE id IN ({query})"}}\n'
    with pytest.raises(InputError) as caught:
        rules.load(text, file=FILE)
    first, second = (str(p).splitlines()[1:] for p in caught.value.problems)
    assert first == ["    did you mean 'bucket_rows_max'?"]
    assert max(map(len, second)) <= 100
    assert [line.split()[0] for line in second] == ["write:", "USING", "place", "ON", "WHEN"]
    names = [f"event_number_{n}" for n in range(25)]
    text = f"rulebook: b\nevents: {{{': {signal: {}}, '.join(names)}: {{signal: {{}}}}}}\n"
    (problem,) = refused(text + "rules: {r: {on: zzz}}\n")
    assert max(map(len, str(problem).splitlines())) <= 100
    assert all(name in str(problem) for name in names)
