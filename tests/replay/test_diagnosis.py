"""`simulate` where nothing is detected: the last line on stderr says what could be the reason."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tidegate.engine.replay.simulate import simulate
from tidegate.rules.errors import InputError

BOOK = """
rulebook: orders
events:
  placed: {signal: {order_id: bigint}}
  paid: {signal: {order_id: bigint}}
  noon: {at: 12:00}
rules:
"""
PAIR = "  pair: {on: placed ; paid within 5 s, per: order_id, context: recent}\n"
LUNCH = "  lunch: {on: placed ; noon}\n"
DAILY = '  daily: {on: "cron(\\"0 0 * * *\\")"}\n'
SCRIPT = """\
  {}
scripts:
  teller: {text: "in {} paid out {} told (paid() paid() { !> told(); })*"}
"""
PLACED = '{{"event": "placed", "time": {}, "order_id": 7}}\n'
KEYLESS = '{"event": "placed", "time": 1}\n{"event": "paid", "time": 2, "order_id": 8}\n'


def told(
    folder: Path, rules: str, trace: str, until: str | None = None, book: str = BOOK
) -> list[str]:
    rulebook, lines = folder / "book.yaml", folder / "trace.jsonl"
    rulebook.write_text(book + rules)
    lines.write_text(trace)
    said: list[str] = []
    simulate(rulebook, lines, until=until, out=io.BytesIO(), tell=said.append)
    return said


@pytest.mark.parametrize(
    ("rules", "trace", "until", "last"),
    [
        (PAIR, "\n", None, "0 detections over 0 lines: the trace is empty"),
        (PAIR, PLACED.format(9), "8", "0 detections over 1 line: all of them are later than --un"),
        (
            PAIR,
            KEYLESS + PLACED.format(3),
            None,
            "0 detections over 3 lines: order_id is missing in 1 line of placed",
        ),
        (PAIR, PLACED.format(1) * 2, None, "0 detections over 2 lines: no line is paid"),
        (
            PAIR,
            PLACED.format(8) + PLACED.format(9),
            "8",
            "0 detections over 2 lines: no line is paid",
        ),
        (
            "  two: {on: 'any(2, placed, paid, paid ; paid)'}\n",
            PLACED.format(1),
            None,
            "0 detections over 1 line",
        ),
        (
            PAIR,
            PLACED.format(-1700000000000),
            None,
            "0 detections over 1 line: the times look like milliseconds: a number is seconds since"
            " the epoch; no line is paid",
        ),
        (
            PAIR,
            PLACED.format(1700000000000),
            None,
            "0 detections over 1 line: the times look like milliseconds: a number is seconds since"
            " the epoch; no line is paid",
        ),
        (
            LUNCH,
            PLACED.format(1.5),
            None,
            "0 detections over 1 line: the clock never reached noon (time ends at 1.5):"
            " --until TIME lets time go on",
        ),
        (
            DAILY,
            PLACED.format('"2026-03-02T09:00:00Z"'),
            "2026-03-02T23:00:00Z",
            "0 detections over 1 line: the clock never reached 0 0 * * *"
            " (time ends at 2026-03-02T23:00:00Z): give a later --until",
        ),
        (
            "  late: {on: \"not(paid)[placed, [1 h]]\"}\n",
            PLACED.format(1),
            "60",
            "0 detections over 1 line: lengths of time that run out after --until are not waited",
        ),
        (
            "  off: {on: placed, enabled: false}\n",
            PLACED.format(1),
            None,
            "0 detections over 1 line: no rule is enabled",
        ),
        (SCRIPT, PLACED.format(1), None, "0 detections over 1 line: no line is paid"),
        (SCRIPT, PLACED.format(1).replace("placed", "paid"), None, "0 detections over 1 line"),
        (
            SCRIPT.replace("{}", "each: {on: told ; placed}", 1),
            PLACED.format(1),
            None,
            "0 detections over 1 line: no line is paid",
        ),
    ],
)  # fmt: skip
def test_the_last_line(
    tmp_path: Path, rules: str, trace: str, until: str | None, last: str
) -> None:
    said = told(tmp_path, rules, trace, until)[-1]
    assert max(map(len, said.splitlines())) <= 100
    assert " ".join(said.split()).startswith(last)
    assert ":" in last or said == last  # no reason is known


def test_s13_warnings_are_told_first_and_nothing_else_where_something_is_detected(
    tmp_path: Path,
) -> None:
    rules = '  late: {on: "placed without paid within 24 h"}\n'
    (warning,) = told(tmp_path, rules, PLACED.format(1))
    assert warning.startswith(f"warning: {tmp_path}/book.yaml:8:15: placed takes no time")
    assert "not(paid)[placed, [1 day]]" in warning
    assert told(tmp_path, "  each: {on: placed}\n", PLACED.format(1)) == []


@pytest.mark.parametrize(
    ("rules", "time", "unit"),
    [
        (PAIR, 1700000000000000, "microseconds"),
        (PAIR, 1700000000000000000, "nanoseconds"),
        (LUNCH, 1700000000000, "milliseconds"),
    ],
)
def test_times_too_large_for_seconds(tmp_path: Path, rules: str, time: int, unit: str) -> None:
    with pytest.raises(InputError, match=f"look like {unit}: a number is seconds since the epoch"):
        told(tmp_path, rules, PLACED.format(time))


def test_key_values_that_are_missing_are_warned_of(tmp_path: Path) -> None:
    """Null is a key of its own; what is found stays found."""
    placed = '{{"event": "placed", "time": {}, "order_id": {}}}\n'
    trace = placed.format(1, "null") + placed.format(1, "7")
    trace += '{"event": "paid", "time": 2}\n{"event": "paid", "time": 2, "order_id": 7}\n'
    assert told(tmp_path, PAIR, trace) == [
        "warning: order_id is missing in 1 line of placed",
        "warning: order_id is missing in 1 line of paid",
    ]
    assert (
        told(tmp_path, PAIR, placed.format(1, 7) + KEYLESS.split("\n")[1].replace("8", "7")) == []
    )


ASKED = """
rulebook: asked
events:
  paid: {signal: {k: bigint, amount: double}}
  left: {signal: {}}
