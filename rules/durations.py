"""Lengths of time as text: `5 min`, `1.5 s`, `2 months`, `(00:05:00)00/00/00`.

Months and years count in the rulebook's zone and stay apart from microseconds (S11); everything
else is a whole number of microseconds. A number without a unit is seconds.
"""

from __future__ import annotations

import re
from decimal import Decimal

from tidegate.rules.expression import Duration

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND

# Longest first, so that formatting finds the largest unit that divides.
_MICROS = {
    "week": 7 * _DAY,
    "day": _DAY,
    "h": 3_600 * _SECOND,
    "min": 60 * _SECOND,
    "s": _SECOND,
    "ms": 1_000,
    "us": 1,
}
_SAME = {
    "sec": "s",
    "secs": "s",
    "m": "min",
    "mins": "min",
    "d": "day",
    "days": "day",
    "w": "week",
    "weeks": "week",
}
_MONTHS = {"month": 1, "months": 1, "year": 12, "years": 12}

YEARS_MAX = 10_000

# What people write for a unit that is spelt otherwise.
_MISSPELT = {
    "hour": "h",
    "hours": "h",
    "hr": "h",
    "hrs": "h",
    "minute": "min",
    "minutes": "min",
    "second": "s",
    "seconds": "s",
    "millis": "ms",
    "micros": "us",
}

_NUMBER = r"\d+(?:\.\d+)?|\.\d+"
_PART = r"\s*(\d{1,8})\s*"
_SPAN = rf"\({_PART}:{_PART}:{_PART}\){_PART}/{_PART}/{_PART}"
_TEXT = re.compile(rf"\s*(?:({_NUMBER})\s*([A-Za-z]+)?|({_SPAN}))\s*", re.ASCII)


def duration(text: str) -> Duration:
    """Read a length of time. Raises `ValueError` with a message for the user."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValueError(f"{_shown(text)} is not a length of time; write 5 min, 1.5 s, 2 months")
    if found[3]:
        return _span(found)
    number, unit = Decimal(found[1]), found[2] or "s"
    if unit in _MONTHS:
        if number != int(number):
            raise ValueError(f"{_shown(text)}: months and years are whole numbers")
        return _limited(Duration(int(number) * _MONTHS[unit], 0), text)
    unit = _SAME.get(unit, unit)
    if unit not in _MICROS:
        raise ValueError(f"unknown unit {unit!r}; {unit_hint(unit)}")
    micros = number * _MICROS[unit]
    if micros != int(micros):
        raise ValueError(f"{_shown(text)} is finer than a microsecond")
    return _limited(Duration(0, int(micros)), text)


def duration_micros(text: str) -> int:
    """A length of time that is the same everywhere, in microseconds. Raises `ValueError`."""
    value = duration(text)
    if value.months:
        raise ValueError(f"{_shown(text)}: months and years have no fixed length here; write days")
    return value.micros


def _shown(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= 40 else text[:37] + "...")


def unit_hint(unit: str) -> str:
    """What to write in place of a unit that is not one."""
    if unit in _MISSPELT:
        return f"write {_MISSPELT[unit]}"
    return "units are us, ms, s, min, h, day, week, month, year"


def format_duration(value: Duration) -> str:
    """The canonical text; `duration(format_duration(d)) == d` for every d that can be written."""
    if value.months and value.micros:
        minutes, seconds = divmod(value.micros // _SECOND, 60)
        clock = f"({minutes // 60:02}:{minutes % 60:02}:{seconds:02})"
        return f"{clock}{value.months % 12:02}/00/{value.months // 12:02}"
    if value.months:
        years, months = divmod(value.months, 12)
        return _counted(years, "year") if not months else _counted(value.months, "month")
    for unit, micros in _MICROS.items():
        if value.micros and value.micros % micros == 0:
            return _counted(value.micros // micros, unit)
    return "0 s"


def _counted(number: int, unit: str) -> str:
    plural = "s" if number != 1 and unit in ("year", "month", "week", "day") else ""
    return f"{number} {unit}{plural}"


def _span(found: re.Match[str]) -> Duration:
    hours, minutes, seconds, months, days, years = (int(found[n]) for n in range(4, 10))
    micros = days * _DAY + (hours * 3_600 + minutes * 60 + seconds) * _SECOND
    return _limited(Duration(years * 12 + months, micros), found[0])


def _limited(value: Duration, text: str) -> Duration:
    if value.months > YEARS_MAX * 12 or value.micros > YEARS_MAX * 366 * _DAY:
        raise ValueError(f"{_shown(text)} is longer than {YEARS_MAX} years")
    return value
