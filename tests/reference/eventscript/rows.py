"""The table of the page's section 6 as data: a program, what arrives, what comes out.

Seconds since the epoch. An event or emission is (second, name) or (second, name, value); one
without a value carries nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parents[2] / "rules" / "eventscript" / "programs"
Items = list[tuple[Any, ...]]
NOTHING: dict[str, Any] = {}


@dataclass(frozen=True)
class Row:
    """`until` in seconds. `expected` holds (second, output, value)."""

    program: str
    events: Items
    expected: Items
    until: int | None = None
    start: int | None = None

    @property
    def text(self) -> str:
        return (PROGRAMS / f"{self.program}.es").read_text()

    def __str__(self) -> str:
        return self.program


def timed(text: str) -> Items:
    """`"Use1 Insp2"`: events without a value, each with its second."""
    split = [(word.rstrip("0123456789"), word) for word in text.split()]
    return [(int(word[len(name) :]), name, NOTHING) for name, word in split]


def each_second(text: str, names: dict[str, str] | None = None) -> Items:
    """`"ABB"`: a letter a second, from 1 on."""
    letters = enumerate(text, start=1)
    return [(second, (names or {}).get(letter, letter), NOTHING) for second, letter in letters]


def _error(second: int, event: str) -> tuple[int, str, dict[str, Any]]:
    at = second * 1_000_000
    return second, "$error", {"kind": "unexpected", "event": event, "place": "", "at": at}


def _readings(*at: tuple[int, float, float]) -> Items:
    return [(second, "Position", {"tag": "r", "x": x, "y": y}) for second, x, y in at]


USES = each_second("UUIUIIUUU", {"U": "Use", "I": "Insp"})
VIOLATIONS = timed("V2 V8 V9")
KEYS = [(n, "Key", int(digit)) for n, digit in enumerate("1007000700770070071", start=1)]
UNLOCKED = timed("Unlock4 Unlock8 Unlock11 Unlock15 Unlock18")
HOURS = timed("n10 a4000 a4100 n4200 a7300 a11000")
TEMPERATURES = (50.0, 38.0, 34.0, 38.0, 42.0, 45.0, 44.0, 35.0, 34.9, 46.0)
CALL = {"caller": "x", "digits": (1, 2)}
SHORT, LONG = {"caller": "x", "seconds": 5}, {"caller": "x", "seconds": 90}

ROWS = [
    Row(
        "average",
        [(1, "S1", 3.0), (2, "S2", 6.0), (3, "S3", 9.0), (4, "S1", 0.0)],
        [(1, "Average", 1.0), (2, "Average", 3.0), (3, "Average", 6.0), (4, "Average", 5.0)],
    ),
    Row(
        "declarations",
        [(1, "Position", {"x": 1.0, "y": 2.0}), (2, "Size", 4), (3, "CallIn", CALL)],
        [(1, "Last", {"x": 1.0, "y": 2.0}), (2, "Sum", 6), (3, "Caller", "x")],
    ),
    Row(
        "call_in",
        [(1, "CallIn", SHORT), (2, "CallIn", LONG), (3, "CallIn", {**LONG, "caller": "y"})],
        [
            (2, "Talkative", {"caller": "x", "calls": 1}),
            (3, "Talkative", {"caller": "y", "calls": 1}),
        ],
    ),
    Row("far_arrival", timed("A100"), [(2**31, "Z", 2**31 * 1_000_000)], until=2**31),
    Row("pause", timed("A100"), [(400, "Z", 400_000_000)]),
    Row(
        "refrigerator",
        [(n, "Temperature", t) for n, t in enumerate(TEMPERATURES, start=1)],
        timed("warm0 cold3 warm6 cold9 warm10"),
        start=0,
    ),
    Row(
        "zones",
        _readings(
            *[(10, 5.0, 5.0), (20, 5.0, 6.0), (30, 19.0, 0.0), (40, 99.0, 99.0), (50, 99.0, 99.0)],
            *[(70, 99.0, 99.0), *[(n, 5.0, 5.0) for n in (80, 90, 100, 110)]],
        ),
        [(60, "Zone", {"tag": "r", "zone": 0}), (120, "Zone", {"tag": "r", "zone": 0})],
        until=120,
    ),
    Row("violation_first", timed("Use1 Insp2 Use3"), [_error(2, "Insp"), *timed("V3")]),
    Row("violation", USES, VIOLATIONS),
    Row("violation_any", USES, VIOLATIONS),
    Row("windows", HOURS, timed("N3600 A4000 A7300 A11000")),
    Row(
        "alarm", each_second("aanaaanaaaaaa", {"a": "A", "n": "N"}), timed("Alarm6 Alarm10 Alarm13")
    ),
    Row("ambiguous_1", each_second("A"), [(1, "B", 2)]),
    Row("ambiguous_2", each_second("ABAC"), []),
    Row("difference", each_second("ABBCBCCCB"), timed("Succeed2 Succeed3 Succeed5 Fail7 Fail8")),
    Row("prefix_once", each_second("A"), timed("Z1")),
    Row("prefix_twice", each_second("A"), timed("Z1 Z1")),
    Row("unlock", KEYS, UNLOCKED),
    Row("unlock_any", KEYS, UNLOCKED),
    Row("early", each_second("AB"), timed("Z1")),
    Row("unguarded", each_second("ABBC"), timed("Y1 Z1 Y2 Z2 Y3 Z3")),
    Row("guarded", each_second("ABBC"), timed("Y2 Y3 Z4")),
]
