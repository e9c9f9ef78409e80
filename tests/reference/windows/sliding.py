"""`{window: d, every: e, of: x}`: tick by tick, as sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta

from tests.reference.meaning import World
from tests.reference.timing import once, to_local
from tests.reference.values import Instance
from tests.reference.windows.rows import rows_of, together
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.nodes import Duration

DAY = 86_400_000_000
FIRST, MONDAY = date(1970, 1, 1), date(1970, 1, 5)


def detected(e: w.Sliding, world: World) -> list[Instance]:
    """At each tick t of `every` the rows in [t - length, t), if there are any."""
    rows, found = rows_of(e.part, world), []
    for low, tick in ticks([row.end for row in rows], e.length, e.every, world.zone):
        inside = [row for row in rows if low <= row.end < tick]
        if inside:
            found.append(together(inside, tick))
    return found


def ticks(
    times: Sequence[int], length: Duration, every: Duration, zone: str
) -> Iterator[tuple[int, int]]:
    """The ticks whose windows may hold something at these times, each with its window's start:
    multiples of `every` since the epoch, or local midnights if it counts days or months; so long
    before, in local days or months if both do."""
    if not times:
        return
    longest = length.micros + 31 * DAY * length.months
    if not (every.months or every.micros % DAY == 0):
        tick = min(times) // every.micros * every.micros
        while tick <= max(times) + longest:
            yield tick - length.micros, tick
            tick += every.micros
        return
    day = to_local(min(times), zone).date() - timedelta(days=2)
    while day <= to_local(max(times) + longest, zone).date() + timedelta(days=2):
        if on_grid(day, every):
            tick = midnight(day, zone)
            days = length.months or length.micros % DAY == 0
            low = midnight(before(day, length), zone) if days else tick - length.micros
            yield low, tick
        day += timedelta(days=1)


def on_grid(day: date, every: Duration) -> bool:
    """Months count from January 1970, weeks from a Monday, days from 1970-01-01."""
    if every.months:
        return day.day == 1 and ((day.year - 1970) * 12 + day.month - 1) % every.months == 0
    days = every.micros // DAY
    return (day - (FIRST if days % 7 else MONDAY)).days % days == 0


def before(day: date, length: Duration) -> date:
    """So many days before a day; so many months, at the month's end at most."""
    if not length.months:
        return day - timedelta(days=length.micros // DAY)
    year, month = divmod(day.year * 12 + day.month - 1 - length.months, 12)
    for number in range(day.day, 0, -1):
        try:
            return date(year, month + 1, number)
        except ValueError:
            continue
    raise AssertionError


def midnight(day: date, zone: str) -> int:
    return once(datetime.combine(day, time()), zone)
