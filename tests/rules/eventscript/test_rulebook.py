"""Event scripts in rulebooks: what they declare, what their inputs are, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate import rules
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.errors import InputError, Problem
from tidegate.rules.loader import validated
from tidegate.rules.model import Rulebook, ScriptEvent, ScriptInput, SignalEvent

FOLDER = Path(__file__).parent
FILE = "/rulebooks/b.yaml"
HEATING = """
in double Temperature
out long warm
(Temperature() { !> warm(1); })*
"""


def load(text: str, file: str = FILE) -> Rulebook:
    return rules.load(text, file=file, features=all_features())


def cases(file: str) -> list[object]:
    """`=== title`, the rulebook, `---`, what is refused, one a line."""
    found: list[object] = []
    for case in (FOLDER / file).read_text(encoding="utf-8").split("=== ")[1:]:
        title, _, rest = case.partition("\n")
        text, _, said = rest.partition("---\n")
        found.append(pytest.param(text, said.splitlines(), id=title))
    return found


def line(problem: Problem) -> str:
    place, hint = problem.place, " ".join(problem.hint.split())
    said = f"{place.line}:{place.column} {place.path or '.'} | {problem.message}"
    return f"{said} | {hint}" if hint else said


@pytest.mark.parametrize(("text", "said"), cases("refused_rulebooks.txt"))
def test_refused(text: str, said: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        load(text)
    assert [line(problem) for problem in caught.value.problems] == said


def test_outputs_and_inputs_are_event_types() -> None:
    book = load("""
rulebook: b
events:
  reading: {signal: {celsius: double, seq: bigint, id: string}}
scripts:
  heating:
    text: |
      in {double celsius; string id;} Temperature group(id), {} tick
      out {double x; time at;} warm, {} cold, long[] list, {long k;}[] deep, object any
      Temperature(t) { !> warm({x: t.celsius, at: now()}); !> cold(); !> list(new long[1]); }
      { !> deep(new {long k;}[1]); !> any(t); } tick()
    in: {Temperature: {event: reading, order_by: [seq, id]}}
    out: {warm: got_warm, $error: fault}
    machine: dfa
    on_error: stop
    expire_key_after: 7 days
    enabled: false
  more:
    text: "in double celsius, time at, long r, {} Cold celsius() at() r() Cold()"
    in: {celsius: {event: reading, value: celsius}, at: {event: got_warm, value: at}, Cold: cold}
rules:
  r: {on: got_warm ; fault, per: id}
  s: {on: tick or cold, do: [{signal: tick}]}
""")
    script = book.scripts["heating"]
    assert script.inputs == {
        "Temperature": ScriptInput("reading", None, ("seq", "id")),
        "tick": ScriptInput("tick"),
    }
    assert script.outputs["warm"] == "got_warm"
    assert script.outputs["$error"] == "fault"
    options = (script.machine, script.on_error, script.expire_key_after_micros, script.enabled)
    assert options == ("dfa", "stop", 7 * 86_400_000_000, False)
    emitted = {e.name: dict(e.fields) for e in book.events.values() if isinstance(e, ScriptEvent)}
    assert emitted == {
        "got_warm": {"id": "string", "x": "double", "at": "timestamp"},
        "cold": {"id": "string"},
        "list": {"id": "string", "value": "array<bigint>"},
        "deep": {"id": "string", "value": "array<struct<k: bigint>>"},
        "any": {"id": "string", "value": "string"},
        "fault": {
            "id": "string",
            "kind": "string",
            "event": "string",
            "message": "string",
            "place": "string",
            "at": "timestamp",
        },
    }
    tick = book.events["tick"]
    assert isinstance(tick, SignalEvent)
    assert tick.fields == {}
    assert book.scripts["more"].inputs == {
        "celsius": ScriptInput("reading", "celsius"),
        "at": ScriptInput("got_warm", "at"),
        "r": ScriptInput("r"),
        "Cold": ScriptInput("cold"),
    }
    assert book.rules["r"].pattern.per == {"got_warm": ("id",), "fault": ("id",)}


def test_a_table_knows_its_columns_itself() -> None:
    book = load("""
rulebook: b
tables: {t: {path: /t}}
events: {row: {on: insert, table: t}, part: {on: insert, table: t, columns: [a]}}
scripts:
  s: {text: "in long row, {long b;} other, long part row() other() part()",
      in: {other: {event: row}}}
""")
    inputs = {name: each.value for name, each in book.scripts["s"].inputs.items()}
    assert inputs == {"row": None, "other": None, "part": "a"}


def test_a_decimal_as_a_double_is_warned_of() -> None:
    book = load("""
rulebook: b
events: {paid: {signal: {amount: "decimal(12,2)"}}}
scripts:
  s: {text: "in double paid, object exact paid() exact()", in: {exact: {event: paid}}}
""")
    assert [warning.code for warning in book.warnings] == ["decimal"]
    assert str(book.warnings[0].place) == f"{FILE}:5:24"


@pytest.mark.parametrize(
    ("event", "of", "warned"),
    [
        ("on: insert, table: t", "{event: row}", ["6:9"]),
        ("on: insert, table: t", "{value: a}", ["6:9"]),
        ("on: insert, table: t", "{event: row, order_by: a}", []),
        ("on: insert, table: t, time: at", "{event: row}", []),
        ("on: transaction, table: t", "{event: row, value: version}", []),
        ("signal: {a: bigint}", "{event: row}", []),
    ],
)
def test_rows_of_one_commit_without_an_order_are_warned_of(
    event: str, of: str, warned: list[str]
) -> None:
    book = load(f"""rulebook: b
