"""Lengths of time as text: `5 min`, `1.5 s`, `1h30m`, `2 months`, `PT5M`, `(00:05:00)00/00/00`.

Months and years count in the rulebook's zone and stay apart from microseconds (S11); everything
else is a whole number of microseconds. A number without a unit is seconds. `3 business days` stand
alone: they count by the calendar of the rule.
"""

from __future__ import annotations

import re
from decimal import Decimal

from tidegate.rules.expressions.nodes import BusinessDays, Duration

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
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("hour", "hours"), "h"),
    **dict.fromkeys(("d", "days"), "day"),
    **dict.fromkeys(("w", "weeks"), "week"),
}
_MONTHS = {"month": 1, "months": 1, "year": 12, "years": 12}

YEARS_MAX = 10_000
BUSINESS_DAYS_MAX = 10_000

# What people write for a unit that is spelt otherwise.
_MISSPELT = {
    **dict.fromkeys(("hr", "hrs", "std"), "h"),
    **dict.fromkeys(("millis", "millisecond", "milliseconds", "msec"), "ms"),
    **dict.fromkeys(("micros", "microsecond", "microseconds", "usec"), "us"),
    **dict.fromkeys(("mon", "mons", "mo", "mos"), "month"),
    **dict.fromkeys(("y", "yr", "yrs"), "year"),
    **dict.fromkeys(("business", "businessday", "businessdays", "bd", "bds"), "business days"),
    **dict.fromkeys(("working", "workday", "workdays", "work", "bank"), "business days"),
    **dict.fromkeys(("workingday", "workingdays", "weekday", "weekdays"), "business days"),
}
_ISO_DATE = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME = {"H": "h", "M": "min", "S": "s"}

_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)"
_UNITS = re.compile(rf"\s*(?:{_NUMBER}\s*[A-Za-z]+\s*)+", re.ASCII)
_BARE = re.compile(rf"\s*({_NUMBER})\s*", re.ASCII)
_ONE = re.compile(rf"({_NUMBER})\s*([A-Za-z]+)", re.ASCII)
_ISO = re.compile(rf"\s*P(?=[\d.T])((?:{_NUMBER}[YMWD])*)(?:T((?:{_NUMBER}[HMS])+))?\s*", re.ASCII)
_BUSINESS = re.compile(rf"\s*({_NUMBER})\s*business\s+days?\s*", re.ASCII)
_PART = r"\s*(\d{1,8})\s*"
_SPAN = re.compile(rf"\s*\({_PART}:{_PART}:{_PART}\){_PART}/{_PART}/{_PART}\s*", re.ASCII)


def duration(text: str) -> Duration:
    """Read a length of time. Raises `ValueError` with a message for the user."""
    if found := _SPAN.fullmatch(text):
        return _span(found)
    if found := _BUSINESS.fullmatch(text):
        return _business_days(found[1], text)
    if re.search(r"\bbusiness\s+day", text):
        alone = "business days stand alone; what is more follows: a + [2 business days] + [4 h]"
        raise ValueError(f"{_shown(text)}: {alone}")
    parts = _parts(text)
    if parts is None:
        hint = "write 5 min, 1.5 s, 1h30m, 2 months"
        raise ValueError(f"{_shown(text)} is not a length of time; {hint}")
    months, micros = 0, Decimal(0)
    for number, unit in parts:
        if unit in _MONTHS:
            if number != int(number):
                raise ValueError(f"{_shown(text)}: months and years are whole numbers")
            months += int(number) * _MONTHS[unit]
            continue
        unit = _SAME.get(unit, unit)
        if unit not in _MICROS:
            raise ValueError(f"unknown unit {unit!r}; {unit_hint(unit)}")
        micros += number * _MICROS[unit]
    if micros != int(micros):
        raise ValueError(f"{_shown(text)} is finer than a microsecond")
    return _limited(Duration(months, int(micros)), text)


def lacks_unit(text: str) -> bool:
    """Whether a length of time is a number alone (but 0), which is taken for seconds."""
    found = _BARE.fullmatch(text)
    return found is not None and Decimal(found[1]) != 0


def _parts(text: str) -> list[tuple[Decimal, str]] | None:
    """The numbers and units of a text; None if it has another form, or a unit twice."""
    if found := _BARE.fullmatch(text):
        return [(Decimal(found[1]), "s")]
    if _UNITS.fullmatch(text):
        parts = _ONE.findall(text)
    elif found := _ISO.fullmatch(text):
        parts = [(n, _ISO_DATE[u]) for n, u in _ONE.findall(found[1])]
        parts += [(n, _ISO_TIME[u]) for n, u in _ONE.findall(found[2] or "")]
    else:
        return None
    once = len({_SAME.get(unit, unit) for _, unit in parts}) == len(parts)
    return [(Decimal(number), unit) for number, unit in parts] if once else None


def duration_micros(text: str) -> int:
    """A length of time that is the same everywhere, in microseconds. Raises `ValueError`."""
    value = duration(text)
    if isinstance(value, BusinessDays):
        where = "only an event expression counts business days; write days"
        raise ValueError(f"{_shown(text)}: {where}")
    if value.months:
        raise ValueError(f"{_shown(text)}: months and years have no fixed length here; write days")
    return value.micros


def _shown(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= 40 else text[:37] + "...")


def unit_hint(unit: str) -> str:
    """What to write in place of a unit that is not one."""
    lower = unit.lower()
    meant = _MISSPELT.get(lower) or (lower if lower in {*_MICROS, *_SAME, *_MONTHS} else None)
    if meant:
        return f"write {meant}"
    return "units are us, ms, s, min, h, day, week, month, year"


def format_duration(value: Duration) -> str:
    """The canonical text; `duration(format_duration(d)) == d` for every d that can be written."""
    if isinstance(value, BusinessDays):
        return _counted(value.count, "business day")
    if value.months and value.micros:
        calendar, clock = Duration(value.months, 0), Duration(0, value.micros)
        return f"{format_duration(calendar)} {format_duration(clock)}"
    if value.months:
        years, months = divmod(value.months, 12)
        return _counted(years, "year") if not months else _counted(value.months, "month")
    for unit, micros in _MICROS.items():
        if value.micros and value.micros % micros == 0:
            return _counted(value.micros // micros, unit)
    return "0 s"


def length(micros: int) -> str:
    """A length of time in microseconds as text: `5 min`."""
    return format_duration(Duration(0, micros))


def _counted(number: int, unit: str) -> str:
    plural = "s" if number != 1 and unit in ("year", "month", "week", "day", "business day") else ""
    return f"{number} {unit}{plural}"


def _span(found: re.Match[str]) -> Duration:
    hours, minutes, seconds, months, days, years = (int(part) for part in found.groups())
    micros = days * _DAY + (hours * 3_600 + minutes * 60 + seconds) * _SECOND
    return _limited(Duration(years * 12 + months, micros), found[0])


def _business_days(number: str, text: str) -> BusinessDays:
    if not number.isdigit():
        raise ValueError(f"{_shown(text)}: business days are whole numbers")
    count = int(number[:10])
    if not 1 <= count <= BUSINESS_DAYS_MAX:
        raise ValueError(f"{_shown(text)}: business days are counted from 1 to {BUSINESS_DAYS_MAX}")
    return BusinessDays(count)


def _limited(value: Duration, text: str) -> Duration:
    if value.months > YEARS_MAX * 12 or value.micros > YEARS_MAX * 366 * _DAY:
        raise ValueError(f"{_shown(text)} is longer than {YEARS_MAX} years")
    return value
