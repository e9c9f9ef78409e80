"""The instants at which windows end: multiples of a length of time, or local midnights.

A fixed length has its multiples since the epoch, in UTC. Whole days count local midnights since
1970-01-01, whole weeks from Monday 1970-01-05, months the firsts since January 1970. A midnight
that the clocks skip is the first instant after the gap; of a repeated one the first counts (S11).
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.search_limits import LimitError
from tidegate.rules.expressions.nodes import Duration
from tidegate.rules.expressions.windows import calendar, whole_days

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1)
_MONDAY = date(1970, 1, 5)
_WEEK = 7
_KEPT_MAX = 4_096  # midnights


@dataclass(frozen=True, slots=True)
class Grid:
    """The multiples of `length` (not 0; months or microseconds). `zone`: of the local calendar; a
    length that does not count days has no use for it, so "" is one grid for all zones."""

    length: Duration
    zone: str = ""

    def after(self, time: Int64) -> Int64:
        """For each instant of `time`, ascending, the first point later than it.

        >>> Grid(Duration(0, 10)).after(np.array([-1, 0, 9, 10]))
        array([ 0, 10, 10, 20])
        """
        if not calendar(self.length):
            return time - time % self.length.micros + self.length.micros
        found = np.empty_like(time)
        begin = 0
        while begin < len(time):
            point = self._after(int(time[begin]))
            end = int(np.searchsorted(time, point))
            found[begin:end] = point
            begin = end
        return found

    def _after(self, instant: int) -> int:
        number = self._unit(_local(instant, self.zone).date())
        while (point := self._point(number)) <= instant:
            number += 1
        return point

    def _unit(self, day: date) -> int:
        """The number of the unit that a local date is in."""
        if self.length.months:
            return (day.year * 12 + day.month - 1 - 1970 * 12) // self.length.months
        first, days = self._days
        return (day - first).days // days

    def _point(self, number: int) -> int:
        """When a unit begins."""
        try:
            if self.length.months:
                year, month = divmod(1970 * 12 + number * self.length.months, 12)
                return _midnight(date(year, month + 1, 1), self.zone)
            first, days = self._days
            return _midnight(first + number * days * _DAY, self.zone)
        except (OverflowError, ValueError):
            raise _beyond() from None

    @property
    def _days(self) -> tuple[date, int]:
        """The first day of unit 0, and how many days a unit has."""
        days = whole_days(self.length)
        return (_MONDAY if days % _WEEK == 0 else _EPOCH.date()), days


def grid(length: Duration, zone: str) -> Grid:
    """The grid of a length of time in a rulebook's zone."""
    return Grid(length, zone if calendar(length) else "")


def back(instant: int, length: Duration, zone: str) -> int:
    """The local midnight so many days or months before one. A day past the month's end becomes its
    last day. Raises `LimitError('calendar')` before year 1."""
    day = _local(instant, zone).date()
    try:
        return _midnight(_earlier(day, length), zone)
    except (OverflowError, ValueError):
        raise _beyond() from None


def _earlier(day: date, length: Duration) -> date:
    if not length.months:
        return day - whole_days(length) * _DAY
    year, month = divmod(day.year * 12 + day.month - 1 - length.months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _local(instant: int, zone: str) -> datetime:
    try:
        return (_EPOCH + instant * _MICROSECOND).astimezone(ZoneInfo(zone))
    except OverflowError:
        raise _beyond() from None


@lru_cache(maxsize=_KEPT_MAX)
def _midnight(day: date, zone: str) -> int:
    """The first instant at which a local date has begun."""
    place = ZoneInfo(zone)
    wall = datetime(day.year, day.month, day.day)
    early, late = (
        (wall.replace(tzinfo=place, fold=fold) - _EPOCH) // _MICROSECOND for fold in (1, 0)
    )
    if early >= late or _reads(early, wall, place):  # it is read once, or twice
        return min(early, late)
    while early < late:  # it is skipped: the gap ends between the two
        middle = (early + late) // 2
        reached = _reading(middle, place) >= wall
        early, late = (early, middle) if reached else (middle + 1, late)
    return late


def _reading(instant: int, place: ZoneInfo) -> datetime:
    return (_EPOCH + instant * _MICROSECOND).astimezone(place).replace(tzinfo=None)


def _reads(instant: int, wall: datetime, place: ZoneInfo) -> bool:
    return _reading(instant, place) == wall


def _beyond() -> LimitError:
    return LimitError(
        "calendar",
        "days and months are counted from year 1 to 9999 only, and a time leads out of them",
        "look at the times of its events",
    )
