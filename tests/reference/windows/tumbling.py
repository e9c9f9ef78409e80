"""`{window: d, of: x}`: `[t - d, t)` for each t on the grid of d that has an x inside."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import pairwise

from tests.reference.meaning import World
from tests.reference.timing import once, to_local
from tests.reference.values import Instance
from tests.reference.windows.rows import rows_of, together
from tidegate.rules.expressions.nodes import Duration
from tidegate.rules.expressions.windows import Tumbling

_DAY = timedelta(days=1)
_DAY_MICROS = 86_400_000_000


def detected(e: Tumbling, world: World) -> list[Instance]:
    rows = rows_of(e.part, world)
    if not rows:
        return []
    found = []
    for begin, end in pairwise(grid(e.length, rows[0].end, rows[-1].end, world.zone)):
        inside = [row for row in rows if begin <= row.end < end]
        if inside:
            found.append(together(inside, end))
    return found


def grid(length: Duration, first: int, last: int, zone: str) -> list[int]:
    """Each t on the grid, from before one instant to after another."""
    if length.months or length.micros % _DAY_MICROS == 0:
        begin, end = (to_local(instant, zone).date() for instant in (first, last))
        around = (max(length.months, 1) * 31 + length.micros // _DAY_MICROS + 1) * _DAY
        days = range((end - begin + 2 * around).days)
        firsts = [day for day in (begin - around + n * _DAY for n in days) if _fits(day, length)]
        midnights = {datetime(day.year, day.month, day.day) for day in firsts}
        return sorted({once(midnight, zone) for midnight in midnights})
    d = length.micros
    return [number * d for number in range(first // d, last // d + 2)]


def _fits(day: date, length: Duration) -> bool:
    """Whether a day is on the grid of some months, weeks or days."""
    if length.months:
        months = (day.year - 1970) * 12 + day.month - 1
        return day.day == 1 and months % length.months == 0
    days = length.micros // _DAY_MICROS
    since = date(1970, 1, 5) if days % 7 == 0 else date(1970, 1, 1)
    return (day - since).days % days == 0
