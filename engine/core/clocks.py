"""Clock occurrences: the instants of clock literals, cron lines and named clock events (S11)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import FOREVER, Batch, Int64
from tidegate.rules.analysis.graph import uses_of
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions import clock_texts as texts
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.clock_texts import region
from tidegate.rules.model import ClockEvent, Rulebook

if TYPE_CHECKING:
    from holidays import HolidayBase

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_FIRST, _LAST = -62_135_000_000 * _SECOND, 253_402_000_000 * _SECOND
"""The years 1 to 9999, without their first and last days."""
_MARGIN = 2 * _DAY
"""Longer than any gap or overlap of local time that a zone has had."""
_ALL_HOURS, _ALL_MINUTES = range(24), range(60)
_YEARS_MAX = 200
_SEARCHED_DAYS = 100
"""The search for the next occurrence looks at up to so many days at once. A clock that ticks each
second still fits into memory then."""
INSTANTS_MAX = 10_000_000
"""The most occurrences of one clock in one step (80 MB). More means that some time is wrong."""


@dataclass(frozen=True)
class RunningClock:
    """A clock that some rule or script listens to: a named clock event, or a literal in a rule's
    text.

    `name`: the event type of its occurrences. `zone`: its time zone. `days`: the weekdays on which
    it occurs (0 = Monday), all if empty. `excluded` (ISO dates) and `holidays` (regions such as
    DE-BE): local dates on which it does not occur. `misfire`: what becomes of missed occurrences.
    """

    name: str
    expression: x.Clock | x.Cron
    zone: str
    days: tuple[int, ...] = ()
    excluded: Collection[str] = ()
    holidays: tuple[str, ...] = ()
    misfire: str = "fire_all"

    def instants(self, first: int, last: int) -> Int64:
        """The instants in [first, last] at which it occurs.

        If the hour is given, each matching local time occurs once: a repeated one the first time,
        a skipped one at the end of the gap. If the hour is a wildcard, every instant occurs whose
        local time matches. Example: `2:30` occurs once when clocks are set back at 3:00, `*:30`
        twice. Raises EngineError `clock-span`.
        """
        first, last = max(first, _FIRST), min(last, _LAST)
        if first > last:
            return np.empty(0, np.int64)
        _check_span(self.name, first, last, self.per_day)
        parts = [np.empty(0, np.int64)]
        read = first - _MARGIN - _DAY  # the local time up to which all has been read off the clock
        for begin, end, offset in _offsets(first - _MARGIN, last + 1, ZoneInfo(self.zone)):
            low, high = max(begin, first) + offset, end + offset
            if not self._every_hour:
                low = read if begin >= first else max(read, low)
            parts.append(np.maximum(self._readings(low, high), begin + offset) - offset)
            read = high
        found = np.unique(np.concatenate(parts))
        return found[(found >= first) & (found <= last)]

    def following(self, after: int) -> int | None:
        """The first occurrence after an instant. None if there is none for `_YEARS_MAX` years."""
        begin = max(after + 1, _FIRST)
        end = min(begin + _YEARS_MAX * 365 * _DAY, _LAST)
        if isinstance(self.expression, x.Clock) and self.expression.year is not None:
            begin = max(begin, _year_begins(self.expression.year) - _MARGIN)
            end = min(end, _year_begins(self.expression.year + 1) + _MARGIN)
        span = _DAY
        while begin <= end:
            found = self.instants(begin, min(begin + span - 1, end))
            if len(found):
                return int(found[0])
            begin += span
            span = min(2 * span, _SEARCHED_DAYS * _DAY)
        return None

    @property
    def per_day(self) -> int:
        """How often it occurs on a day that fits."""
        return len(self._of_day)

    def _readings(self, low: int, high: int) -> Int64:
        """The local times that match in [low, high), microseconds: 8:00 on 1970-01-02 is 32
        hours."""
        parts = [np.empty(0, np.int64)]
        for day in range(low // _DAY, -(-high // _DAY)):
            if self._fits(_EPOCH.date() + timedelta(days=day)):
                parts.append(day * _DAY + self._of_day)
        found = np.concatenate(parts)
        return found[(found >= low) & (found < high)]

    def _fits(self, day: date) -> bool:
        if (self.days and day.weekday() not in self.days) or day.isoformat() in self.excluded:
            return False
        if any(day in region for region in self._regions):
            return False
        if isinstance(self.expression, x.Clock):
            return (
                self.expression.year in (None, day.year)
                and self.expression.month in (None, day.month)
                and self.expression.day in (None, day.day)
            )
        return self._cron.fits(day)

    @property
    def _every_hour(self) -> bool:
        """Whether the hour is a wildcard."""
        if isinstance(self.expression, x.Clock):
            return self.expression.hour is None
        return self._cron.every_hour

    @cached_property
    def _regions(self) -> list[HolidayBase]:
        return [region(code) for code in self.holidays]

    @cached_property
    def _cron(self) -> texts.CronFields:
        return texts.cron(self.expression.text)  # type: ignore[union-attr]

    @cached_property
    def _of_day(self) -> Int64:
        """The matching times of a day, ascending."""
        if isinstance(self.expression, x.Clock):
            parts = (self.expression.hour, self.expression.minute, self.expression.second)
            hours, minutes, seconds = (
                [part] if part is not None else list(whole)
                for part, whole in zip(parts, (_ALL_HOURS, _ALL_MINUTES, _ALL_MINUTES), strict=True)
            )
        else:
            hours, minutes, seconds = sorted(self._cron.hours), sorted(self._cron.minutes), [0]
        of_minutes = np.add.outer(60 * np.array(hours, np.int64), minutes)
        found: Int64 = np.add.outer(60 * of_minutes, seconds).reshape(-1) * _SECOND
        return found


class NextOccurrence:
    """The next occurrence of a clock, remembered until it has passed: most who ask, ask for the
    same one."""

    def __init__(self, clock: RunningClock) -> None:
        self._clock = clock
        self._asked, self._found = FOREVER, 0

    def after(self, instant: int) -> int:
        """The first one after an instant; `FOREVER` if there is none."""
        if not self._asked <= instant < self._found:
            found = self._clock.following(instant)
            self._asked, self._found = instant, FOREVER if found is None else found
        return self._found


def running_clocks(book: Rulebook) -> tuple[RunningClock, ...]:
    """The clocks that enabled rules and scripts listen to: named clock events, and literals in the
    rulebook's zone. Equal literals are one (S6)."""
    found: dict[str, RunningClock] = {}
    names: list[str] = []
    for rule in (rule for rule in book.rules.values() if rule.enabled):
        names += uses_of(rule, book.rules)
        for node in rule.pattern.on.walk():
            if isinstance(node, x.Clock | x.Cron):
                found[name_of(node)] = RunningClock(name_of(node), node, book.timezone)
    for script in (script for script in book.scripts.values() if script.enabled):
        names += uses_of(script, book.rules)
    for name in names:
        if isinstance(event := book.events.get(name), ClockEvent):
            found[name] = RunningClock(
                name,
                event.expression,
                event.timezone,
                event.days,
                frozenset(event.excluded),
                event.holidays,
                event.misfire,
            )
    return tuple(found.values())


