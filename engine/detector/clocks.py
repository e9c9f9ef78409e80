"""Clock occurrences: the instants of clock literals, cron lines and named clock events (S11)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from tidegate.engine.values import Batch, Int64
from tidegate.rules import clocks as texts
from tidegate.rules import expression as x
from tidegate.rules.model import ClockEvent, Rulebook

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SECOND = 1_000_000
_ALL_HOURS, _ALL_MINUTES = range(24), range(60)


def clock_batches(book: Rulebook, first: int, last: int) -> dict[str, Batch]:
    """Every clock occurrence in [first, last], microseconds: of named clock events by name, of the
    rules' literals by their text, in the rulebook's zone. Only those that a rule names."""
    found: dict[str, Int64] = {}
    nodes = [node for rule in book.rules.values() if rule.enabled for node in rule.on.walk()]
    for node in nodes:
        if isinstance(node, x.Clock | x.Cron) and name_of(node) not in found:
            found[name_of(node)] = instants(node, first, last, book.timezone)
        elif isinstance(node, x.Name) and node.name not in found:
            event = book.events.get(node.name)
            if isinstance(event, ClockEvent) and isinstance(event.expression, x.Clock | x.Cron):
                found[node.name] = instants(
                    event.expression, first, last, event.timezone, event.days, event.excluded
                )
    return {
        name: Batch(name, time, np.arange(len(time)), _no_parameters(len(time)))
        for name, time in found.items()
        if len(time)
    }


def name_of(node: x.Clock | x.Cron) -> str:
    """The event type of a literal's occurrences: its text; equal literals are one type (S6)."""
    return node.text if isinstance(node, x.Cron) else texts.format_clock(node)


def instants(
    expression: x.Clock | x.Cron,
    first: int,
    last: int,
    zone: str,
    days: tuple[int, ...] = (),
    excluded: tuple[str, ...] = (),
) -> Int64:
    """The matching instants in [first, last] on the zone's clock: a skipped local time is none, a
    repeated one is taken first. `days` (0 = Monday) limits the days, `excluded` (ISO dates) takes
    some out."""
    place = ZoneInfo(zone)
    seconds = _seconds(expression)
    parts = [np.empty(0, np.int64)]
    for day in _days(first, last, place):
        if (days and day.weekday() not in days) or day.isoformat() in excluded:
            continue
        if _fits(expression, day):
            parts.append(_of_day(day, seconds, place))
    found = np.concatenate(parts)
    return found[(found >= first) & (found <= last)]


def _days(first: int, last: int, place: ZoneInfo) -> Iterator[date]:
    """The local dates from one instant to another."""
    if first > last:
        return
    day, end = ((_EPOCH + t * _MICROSECOND).astimezone(place).date() for t in (first, last))
    while day <= end:
        yield day
        day += timedelta(days=1)


def _fits(expression: x.Clock | x.Cron, day: date) -> bool:
    if isinstance(expression, x.Clock):
        return (
            expression.year in (None, day.year)
            and expression.month in (None, day.month)
            and expression.day in (None, day.day)
        )
    fields = texts.cron(expression.text)
    on_day, on_weekday = day.day in fields.days, day.isoweekday() % 7 in fields.weekdays
    matches = (on_day or on_weekday) if fields.either_day else (on_day and on_weekday)
    return day.month in fields.months and matches


def _seconds(expression: x.Clock | x.Cron) -> Int64:
    """The matching seconds of a day, ascending."""
    if isinstance(expression, x.Clock):
        parts = (expression.hour, expression.minute, expression.second)
        hours, minutes, seconds = (
            [part] if part is not None else list(whole)
            for part, whole in zip(parts, (_ALL_HOURS, _ALL_MINUTES, _ALL_MINUTES), strict=True)
        )
    else:
        fields = texts.cron(expression.text)
        hours, minutes, seconds = sorted(fields.hours), sorted(fields.minutes), [0]
    grid = (
        np.array(hours)[:, None, None] * 3600
        + np.array(minutes)[:, None] * 60
        + np.array(seconds)[None, None, :]
    )
    found: Int64 = grid.reshape(-1).astype(np.int64)
    return found


def _of_day(day: date, seconds: Int64, place: ZoneInfo) -> Int64:
    midnight = datetime.combine(day, time(), place)
    offset, following = midnight.utcoffset(), midnight + timedelta(days=1)
    if offset == following.utcoffset() == (midnight - timedelta(hours=2)).utcoffset():
        return (midnight - _EPOCH) // _MICROSECOND + seconds * _SECOND
    found = []
    for second in seconds.tolist():
        local = datetime.combine(day, time(second // 3600, second // 60 % 60, second % 60), place)
        instant = local.astimezone(UTC)
        if instant.astimezone(place).replace(tzinfo=None) == local.replace(tzinfo=None):
            found.append((instant - _EPOCH) // _MICROSECOND)
    return np.unique(np.array(found, dtype=np.int64))


def _no_parameters(rows: int) -> pa.Table:
    return pa.table({"": pa.nulls(rows)}).select([])
