"""`{over: {window: d, of: x, fire: p, rearm: q}}`: instant by instant, as sets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.reference.meaning import World
from tests.reference.values import Instance, Occurrence
from tests.reference.where import value_of
from tests.reference.windows.rows import Row, held, in_row_order, rows_of
from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions import windows as w



def crossing(
    on: w.Crossing, world: World, types: Mapping[str, str], until: int | None = None
) -> list[Instance]:
    """What fires. The window (t - length, t] is asked once at each instant at which rows enter or
    leave. `types`: the Spark SQL types of columns."""
    return asked(on, world, types, until)[0]


def asked(
    on: w.Crossing, world: World, types: Mapping[str, str], until: int | None = None
) -> tuple[list[Instance], list[int]]:
    """What fires, and the instants at which it is armed again."""
    rows, span = rows_of(on.part, world), on.length.micros
    entering = {o.end for _, o in rows}
    found, again, armed = list[Instance](), list[int](), True
    for now in sorted(entering | {t + span for t in entering}):
        if until is not None and now > until:
            break
        inside = in_row_order(row for row in rows if now - span < row[1].end <= now)
        fires = true_over(on.fire.tree, inside, types)
        if armed and inside and fires:
            found.append(held(inside, now))
            armed = False
        elif not armed and (
            true_over(on.rearm.tree, inside, types) if on.rearm else not fires
        ):
            again.append(now)
            armed = True
    return found, again


def true_over(tree: p.Predicate, rows: Sequence[Row], types: Mapping[str, str]) -> bool:
    """Whether a condition is true of some rows, in their order; null is not."""

    def value(column: p.Column) -> Any:
        assert isinstance(column, p.Aggregate)
        return aggregated(column, [o for _, o in rows], types.get(column.column, ""))

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
    digits = math.floor(abs(value) * 10**scale + Fraction(1, 2))
    return Fraction(digits if value >= 0 else -digits, 10**scale)


def least(values: Sequence[Any]) -> Any:
    return min(values, key=ordered)


def greatest(values: Sequence[Any]) -> Any:
    return max(values, key=ordered)


def ordered(value: Any) -> Any:
    """NaN is above all numbers."""
    return (value != value, 0 if value != value else value)