def clock_batches(book: Rulebook, first: int, last: int) -> dict[str, Batch]:
    """Every clock occurrence in [first, last], microseconds, by event type."""
    found = {clock.name: clock.instants(first, last) for clock in running_clocks(book)}
    return {name: batch_of(name, time) for name, time in found.items() if len(time)}


def batch_of(name: str, time: Int64) -> Batch:
    """Occurrences of a clock, which have no parameters."""
    no_parameters = pa.table({"": pa.nulls(len(time))}).select([])
    return Batch(name, time, np.arange(len(time)), no_parameters)


def name_of(node: x.Clock | x.Cron) -> str:
    """The event type of a literal's occurrences: its text; equal literals are one type (S6)."""
    return node.text if isinstance(node, x.Cron) else texts.format_clock(node)


def _check_span(name: str, first: int, last: int, per_day: int) -> None:
    """Raise EngineError `clock-span` for a span so long that a time in it must be wrong."""
    if last - first <= min(_YEARS_MAX * 366, INSTANTS_MAX / max(per_day, 1)) * _DAY:
        return
    begin, end = ((_EPOCH + t * _MICROSECOND).isoformat(timespec="seconds") for t in (first, last))
    raise EngineError(
        "clock-span",
        f"{name} would be looked for from {begin} to {end}: more than {_YEARS_MAX}"
        f" years, or {INSTANTS_MAX:,} times",
        "look for a line or row whose time is far from all others",
    )


def _offsets(first: int, until: int, place: ZoneInfo) -> Iterator[tuple[int, int, int]]:
    """The spans of [first, until) with one offset from UTC: (begin, end, offset), microseconds."""
    begin, ahead, at = first, _ahead(first, place), first
    while at < until:
        following = min(at + _DAY, until)
        changed = _ahead(following, place)
        if changed != ahead:
            low, high = at, following
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _ahead(middle, place) == ahead else (low, middle)
            yield begin, high, ahead
            begin, ahead = high, changed
        at = following
    if begin < until:
        yield begin, until, ahead


def _ahead(instant: int, place: ZoneInfo) -> int:
    offset = (_EPOCH + instant * _MICROSECOND).astimezone(place).utcoffset()
    return (offset or timedelta(0)) // _MICROSECOND


def _year_begins(year: int) -> int:
    return (datetime(min(max(year, 1), 9999), 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
