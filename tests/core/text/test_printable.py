"""What reaches a terminal, and times as text."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tidegate.engine.cli import output
from tidegate.engine.core.text.printable import in_json, in_line, printable
from tidegate.engine.core.text.times import day_text, micros_text, python_rows, python_values

ATTACK = "a\x1b]0;t\x07b\rc\u202ed\x9be\u2028f\ud800"


def harmless(text: str) -> bool:
    return all(c == "\n" or (c.isprintable() and c not in "\u202e\x9b") for c in text)


def test_control_characters_are_shown_as_escapes() -> None:
    assert printable(ATTACK) == r"a\x1b]0;t\x07b\rc\u202ed\x9be\u2028f\ud800"
    assert printable("tab\tline\nümläut 🎉 日本") == "tab\tline\nümläut 🎉 日本"
    assert in_line("a\nb\tc") == r"a\nb\tc"
    text = json.dumps(ATTACK + "\U000e0041", ensure_ascii=False)
    assert json.loads(in_json(text)) == ATTACK + "\U000e0041"
    assert harmless(in_json(text))


def test_all_that_commands_print_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    output.say(ATTACK, err=True)
    output.json_line({"value": ATTACK})
    output.table(ATTACK, ["firing_id", "[red]"], [["[link=x]y[/link] [/]", ATTACK + "z" * 9_000]])
    output.record({"stopped": f"{ATTACK}\nok: forged"}, as_json=False)
    output.summary({"entries": [{"error": ATTACK}], "names": [ATTACK]}, as_json=False)
    row = {"event": "e", "time": "2026-03-02T09:00:00Z", "by": ATTACK}
    fired = {"firing_id": "f" * 32, "end": row["time"], "rule": "r", "key": {"by": ATTACK}}
    fired |= {"constituents": [row], "condition": "none", "entries": []}
    output.firings([fired], "newest", "UTC")
    output.entry({"error": f"{ATTACK}\nok: forged", "firings": [fired]}, "UTC", as_json=False)
    output.document(f'"{ATTACK[:-1]}"\n', as_json=True)
    said = capsys.readouterr()
    assert harmless(said.out)
    assert harmless(said.err)
    assert "[link=x]y[/link] [/]" in said.out
    assert "(9,0" in said.out
    assert "z" * 600 not in said.out
    assert "\nok: forged" not in said.out


def test_times_that_python_cannot_hold_have_a_text() -> None:
    assert [day_text(n) for n in (0, -1, 2932897, -719529, -735525)] == [
        "1970-01-01",
        "1969-12-31",
        "+10000-01-01",
        "-0001-12-31",
        "-0044-03-15",
    ]
    assert micros_text(-9223372036854775807) == "-290308-12-21T19:59:05.224193"
    assert micros_text(1_500_000) == "1970-01-01T00:00:01.500000"
    days = pa.array([2932897, None, 0], pa.int32()).cast(pa.date32())
    assert python_values(days) == ["+10000-01-01", None, "1970-01-01"]
    nested = pa.array([[{"d": 1}], None, []], pa.list_(pa.struct([("d", pa.int64())])))
    kind = pa.list_(pa.struct([("d", pa.timestamp("us", "UTC"))]))
    far = pa.array([[{"d": 1 << 62}], None, []], nested.type).cast(kind)
    table = pa.table({"n": far, "m": pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int8()))})
    assert python_rows(table)[0]["n"][0]["d"].startswith("+148108-")
    assert [row["n"] for row in python_rows(table)][1:] == [None, []]
