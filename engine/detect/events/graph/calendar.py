"""Lengths of time that count in months or in business days (S11)."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from heapq import merge
from itertools import count, repeat
from zoneinfo import ZoneInfo

import numpy as np

from tidegate.engine.core.instants import ceil_watermark
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph import local_time
from tidegate.engine.detect.events.graph.search_limits import LimitError
from tidegate.engine.detect.events.graph.timers import FloodError
from tidegate.engine.detect.events.occurrences.instances import Bools
from tidegate.rules.algebra.transformation import longest_micros
from tidegate.rules.expressions.business_days import FIRST_DAY, LAST_DAY, YEARS, business_days
from tidegate.rules.expressions.nodes import BusinessCalendar, BusinessDays, Duration

_DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_YEAR_MAX = 9999
TICKS_MAX = 10_000_000
"""The most ticks of one expression in one step: 80 MB. More means a wrong time or period."""


def add(instant: int, duration: Duration, zone: str) -> int:
    """`instant` + `duration` in microseconds. Business days end at the same local time of the n-th
    business day after. Months are added first, in the zone's calendar: a day
    past the month's end becomes its last day, a skipped local time moves forward, of a repeated one
    the first counts. The rest is added then.

    Raises `LimitError('calendar')` outside the years 1 to 9999, where months are not counted, and
    1960 to 2099, where business days are not.

    A month after 31 January 2023, 00:00 UTC is 28 February:

    >>> day = 86_400_000_000
    >>> (add(19_388 * day, Duration(1, 0), "UTC")) // day
    19416
    """
    if isinstance(duration, BusinessDays):
        return int(_add_business_days(np.array([instant]), duration, zone)[0])
    if duration.months:
        place = ZoneInfo(zone)
        try:
            local = (_EPOCH + instant * _MICROSECOND).astimezone(place)
        except OverflowError:
            raise _beyond() from None
        year, month = divmod(local.year * 12 + local.month - 1 + duration.months, 12)
        if year > _YEAR_MAX:
            raise _beyond()
        day = min(local.day, monthrange(year, month + 1)[1])
        moved = local.replace(year=year, month=month + 1, day=day, fold=0)
        instant = (moved - _EPOCH) // _MICROSECOND
    return instant + duration.micros


def _beyond() -> LimitError:
    return LimitError(
        "calendar",
        f"months and years are counted from year 1 to {_YEAR_MAX} only, and a length of time"
        " leads out of them",
        "look at the times of its events, and at its durations",
    )


def _add_business_days(instants: Int64, duration: BusinessDays, zone: str) -> Int64:
    local = local_time.of(instants, zone)
    day = local // _DAY
    found = day[:0]
    if ((day >= FIRST_DAY) & (day <= LAST_DAY)).all():
        days = _business_days(duration.calendar)
        place = np.searchsorted(days, day, side="right") + duration.count - 1
        if (place < len(days)).all():
            found = days[place]
    if len(found) < len(day):
        raise LimitError(
            "calendar",
            f"business days are counted from {YEARS[0]} to {YEARS[-1]} only, and a length of time"
            " leads out of them",
            "look at the times of its events, and at its durations",
        )
    return local_time.instants(found * _DAY + local % _DAY, zone)


@lru_cache
def _business_days(calendar: BusinessCalendar) -> Int64:
    return np.array(business_days(calendar), dtype=np.int64)


def add_each(instants: Int64, duration: Duration, zone: str) -> Int64:
    """`add` for each of some instants."""
    if isinstance(duration, BusinessDays):
        return _add_business_days(instants, duration, zone)
    if duration.fixed:
        return instants + duration.micros
    return np.array([add(int(t), duration, zone) for t in instants], dtype=np.int64)


def multiples(
    anchor: Int64,
    after: Int64,
    until: Int64,
    duration: Duration,
    zone: str,
    limit: int | None = None,
) -> tuple[Int64, Int64]:
    """The instants anchor[n] + k * duration, k >= 1, later than after[n], until[n] at the latest.
    Returns how many each anchor has, and the instants, anchor by anchor.

    Raises `FloodError` for more than `limit` instants, unless the limit is reached only in the last
    millisecond. Raises `LimitError('ticks')` for more than any step makes.

    >>> of_each = np.array([0, 100]), np.array([10, 100]), np.array([30, 115])
    >>> multiples(*of_each, Duration(0, 10), "")
    (array([2, 1]), array([ 20,  30, 110]))
    """
    if duration.fixed:
        first = (after - anchor) // duration.micros + 1
        counts = np.maximum((until - anchor) // duration.micros - first + 1, 0)
        if limit is not None and counts.sum(dtype=np.float64) > limit:
            reached = _reached(anchor, first, until, duration.micros, limit)
            if reached < until.max():
                raise FloodError(reached)
        _check_ticks(int(counts.sum(dtype=np.float64)))
        before = np.cumsum(counts) - counts
        ticks = np.arange(counts.sum())
        ticks *= duration.micros
        ticks += np.repeat(anchor + (first - before) * duration.micros, counts)
        return counts, ticks
    return _counted(anchor, after, until, duration, zone, limit)


def _counted(
    anchor: Int64, after: Int64, until: Int64, duration: Duration, zone: str, limit: int | None
) -> tuple[Int64, Int64]:
    """`multiples` by the calendar, one by one in their order: no more are made than may be."""
    spans = zip(anchor.tolist(), after.tolist(), until.tolist(), strict=True)
    each = [zip(_multiples(*span, duration, zone), repeat(n)) for n, span in enumerate(spans)]
    ticks: list[int] = []
    owners: list[int] = []
    for tick, n in merge(*each):
        if len(ticks) == limit and (reached := ceil_watermark(ticks[-1])) < until.max():
            raise FloodError(reached)
        ticks.append(tick)
        owners.append(n)
        _check_ticks(len(ticks))
    owner = np.array(owners, dtype=np.int64)
    order = np.argsort(owner, kind="stable")
    return np.bincount(owner, minlength=len(anchor)), np.array(ticks, dtype=np.int64)[order]


def _reached(anchor: Int64, first: Int64, until: Int64, period: int, limit: int) -> int:
    """The end of the millisecond up to which `limit` multiples are due, found by halving."""
    low, high = int(anchor.min()), int(until.max())
    while low < high:
        middle = (low + high) // 2
        counts = np.maximum((np.minimum(until, middle) - anchor) // period - first + 1, 0)
        low, high = (low, middle) if counts.sum() >= limit else (middle + 1, high)
    return ceil_watermark(low)


def following(anchor: Int64, after: Int64, duration: Duration, zone: str) -> Int64:
    """For each anchor the first instant anchor + k * duration, k >= 1, that is later than `after`.

    >>> following(np.array([0, 5]), np.array([20, 5]), Duration(0, 10), "")
    array([30, 15])
    """
    if duration.fixed:
        return anchor + ((after - anchor) // duration.micros + 1) * duration.micros
    pairs = zip(anchor.tolist(), after.tolist(), strict=True)
    far = np.iinfo(np.int64).max
    return np.array([next(_multiples(a, t, far, duration, zone)) for a, t in pairs], dtype=np.int64)


def _check_ticks(count: int) -> None:
    if count > TICKS_MAX:
        raise LimitError(
            "ticks",
            f"more than {TICKS_MAX:,} ticks of one period are due at once",
            "close it earlier or make its period longer; a time far off makes as many",
        )


def _multiples(anchor: int, after: int, until: int, duration: Duration, zone: str) -> Iterator[int]:
    for k in count(max(1, _passed(anchor, min(after, until), duration, zone))):
        tick = add(anchor, _times(duration, k), zone)
        if tick > until:
            return
        if tick > after:
            yield tick


def _passed(anchor: int, time: int, duration: Duration, zone: str) -> int:
    """A k below which no multiple is later than `time`."""
    if not isinstance(duration, BusinessDays):
        return (time - anchor) // longest_micros(duration)
    first, last = (local_time.of(np.array([anchor, time]), zone) // _DAY).tolist()
    days = _business_days(duration.calendar)
    # A skipped local time moves forward by up to a day, and clocks are set back by less
    place, end = np.searchsorted(days, [first + 1, last - 2]).tolist()
    return int(end - place) // duration.count + 1


def _times(duration: Duration, k: int) -> Duration:
    if isinstance(duration, BusinessDays):
        return replace(duration, count=duration.count * k)
    return Duration(duration.months * k, duration.micros * k)


def at_most(start: Int64, end: Int64, duration: Duration, zone: str) -> Bools:
    """Marks the spans with end - start <= duration. The calendar is asked only for spans between
    the shortest and the longest that so many months can have."""
    span = end - start
    if duration.fixed:
        return np.asarray(span <= duration.micros)
    mark = np.asarray(span <= duration.micros + max(duration.months * 28 - 2, 0) * _DAY)
    for i in np.flatnonzero(~mark & (span <= longest_micros(duration))):
        mark[i] = end[i] <= add(int(start[i]), duration, zone)
    return mark
