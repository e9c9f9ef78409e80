"""`explain` of event scripts, in a rulebook and alone."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tidegate.engine.explain.explanation import FORMATS, explain
from tidegate.rules.errors import InputError

PROGRAMS = Path(__file__).parents[1] / "rules" / "eventscript" / "programs"
SHOP = """\
rulebook: shop
tables: {readings: {path: /l/readings}}
events:
  reading: {on: insert, table: readings, columns: [room, celsius, seq]}
  page: {signal: {}}
scripts:
  counting:
    in: {hot: {event: was_hot}}
    text: |
      in double double_cold, {} hot
      out long many
      (double_cold() { n = n + 1; !> many(n); } | hot() { n = 0; })*
  heating:
    in: {Temperature: {event: reading, order_by: [seq]}}
    out: {hot: got_hot, $error: fault}
    text: |
      in {string room; double celsius;} Temperature group(Temperature.room)
          case {Temperature.celsius > 40 ? Hot : Temperature.celsius < 35 ? Cold}
      out {} hot, double double_cold
      (Hot() { !> hot(); } (Cold() Cold(last) { !> double_cold(last.celsius); })+)*
rules:
  was_hot: {on: got_hot, do: [{signal: page}]}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.yaml"
    file.write_text(SHOP)
    return file


def scripts(file: Path, name: str | None = None) -> dict[str, Any]:
    found = json.loads(explain(file, name, "json"))
    return {each["name"]: each for each in found["scripts"]}


def program(tmp_path: Path, text: str) -> dict[str, Any]:
    file = tmp_path / "one.es"
    file.write_text(text)
    return dict(scripts(file)["one"])


def test_the_table_has_next_states_actions_and_what_is_unexpected(shop: Path) -> None:
    heating = scripts(shop)["heating"]
    assert (heating["machine"], heating["states"], heating["start"]) == ("dfa", 4, [])
    table = [
        [(m["event"], m["next"], m["actions"]) for m in state["moves"]]
        for state in heating["table"]
    ]
    hot = ["{20:14} !> hot"]
    cold = ["store last", "{20:47} !> double_cold"]
    assert table == [
        [("Hot", 1, hot)],
        [("Cold", 2, [])],
        [("Cold", 3, cold)],
        [("Hot", 1, hot), ("Cold", 2, [])],
    ]
    assert [state["unexpected"] for state in heating["table"]] == [["Cold"], ["Hot"], ["Hot"], []]


def test_the_table_as_text(tmp_path: Path) -> None:
    file = tmp_path / "one.es"
    file.write_text("in {} Long, {} B, {} C out {} Z\n(Long() { !> Z(); } | B() B() C())")
    lines = explain(file).splitlines()
    assert lines[lines.index("  state  event  next  actions") + 1 :] == [
        "  0      Long   1     {2:9} !> Z",
        "         B      2",
        "         unexpected: C",
        "  1      unexpected: Long, B, C",
        "  2      B      3",
        "         unexpected: Long, C",
        "  3      C      1",
        "         unexpected: Long, B",
    ]


def test_the_pipeline_says_where_inputs_come_from_and_outputs_go(shop: Path) -> None:
    found = scripts(shop)
    assert [*found] == ["heating", "counting"], "each after those whose outputs it takes"
    (temperature,) = found["heating"]["inputs"]
    assert (temperature["event"], temperature["kind"]) == ("reading", "table")
    assert (temperature["order_by"], temperature["group"]) == (["seq"], True)
    sources = [(i["name"], i["kind"], i["value"]) for i in found["counting"]["inputs"]]
    assert sources == [("double_cold", "script heating", "value"), ("hot", "rule was_hot", None)]
    takers = {o["name"]: (o["event"], o["taken_by"]) for o in found["heating"]["outputs"]}
    assert takers == {
        "hot": ("got_hot", ["rule was_hot"]),
        "double_cold": ("double_cold", ["script counting"]),
        "$error": ("fault", []),
    }
    assert found["heating"]["keys"] == {"room": "string"}
    said = explain(shop, "heating")
    assert "  takes       {string room; double celsius;} Temperature, from table reading" in said
    assert "double double_cold, to script counting" in said
    assert "rule was_hot" in said


def test_bytes_and_types(tmp_path: Path) -> None:
    found = program(
        tmp_path,
        'in {long k; double x;} A\n(A(p) { a = new long[5]; n = 1; s = n > 1 ? "ab" : "abc"; })*',
    )
    assert found["variables"] == {
        "p": "{long k; double x;}",
        "a": "long[]",
        "n": "long",
        "s": "string",
    }
    assert found["bytes_max"] == 16 + 48 + 8 + 11
    endless = program(tmp_path, "in string A (A(s))*")
    assert endless["bytes_max"] == 65_536
    assert "of any length: s" in endless["bytes_why"]


