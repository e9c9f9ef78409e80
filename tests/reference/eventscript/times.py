"""When `elapse` and `arrive` are due (page, 4). Instants and durations in microseconds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from itertools import product
from zoneinfo import ZoneInfo

from tests.reference.eventscript.values import EPOCH
from tests.reference.timing import once, readings

SECOND = 1_000_000
LARGEST = 2**63 - 1  # the last instant


def duration(amount: int | float, unit_micros: int) -> int | None:
    """`elapse[amount unit]`, to the nearest microsecond, at least one; 0: not above 0;
    None: beyond all time."""
    whole = amount * unit_micros
    if not whole > 0:
        return 0
    return max(round(whole), 1) if whole < LARGEST else None


Components = tuple[int | None, ...]  # year, month, day, hour, minute, second; None is any


@cache
def next_match(components: Components, after: int, zone: str) -> int | None:
    """The first instant after `after` whose local time has these components; None: there is none.
    As of clocks (S11): where the hour is given, a local time that is skipped is the first instant
    after the gap, and of a repeated one the first is taken; else all instants are that read so."""
    today = datetime.fromtimestamp(after // SECOND, ZoneInfo(zone)).date()
    found: list[int] = []
    days = 0
    for day in _days(components, today):
        later = [each for each in _instants(day, components[3:], zone) if each > after]
        found += later
        days += bool(later)
        if days == 2:  # a local time moved forward may pass midnight, so one day more is looked at
            break
    return min(found, default=None)


def _days(components: Components, today: date) -> Iterator[date]:
    """The dates that fit, from the day before `today` on."""
    year, month, day = components[:3]
    # Between two 29 Februaries there are up to 8 years (1896, 1904).
    years = range(today.year - 1, today.year + 10) if year is None else [year]
    months = range(1, 13) if month is None else [month]
    days = range(1, 32) if day is None else [day]
    for each in product(years, months, days):
        try:
            fitting = date(*each)
        except (ValueError, OverflowError):
            continue
        if fitting >= today - timedelta(days=1):
            yield fitting


@lru_cache(64)  # of a clock that is any minute, each minute asks for its whole day
def _instants(day: date, clock: Components, zone: str) -> tuple[int, ...]:
    """The instants of a local day that fit the clock."""
    return (*_enumerated(day, clock, zone),)


def _enumerated(day: date, clock: Components, zone: str) -> Iterator[int]:
    choices = [
        units if wanted is None else [wanted] if wanted in units else []
        for units, wanted in zip((range(24), range(60), range(60)), clock, strict=True)
    ]
    for hour, minute, second in product(*choices):
        local = datetime.combine(day, time(hour, minute, second))
        if zone == "UTC":
            yield (local.replace(tzinfo=UTC) - EPOCH) // EPOCH.resolution
        else:
            yield from readings(local, zone) if clock[0] is None else [once(local, zone)]
