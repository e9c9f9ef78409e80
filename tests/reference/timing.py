"""Durations and clocks: S11 and the clock row of semantics 2, by plain enumeration."""

from __future__ import annotations

import calendar
import re
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import holidays

from tidegate.rules.expressions.nodes import BusinessCalendar, BusinessDays, Clock, Cron, Duration

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
SECOND = 1_000_000


def to_micros(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


def to_local(micros: int, zone: str) -> datetime:
    return (EPOCH + micros * MICROSECOND).astimezone(ZoneInfo(zone))


def moved_forward(naive: datetime, zone: str) -> int:
    """Microseconds of a local time of a duration's end; a repeated one is taken first, a skipped
    one moved forward by the gap."""
    return to_micros(naive.replace(tzinfo=ZoneInfo(zone), fold=0))


def readings(naive: datetime, zone: str) -> list[int]:
    """The instants at which the zone's clock reads a local time: none, one or two."""
    both = (to_micros(naive.replace(tzinfo=ZoneInfo(zone), fold=fold)) for fold in (0, 1))
    return sorted({t for t in both if to_local(t, zone).replace(tzinfo=None) == naive})


def once(naive: datetime, zone: str) -> int:
    """The instant at which a local time happens once: a repeated one the first time, a skipped one
    at the first instant after the gap."""
    if found := readings(naive, zone):
        return found[0]
    before, after = (
        to_micros(naive.replace(tzinfo=ZoneInfo(zone), fold=fold)) // SECOND for fold in (1, 0)
    )
    seconds = range(before, after + 1)  # the clock jumps over `naive` at one of these
    return (
        SECOND
        * seconds[
            bisect_right(
                seconds,
                naive,
                key=lambda second: to_local(second * SECOND, zone).replace(tzinfo=None),
            )
        ]
    )


def _is_business_day(day: date, calendar: BusinessCalendar) -> bool:
    if day.weekday() not in calendar.days or day.isoformat() in calendar.excluded:
        return False
    parts = (code.partition("-") for code in calendar.holidays)
    return not any(day in _holidays(country, part, day.year) for country, _, part in parts)


@lru_cache
def _holidays(country: str, part: str, year: int) -> frozenset[date]:
    return frozenset(holidays.country_holidays(country, subdiv=part or None, years=year))


def add(anchor: int, duration: Duration, zone: str, times: int = 1) -> int:
    """anchor + times * duration. Months are counted on the zone's calendar, clamped to the month's
    end; the microseconds after them are exact. Business days are counted one by one."""
    moment = anchor
    if isinstance(duration, BusinessDays):
        local = to_local(anchor, zone).replace(tzinfo=None)
        for _ in range(duration.count * times):
            local += timedelta(days=1)
            while not _is_business_day(local.date(), duration.calendar):
                local += timedelta(days=1)
        return moved_forward(local, zone)
    if duration.months:
        local = to_local(anchor, zone)
        months = local.year * 12 + local.month - 1 + duration.months * times
        year, month = months // 12, months % 12 + 1
        day = min(local.day, calendar.monthrange(year, month)[1])
        moved = local.replace(year=year, month=month, day=day, tzinfo=None)
        moment = moved_forward(moved, zone)
    return moment + duration.micros * times


def _fits(wanted: int | None, value: int) -> bool:
    return wanted is None or wanted == value


def _days(first: int, last: int, zone: str) -> Iterator[date]:
    """The local dates from one instant to another, and one more on either side: a gap may move a
    time to the next date."""
    day = to_local(first, zone).date() - timedelta(days=1)
    end = to_local(last, zone).date() + timedelta(days=1)
    while day <= end:
        yield day
        day += timedelta(days=1)


def _clock_times(clock: Clock, day: date) -> Iterator[datetime]:
    if not (_fits(clock.year, day.year) and _fits(clock.month, day.month)):
        return
    if not _fits(clock.day, day.day):
        return
    for hour in range(24) if clock.hour is None else [clock.hour]:
        for minute in range(60) if clock.minute is None else [clock.minute]:
            for second in range(60) if clock.second is None else [clock.second]:
                yield datetime(day.year, day.month, day.day, hour, minute, second)


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


def _cron_field(text: str, low: int, high: int, names: dict[str, int]) -> set[int]:
    """One field of a Vixie cron line: `*`, n, n-m, lists, steps, three-letter names."""
    chosen: set[int] = set()
    for item in text.lower().split(","):
        part, _, step = item.partition("/")
        for name, number in names.items():
            part = re.sub(rf"\b{name}\b", str(number), part)
        if part == "*":
            first, last = low, high
        else:
            begin, _, end = part.partition("-")
            first = int(begin)
            last = int(end) if end else (high if step else first)
        chosen.update(range(first, last + 1, int(step or 1)))
    return chosen


def _month(day: date) -> list[date]:
    """The dates of a day's month."""
    first = day.replace(day=1)
    dates = [first + timedelta(days=number) for number in range(31)]
    return [each for each in dates if each.month == day.month]


def _days_of_month(item: str, day: date) -> list[date]:
    """The dates of a day's month that an item of a cron line's third field names."""
    month = _month(day)
    if item == "l":
        return month[-1:]
    if item.startswith("l-"):
        return month[::-1][int(item[2:]) :][:1]
    if item.endswith("w"):
        named = month[-1:] if item == "lw" else [d for d in month if d.day == int(item[:-1])]
        working = [d for d in month if d.isoweekday() <= 5]
        return [min(working, key=lambda d: abs(d - to)) for to in named]
    return [each for each in month if each.day in _cron_field(item, 1, 31, {})]


def _days_of_week(item: str, day: date) -> list[date]:
    """The same of its fifth field."""
    names = {w: i for i, w in enumerate(_WEEKDAYS)}
    plain, _, number = item.partition("#")
    last = plain.endswith("l")
    week = {n % 7 for n in _cron_field(plain.removesuffix("l"), 0, 7, names)}
    found = [each for each in _month(day) if each.isoweekday() % 7 in week]
    if last:
        return found[-1:]
    return found[int(number) - 1 :][:1] if number else found


def _cron_times(cron: Cron, day: date) -> Iterator[datetime]:
    minutes, hours, days, months, weekdays = cron.text.split()
    if day.month not in _cron_field(months, 1, 12, {m: i + 1 for i, m in enumerate(_MONTHS)}):
        return
    on_day = any(day in _days_of_month(item, day) for item in days.lower().split(","))
    on_weekday = any(day in _days_of_week(item, day) for item in weekdays.lower().split(","))
    restricted = not days.startswith("*") and not weekdays.startswith("*")
    if not ((on_day or on_weekday) if restricted else (on_day and on_weekday)):
        return
    for hour in sorted(_cron_field(hours, 0, 23, {})):
        for minute in sorted(_cron_field(minutes, 0, 59, {})):
            yield datetime(day.year, day.month, day.day, hour, minute)


def clock_instants(
    expression: Clock | Cron,
    first: int,
    last: int,
    zone: str,
    days: tuple[int, ...] = (),
    excluded: tuple[str, ...] = (),
) -> list[int]:
    """Every matching instant in [first, last] (S11): each matching local time once where the hour
    is given, every reading of one where it is a wildcard. `days` (0 = Monday) and `excluded` (ISO
    dates) are those of a named clock event."""
    if isinstance(expression, Clock):
        wildcard = expression.hour is None
    else:
        wildcard = expression.text.split()[1].startswith("*")
    instants: set[int] = set()
    for day in _days(first, last, zone):
        if (days and day.weekday() not in days) or day.isoformat() in excluded:
            continue
        times = _clock_times if isinstance(expression, Clock) else _cron_times
        for naive in times(expression, day):  # type: ignore[arg-type]
            found = readings(naive, zone) if wildcard else [once(naive, zone)]
            instants.update(instant for instant in found if first <= instant <= last)
    return sorted(instants)