rules:
  much: {on: paid, if: sum(amount) > 10}
  each: {on: paid}
"""


def test_fields_that_are_not_declared_are_kept_and_warned_of_once(tmp_path: Path) -> None:
    lines = '{"event": "paid", "time": 1, "k": 7, "amout": 1}\n' * 2
    lines += '{"event": "left", "time": 2, "by": "ada"}\n'
    assert told(tmp_path, "", lines, book=ASKED) == [
        "warning: by of left is not declared: left declares no field",
        "warning: amout of paid is not declared: did you mean 'amount'?",
    ]


COLUMNED = """
rulebook: columned
tables: {t: {path: /t}}
events:
  paid: {signal: {k: bigint, amount: double}}
  put: {on: insert, table: t, columns: [k, total as amount]}
  seen: {on: insert, table: t}
  loaded: {on: commit, table: t}
rules:
  each: {on: paid or put or seen or loaded}
  pair: {on: paid ; paid, per: k}
"""


def test_declared_fields_that_are_missing_are_warned_of_once(tmp_path: Path) -> None:
    lines = '{"event": "paid", "time": 1}\n' * 2
    lines += '{"event": "put", "time": 2, "k": 1, "total": 7, "amout": 1}\n' * 2
    lines += '{"event": "seen", "time": 2}\n{"event": "loaded", "time": 2}\n'
    warned = [said for said in told(tmp_path, "", lines, book=COLUMNED) if "book.yaml" not in said]
    assert warned == [
        "warning: amount of paid is missing, and null: write null if that is meant",
        "warning: amount of put is missing, and null: did you mean it by 'amout'?",
        "warning: k is missing in 2 lines of paid",
    ]
    lines = '{"event": "paid", "time": 1, "k": 1, "amount": null}\n'
    lines += '{"event": "put", "time": 2, "k": null, "amount": null}\n'
    warned = [said for said in told(tmp_path, "", lines, book=COLUMNED) if "book.yaml" not in said]
    assert warned == []


def test_what_is_found_of_rules_whose_if_is_not_asked_is_marked(tmp_path: Path) -> None:
    rulebook, lines, out = tmp_path / "book.yaml", tmp_path / "trace.jsonl", io.BytesIO()
    rulebook.write_text(ASKED)
    lines.write_text('{"event": "paid", "time": 1, "k": 7, "amount": 1}\n')
    simulate(rulebook, lines, out=out)
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(each["rule"], each.get("condition")) for each in found] == [
        ("each", None),
        ("much", "unasked"),
    ]


MEETING = """
rulebook: meeting
tables: {t: {path: /t}}
events:
  a: {on: insert, table: t}
  b: {on: delete, table: t}
rules:
  r: {on: a ; b, per: k, context: recent}
"""


def test_keys_that_never_meet_are_said(tmp_path: Path) -> None:
    a = '{{"event": "a", "time": 1, "k": {}}}\n'.format
    b = '{"event": "b", "time": 2, "k": 7}\n'
    said = " ".join(" ".join(told(tmp_path, "", a('"7"') + b, book=MEETING)).split())
    never = "the keys of a and b never meet: '7' is text on a, 7 is bigint on b"
    assert said == f"0 detections over 2 lines: {never}"
    assert told(tmp_path, "", a('"7"') + a(7) + b, book=MEETING) == []
    assert told(tmp_path, "", a("7.0") + b, book=MEETING) == []
