"""`{over: {window: d, of: x, fire: p, rearm: q}}`: instant by instant, as sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.reference.meaning import World
from tests.reference.values import Instance, Occurrence
from tests.reference.where import value_of
from tests.reference.windows.rows import rows_of, together
from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions import windows as w


def detected(e: w.Crossing, world: World) -> list[Instance]:
    return asked(e, world)[0]


def asked(e: w.Crossing, world: World) -> tuple[list[Instance], list[int]]:
    """What fires, and the instants at which it is armed again. The window (t - length, t] is asked
    once at each instant at which rows enter or leave."""
    rows, span = rows_of(e.part, world), e.length.micros
    entering = {row.end for row in rows}
    found, again, armed = list[Instance](), list[int](), True
    for now in sorted(entering | {t + span for t in entering}):
        inside = [row for row in rows if now - span < row.end <= now]
        fires = true_over(e.fire.tree, inside)
        if armed and inside and fires:
            found.append(together(inside, now))
            armed = False
        elif not armed and (true_over(e.rearm.tree, inside) if e.rearm else not fires):
            again.append(now)
            armed = True
    return found, again


def true_over(tree: p.Predicate, rows: Sequence[Instance]) -> bool:
    """Whether a condition is true of some rows, in the order of a firing's; null is not."""
    occurrences = sorted((o for row in rows for _, o in row.parameters), key=Occurrence.order)

    def value(column: p.Column) -> Any:
        assert isinstance(column, p.Aggregate)
        return aggregated(column, occurrences)

    return value_of(tree, value) is True


def aggregated(of: p.Aggregate, rows: Sequence[Occurrence]) -> Any:
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
    if of.part == "sum":
        return added(values)
    if isinstance(values[0], Decimal):
        scale = -int(values[0].as_tuple().exponent)  # all have that of their type
        return rounded(added(values) / len(values), scale + 4)
    return added([float(value) for value in values]) / len(values)


def added(values: Sequence[Any]) -> Any:
    """Whole numbers and decimals without any rounding; doubles from left to right."""
    total: Any = 0.0 if isinstance(values[0], float) else Fraction(0)
    for value in values:
        total += value if isinstance(value, float) else Fraction(value)
    return total


def rounded(value: Fraction, scale: int) -> Fraction:
    """To so many digits behind the point; a half away from zero."""
    digits = math.floor(abs(value) * 10**scale + Fraction(1, 2))
    return Fraction(digits if value >= 0 else -digits, 10**scale)


def least(values: Sequence[Any]) -> Any:
    return min(values, key=ordered)


def greatest(values: Sequence[Any]) -> Any:
    return max(values, key=ordered)


def ordered(value: Any) -> Any:
    """NaN is above all numbers."""
    return (value != value, 0 if value != value else value)
