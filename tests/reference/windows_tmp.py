"""Windows as words: which rows of one key each holds, and at which instants it fires.

Written as sets, instant by instant, from the definitions. Rows are occurrences of the event types
of `of`, all of one key; each fills a role.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

from tests.reference.timing import once, to_local
from tests.reference.values import Instance, Occurrence, Role
from tests.reference.where import value_of
from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions.nodes import Duration

Row = tuple[Role, Occurrence]
DAY = 86_400_000_000
EPOCH_DAY = date(1970, 1, 1)


def in_row_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row[1].end, row[1].rank(), row[1].place(), row[0]))


def held(rows: Iterable[Row], end: int) -> Instance:
    """The firing that some rows are: from the first of them to `end`."""
    parameters = frozenset(rows)
    return Instance(min(o.end for _, o in parameters), end, parameters=parameters)


# -- sliding ---------------------------------------------------------------------------------------


def sliding(
    rows: Sequence[Row], span: Duration, every: Duration, zone: str, until: int | None
) -> list[Instance]:
    """At each tick t of `every` the rows in [t - span, t), if there are any. Without `until` what
    holds something runs out."""
    found = []
    for low, tick in ticks([o.end for _, o in rows], span, every, zone):
        inside = [row for row in rows if low <= row[1].end < tick]
        if inside and (until is None or tick <= until):
            found.append(held(inside, tick))
    return found


def ticks(
    times: Sequence[int], span: Duration, every: Duration, zone: str
) -> Iterator[tuple[int, int]]:
    """The ticks whose windows may hold something at these times, each with its window's start:
    multiples of `every` since the epoch; local midnights, if both are whole days."""
    if not times:
        return
    first, last = min(times), max(times) + span.micros
    if span.micros % DAY or every.micros % DAY:
        tick = first // every.micros * every.micros
        while tick <= last:
            yield tick - span.micros, tick
            tick += every.micros
        return
    step, back = every.micros // DAY, span.micros // DAY
    day = to_local(first, zone).date() - timedelta(days=step + 2)
    while day <= to_local(last, zone).date() + timedelta(days=2):
        if (day - EPOCH_DAY).days % step == 0:
            yield midnight(day - timedelta(days=back), zone), midnight(day, zone)
        day += timedelta(days=1)


def midnight(day: date, zone: str) -> int:
    return once(datetime.combine(day, time()), zone)


# -- crossing --------------------------------------------------------------------------------------


def crossing(
    rows: Sequence[Row],
    span: int,
    fire: p.Predicate,
    rearm: p.Predicate | None,
    types: dict[str, str],
    until: int | None,
) -> tuple[list[Instance], list[int]]:
    """What fires, and the instants at which it was armed again. The window (t - span, t] is asked
    once at each instant at which rows enter or leave. `types`: the Spark SQL types of columns.
    `rearm` None: `fire` is not true."""
    entering = {o.end for _, o in rows}
    found, again, armed = list[Instance](), list[int](), True
    for now in sorted(entering | {t + span for t in entering}):
        if until is not None and now > until:
            break
        inside = in_row_order(row for row in rows if now - span < row[1].end <= now)
        fires = true_over(fire, inside, types)
        if armed and inside and fires:
            found.append(held(inside, now))
            armed = False
        elif not armed and (true_over(rearm, inside, types) if rearm else not fires):
            again.append(now)
            armed = True
    return found, again


def true_over(tree: p.Predicate, rows: Sequence[Row], types: dict[str, str]) -> bool:
    """Whether a condition is true of some rows, in their order; null is not."""

    def value(column: p.Column) -> Any:
        assert isinstance(column, p.Aggregate)
        return aggregated(column, [o for _, o in rows], types.get(column.column, "bigint"))

    return value_of(tree, value) is True


def aggregated(of: p.Aggregate, rows: Sequence[Occurrence], kind: str) -> Any:
    if of.column == "*":
        return len(rows)
    fields = [(o.fields.get("old") or {}) if of.old else o.fields for o in rows]
    values = [each[of.column] for each in fields if each.get(of.column) is not None]
    if of.part == "count":
        return len(values)
    if not values:
        return None
    if of.part in ("min", "max"):
        return least(values) if of.part == "min" else greatest(values)
    if of.part == "sum" or kind.startswith("decimal"):
        total = added(values)
        if of.part == "sum":
            return total
        scale = int(kind.rstrip(")").split(",")[1]) + 4
        return rounded(Fraction(total) / len(values), scale)
    return added([float(value) for value in values]) / len(values)


def added(values: Sequence[Any]) -> Any:
    """Whole numbers and decimals without any rounding; doubles from left to right."""
    total: Any = 0.0 if isinstance(values[0], float) else Fraction(0)
    for value in values:
        total += value if isinstance(value, float) else Fraction(value)
    return total


def rounded(value: Fraction, scale: int) -> Fraction:
    """To so many digits behind the point; a half away from zero."""
    digits = Decimal(1).scaleb(-scale)
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    return Fraction(exact.quantize(digits, rounding=ROUND_HALF_UP))


def least(values: Sequence[Any]) -> Any:
    return min(values, key=ordered)


def greatest(values: Sequence[Any]) -> Any:
    return max(values, key=ordered)


def ordered(value: Any) -> Any:
    """NaN is above all numbers."""
    return (value != value, 0 if value != value else value)