@pytest.mark.parametrize(
    ("body", "unbounded", "statements"),
    [
        ("n = 1;", [], 2),
        ("for (i: 1, 2 * 5) n = i;", [], 12),
        ("a = new long[3]; for (x: a) { n = x; m = x; }", [], 12),
        ("n > 1 ? { n = 2; n = 3; } : n = 4;", [], 5),
        ("for (i: 1, n) n = i;", ["the count of the for at 2:8 is not constant"], None),
        ("while (n < 3) n = n + 1;", ["while at 2:8"], None),
        (
            "n = 4; a = new long[n]; for (x: a) n = x;",
            [
                "the array made at 2:19 has no constant length",
                "the for at 2:32 goes over an array of any length",
            ],
            None,
        ),
    ],
)
def test_bounded_time_or_why_not(
    tmp_path: Path, body: str, unbounded: list[str], statements: int | None
) -> None:
    found = program(tmp_path, f"in {{}} A\n(A() {{ {body} }})*")
    assert found["unbounded"] == unbounded
    assert found["statements_max"] == statements


@pytest.mark.long
def test_a_machine_that_is_too_large_is_hierarchical() -> None:
    found = scripts(PROGRAMS / "states_16.es")["states_16"]
    assert (found["machine"], found["states"]) == ("hierarchical", None)
    assert len(found["table"]) == 200
    assert found["states_more"] == 39_800
    said = explain(PROGRAMS / "states_16.es")
    assert "(machine hierarchical: more than 40,000 states (script_states_max))" in " ".join(
        said.split()
    )
    assert "  .. and 39,960 states more\n" in said


def test_timed_markers_are_moves(tmp_path: Path) -> None:
    found = program(tmp_path, "in {} A\nA() elapse[90 seconds]() | arrive[2038-01-19 03:14:08](t)")
    events = [[m["event"] for m in state["moves"]] for state in found["table"]]
    assert events[:2] == [["A", "arrive[2038-01-19 03:14:08]"], ["elapse[90 s]"]]
    assert found["table"][0]["moves"][1]["actions"] == ["store t"]
    found = program(tmp_path, "in {} A\nA() within[90 seconds]()")
    assert [m["event"] for m in found["table"][1]["moves"]] == ["within[90 s]"]
    text = "in {} A\nA(n) (elapse[n days](t) | elapse[1 hour]() | arrive[.:30:.](t))"
    found = program(tmp_path, text.replace("{}", "long"))
    events = [m["event"] for m in found["table"][1]["moves"]]
    elapsed = "elapse[(..)]", "elapse[1 h]"
    assert events == [elapsed[0], elapsed[1], "arrive[.:30:.]", " and ".join(elapsed)]


def test_pictures(shop: Path) -> None:
    said = explain(shop, None, "mermaid")
    assert '  subgraph g1["shop: pipeline"]\n' in said
    assert "    e_reading --> p_script_heating\n" in said
    assert "    e_got_hot --> p_rule_was_hot\n" in said
    assert "    p_rule_was_hot --> p_script_counting\n" in said
    assert 'subgraph g2["shop: automaton of heating"]' in said
    assert 's_heating_1 -->|"Cold"| s_heating_2' in said
    titles = [e.text for e in ET.fromstring(explain(shop, None, "svg")).iter() if e.text]
    assert "state 2" in titles
    assert "shop: automaton of counting" in titles


def test_pictures_of_many_events_stay_small(tmp_path: Path) -> None:
    names = [f"something_happened_{n}" for n in range(60)]
    file = tmp_path / "many.es"
    markers = " | ".join(f"{name}()" for name in names)
    file.write_text(f"in {', '.join('{} ' + name for name in names)}\n({markers})*")
    root = ET.fromstring(explain(file, None, "svg"))
    assert float(root.attrib["width"]) < 2_000
    longest = max(map(len, explain(file, None, "mermaid").splitlines()))
    assert longest < 150


def test_one_script_alone(shop: Path) -> None:
    found = json.loads(explain(shop, "counting", "json"))
    assert [s["name"] for s in found["scripts"]] == ["counting"]
    assert (found["rules"], found["nodes"]) == ([], [])
    assert [w["code"] for w in found["warnings"]] == ["unassigned"]
    assert scripts(shop, "was_hot") == {}
    with pytest.raises(InputError, match=r"no rule 'heatin'\n.*did you mean 'heating'"):
        explain(shop, "heatin")


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("name", sorted(f.stem for f in PROGRAMS.glob("*.es")))
def test_the_programs_of_the_paper_are_explained(name: str, format_: str) -> None:
    if name in ("cyclic", "states_15", "states_16"):
        return
    assert explain(PROGRAMS / f"{name}.es", None, format_).endswith("\n")


def test_explain_says_what_the_driver_detects_under_detect_spark(tmp_path: Path) -> None:
    """A script that takes a rule, that rule, and a rule over what it emits."""
    program = "in {string room;} seen group(seen.room) out long n (seen() {!> n(1);})*"
    taken = f"counts: {{text: '{program}'}}"
    file = tmp_path / "rooms.yaml"
    file.write_text(
        SHOP[: SHOP.index("scripts:")] + f"scripts:\n  {taken}\nrules:\n"
        "  seen: {on: reading, per: room}\n  other: {on: reading ; reading, per: room}\n"
        "  told: {on: n}\n"
    )
    found = json.loads(explain(file, None, "json"))
    assert {each["name"]: each["whole"] for each in (*found["rules"], *found["scripts"])} == {
        "seen": "script counts takes what it detects",
        "other": None,
        "told": "it has no `per:`",
        "counts": "it takes what rule seen detects",
    }
    text = " ".join(explain(file).split())
    assert "detected by the driver, not by key: script counts takes what it detects" in text
    assert "run by the driver, not by key: it takes what rule seen detects" in text