tables: {{t: {{path: /t, key: [a]}}}}
events: {{row: {{{event}}}}}
scripts:
  s:
    in: {{row: {of}}}
    text: in long row row()
""")
    found = [each for each in book.warnings if each.code == "order"]
    assert [f"{each.place.line}:{each.place.column}" for each in found] == [
        place.replace("6:9", "6:15") for place in warned
    ]
    assert all("takes them in the order of their values" in each.message for each in found)


@pytest.mark.parametrize(
    ("key", "event", "group", "warned"),
    [
        ("[a]", "", "row.a", False),
        ("[a]", "", "row.b, a", False),
        ("[a, b]", "", "row.a", True),
        ("[a, b]", "", "row.b, row.a", False),
        ("[a]", "", "row.a + 1", True),
        ("[]", "", "row.a", True),
        ("[id]", ", columns: [id as a, v as b]", "row.a", False),
        ("[id]", ", columns: [v as a, id as b]", "row.a", True),
    ],
)
def test_rows_of_one_commit_that_go_to_an_instance_each_are_not_warned_of(
    key: str, event: str, group: str, warned: bool
) -> None:
    book = load(f"""rulebook: b
tables: {{t: {{path: /t{", key: " + key if key != "[]" else ""}}}}}
events: {{row: {{on: insert, table: t{event}}}}}
scripts:
  s:
    expire_key_after: 1 day
    text: "in {{long a; long b;}} row group({group}) row()"
""")
    assert [each.code for each in book.warnings] == ["order"] * warned


def test_a_key_of_the_only_column_is_known_by_its_name() -> None:
    text = """rulebook: b
tables: {t: {path: /t, key: [a]}}
events: {row: {on: insert, table: t}}
scripts: {s: {in: {row: {VALUE}}, expire_key_after: 1 d, text: "in long row group(row) row()"}}
"""
    for value, codes in (("value: a", []), ("value: b", ["order"])):
        assert [each.code for each in load(text.replace("VALUE", value)).warnings] == codes


def test_keys_that_are_kept_for_ever_are_warned_of_once(tmp_path: Path) -> None:
    script = "in long A, long B group(B), {long k;} C group(C.k)\n(A() | B() | C())*"
    text = f'rulebook: b\nscripts:\n  s:\n    text: "{script.replace(chr(10), " ")}"\n'
    (warning,) = load(text).warnings
    assert (warning.code, str(warning.place)) == ("unbounded", f"{FILE}:4:28")
    assert "'s' keeps what it knows of each key for ever" in warning.message
    assert warning.hint.startswith("say expire_key_after: 7 days")
    assert load(text + "    expire_key_after: 7 days\n").warnings == ()
    bare = "rulebook: b\nscripts: {s: {text: 'in long A A()', expire_key_after: 7 d}}\n"
    (warning,) = load(bare).warnings
    assert (warning.code, str(warning.place)) == ("no-key", f"{FILE}:2:56")
    path = tmp_path / "s.es"
    path.write_text(script)
    (warning,) = rules.load(path).warnings
    assert warning.hint.startswith("name the file in a rulebook, and there say expire_key_after")


def test_an_input_that_only_the_text_names_is_warned_of_there() -> None:
    book = load("""rulebook: b
tables: {t: {path: /t}}
events: {row: {on: insert, table: t}}
scripts:
  s: {text: in long row row()}
""")
    assert [str(each.place) for each in book.warnings] == [f"{FILE}:5:21"]


def test_a_script_has_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "heating.es").write_text(HEATING)
    file = tmp_path / "book.yaml"
    file.write_text("rulebook: b\nscripts: {heating: {file: scripts/heating.es}}\n")
    book = rules.load(file, features=all_features())
    assert book.scripts["heating"].program.text == HEATING
    (tmp_path / "scripts" / "heating.es").write_text(HEATING.replace("Temperature()", "Temp()"))
    with pytest.raises(InputError) as caught:
        rules.load(file, features=all_features())
    assert str(caught.value.problems[0].place) == f"{tmp_path}/scripts/heating.es:4:2"


@pytest.mark.parametrize(("file", "name"), [("heating.es", "heating"), ("2 x.es", "script_2_x")])
def test_a_script_alone_is_a_rulebook(tmp_path: Path, file: str, name: str) -> None:
    path = tmp_path / file
    path.write_text(HEATING)
    book = rules.load(path, features=all_features())
    assert (book.name, book.text, [*book.scripts]) == (name, HEATING, [name])
    assert [*book.events] == ["warm", "Temperature"]
    again = rules.load(book.text, file=book.file, features=all_features())
    assert again.scripts == book.scripts


def test_mistakes_of_a_script_alone_have_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "heating.es"
    path.write_text(HEATING.replace("warm(1)", 'warm("1")'))
    with pytest.raises(InputError) as caught:
        rules.load(path, features=all_features())
    assert [str(p.place) for p in caught.value.problems] == [f"{path}:4:26"]
    with pytest.raises(InputError, match="yaml_bytes_max"):
        rules.load(path, settings={"yaml_bytes_max": "10"}, features=all_features())


def test_a_script_alone_runs_and_validate_doubts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "heating.es"
    path.write_text(HEATING)
    assert [*rules.load(path).scripts] == ["heating"]
    assert validated(path, {}).warnings == ()


def test_a_long_script_in_a_rulebook_is_read_soon() -> None:
    """The place of a node does not cost the whole text: else this took minutes."""
    body = "".join(f"      A(x) {{ y{n} = x + {n}; }}\n" for n in range(2_000))
    book = load(f"rulebook: b\nscripts:\n  s:\n    text: |\n      in long A\n{body}")
    assert len(book.scripts["s"].program.variables) == 2_001
