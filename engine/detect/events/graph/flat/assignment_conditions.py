"""A `where` as the scan over assignments asks it. What names one place is asked of each occurrence
there, once. A comparison of two places is decided while assignments are made, by numbers in the
order of its sides' values: `b.v > 5 * a.v` by v of each b and 5 * v of each a. The rest is asked of
the assignments that are left."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tidegate.engine.core.columns.decimals import unscaled
from tidegate.engine.core.evaluator.nodes import Rows
from tidegate.engine.core.evaluator.predicates import is_small, sides
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.flat.assignment_scan import (
    EQUAL,
    LESS,
    MORE,
    Comparisons,
)
from tidegate.engine.detect.events.graph.flat.line import COUNT, FROM, TO, Layout, Line
from tidegate.engine.detect.events.graph.search.asking import (
    Shown,
    outside,
    true_of,
    types_of,
    values_in,
)
from tidegate.engine.detect.events.graph.search.sifted import Named, Sifted
from tidegate.engine.detect.events.occurrences import order
from tidegate.engine.detect.events.occurrences.instances import Bools, Moment
from tidegate.rules.expressions import predicates as p

SIGNS = {
    "<": LESS,
    "<=": LESS | EQUAL,
    "=": EQUAL,
    "<>": LESS | MORE,
    ">=": MORE | EQUAL,
    ">": MORE,
}
DIGITS_MAX = 18  # of a decimal whose digits are a number of 64 bits


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is asked of the positions of a line. `fits`: whether a position may be in an assignment.
    `rest`: None if nothing is left to ask."""

    fits: Bools
    compared: Comparisons
    rest: Sifted | None


def conditions_of(asked: Sifted, layout: Layout, line: Line, moment: Moment) -> Conditions:
    """A condition's conjuncts, each where it is asked."""
    places = _Places(asked, layout, line, moment)
    fits, rest = np.ones(len(line.code), dtype=np.bool_), list[p.Predicate]()
    between, signs, values = list[tuple[int, int]](), list[int](), list[Int64]()
    for condition in p.conjuncts(asked.condition):
        named = places.of(condition)
        if len(named) == 1:
            (place,) = named
            at, columns = places.positions(place), places.columns(condition, place)
            small = is_small(condition, columns)
            fits[at] &= true_of(condition, columns, len(at), small=small)
        elif isinstance(condition, p.Comparison) and (two := places.sides(condition)):
            between.append(two)
            signs.append(SIGNS[condition.operator])
            values.append(places.compared(condition, two, fits))
        else:
            rest.append(condition)
    compared = Comparisons(
        np.array(between, dtype=np.int64).reshape(len(between), 2),
        np.array(signs, dtype=np.int64),
        np.array(values, dtype=np.int64).reshape(len(values), len(line.code)),
    )
    return Conditions(fits, compared, _joined(asked, rest) if rest else None)


def _joined(asked: Sifted, conditions: list[p.Predicate]) -> Sifted:
    """These conditions as one."""
    whole = conditions[0] if len(conditions) == 1 else p.Chain("and", tuple(conditions))
    columns = p.columns(whole)
    return replace(
        asked, condition=whole, named=tuple(n for n in asked.named if n.column in columns)
    )


@dataclass
class _Places:
    """The occurrences of a line by their places."""

    asked: Sifted
    layout: Layout
    line: Line
    moment: Moment
    _positions: dict[int, Int64] = field(default_factory=dict)
    _shown: dict[int, Shown] = field(default_factory=dict)
    _columns: dict[tuple[Named, int], pa.Array] = field(default_factory=dict)

    def of(self, condition: p.Predicate) -> set[int]:
        """The places that a condition names; none if one of them may be empty."""
        columns = p.columns(condition)
        roles = [role for n in self.asked.named if n.column in columns for role in n.roles]
        table, places = self.layout.table, {*self.layout.place[roles].tolist()}
        stages = self.layout.stage[[*places]]
        filled = table[stages, COUNT] == table[stages, TO] - table[stages, FROM]
        return places if filled.all() else set()

    def sides(self, condition: p.Comparison) -> tuple[int, int] | None:
        """The places of the left and the right side, where each side names one."""
        match [*self.of(condition.left)], [*self.of(condition.right)]:
            case [left], [right]:
                return left, right
        return None

    def positions(self, place: int) -> Int64:
        if place not in self._positions:
            here = (self.layout.place == place)[self.line.source]
            self._positions[place] = np.flatnonzero(here)
        return self._positions[place]

    def columns(self, condition: p.Predicate, place: int) -> dict[str, pa.Array]:
        """The values of the columns of a condition in a place."""
        columns = p.columns(condition)
        named = [n for n in self.asked.named if n.column in columns]
        return {str(n.column): self._column(n, place) for n in named}

    def _column(self, named: Named, place: int) -> pa.Array:
        if place not in self._shown:
            row = self.line.row[self.positions(place)]
            self._shown[place] = self.moment.numbering.shown(row)
        if (named, place) not in self._columns:
            self._columns[named, place] = values_in(self._shown[place], named)
        return self._columns[named, place]

    def compared(self, condition: p.Comparison, two: tuple[int, int], fits: Bools) -> Int64:
        """The numbers that a comparison of two places compares, by position. A null side is never
        true: it does not fit."""
        of_each = [
            self.columns(side, place)
            for side, place in zip((condition.left, condition.right), two, strict=True)
        ]
        every = of_each[0] | of_each[1]
        types, small = types_of(every), is_small(condition, every)
        with outside(types):
            nodes = sides(condition, types, small=small)
        at = [self.positions(place) for place in two]
        found = np.zeros(len(fits), dtype=np.int64)
        if nodes is None:
            fits[at[0]] = False
            return found
        both = pa.concat_arrays(
            node.run(Rows(columns, len(some)))
            for node, columns, some in zip(nodes, of_each, at, strict=True)
        )
        where = np.concatenate(at)
        found[where] = _numbers(both)
        if both.null_count:
            fits[where] &= both.is_valid().to_numpy(zero_copy_only=False)
        return found


def _numbers(values: pa.Array) -> Int64:
    """Numbers in the order of the values, null anywhere."""
    if pa.types.is_decimal128(values.type) and values.type.precision <= DIGITS_MAX:
        values = unscaled(values)
    return order.numbers(pa.chunked_array([values]))
