"""Conditions over the rows of windows: each aggregate of all windows at once, then the condition.

Example: `avg(celsius) > 80` over rows 79, 83 and the windows {79}, {79, 83} has the averages 79
and 81, and is true of the second window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tidegate.engine.core.columns.decimals import unscaled
from tidegate.engine.core.evaluator.division import divided
from tidegate.engine.core.evaluator.kinds import DIGITS_MAX, is_decimal, is_float, is_integer
from tidegate.engine.core.evaluator.nodes import OutsideError
from tidegate.engine.core.evaluator.predicates import decision, is_small
from tidegate.engine.core.types.spark import spark_type
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.double_sums import Doubles, DoubleSums
from tidegate.engine.detect.events.graph.search.asking import values_in
from tidegate.engine.detect.events.graph.search.sifted import Named
from tidegate.engine.detect.events.kernels import aggregates as kernels
from tidegate.engine.detect.events.kernels.moving_windows import Spans
from tidegate.engine.detect.events.occurrences.instances import Bools, Moment
from tidegate.engine.detect.events.occurrences.order import numbers
from tidegate.rules.analysis.aggregate_types import AVG_DIGITS, AVG_DIGITS_MAX, SUM_DIGITS
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions import predicates as p

_WORD_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition over the rows of a window. `events`: the event types that the rows are of."""

    tree: p.Predicate
    events: tuple[str, ...]


Values = Callable[[p.Aggregate, tuple[str, ...]], pa.Array]
"""The column of an aggregate in the rows of some event types; raises `EngineError` where it has
several types that it cannot be taken of."""


def values_of_step(rows: Int64, moment: Moment) -> Values:
    """The columns of some occurrences of a step."""

    @cache
    def values(of: p.Aggregate, events: tuple[str, ...]) -> pa.Array:
        named, counted = Named(of.of_rows, (), events), of.part == "count"
        return _unmasked(values_in(moment.numbering.shown(rows), named, counted=counted))

    return values


def _unmasked(values: pa.Array) -> pa.Array:
    """The same; without a mask if nothing is null: with one Arrow takes rows five times slower."""
    if values.null_count or types.is_null(values.type):
        return values
    buffers = [None, *values.buffers()[1:]]
    return pa.Array.from_buffers(values.type, len(values), buffers, offset=values.offset)


def _masked(values: pa.Array, valid: Bools) -> pa.Array:
    """Values of fixed width, null where they are not valid. Arrow's `if_else` copies them."""
    mask = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(values.type, len(values), [mask, values.buffers()[1]])


class Windows:
    """Some windows over rows; each aggregate of them is taken once. Row i of the windows has the
    value order[i] of a column that `values` gives."""

    def __init__(self, spans: Spans, order: Int64, values: Values) -> None:
        self._spans = spans
        self._order = order
        self._values = values
        self._columns: dict[p.Column, _Column] = {}
        self._taken: dict[p.Aggregate, pa.Array] = {}

    def true(self, of: Condition) -> Bools:
        """Of which windows a condition is true; null is not. Raises `EngineError('where-types')`
        for columns of other types than it can be asked of."""
        taken = self.aggregates(of)
        kinds = tuple((name, values.type) for name, values in taken.items())
        small = is_small(of.tree, taken)
        try:
            by = decision(of.tree, kinds, small=small)
        except OutsideError:
            raise _wrong(", ".join(f"{name} is {kind}" for name, kind in kinds)) from None
        near = {one: sums for one in p.aggregates(of.tree) if (sums := self._near(one)) is not None}
        if near:
            unsure = np.zeros(len(self._spans.key), np.bool_)
            for atom in of.tree.walk():
                if isinstance(atom, p.Comparison):
                    unsure |= self._unsure(atom, near, taken, small=small)
            for one, sums in near.items():
                sums.sum_anew(unsure)
                del self._taken[one]
            taken = self.aggregates(of)
        return by.true(taken, len(self._spans.key))

    def _near(self, of: p.Aggregate) -> DoubleSums | None:
        """The sums that an aggregate is made of, where some of them are near ones."""
        column = self._columns.get(of.of_rows)
        sums = column.double_sums if column and column.of_doubles(of.part) else None
        return sums if sums and not sums.exact and sums.near.any() else None

    def _unsure(
        self,
        atom: p.Comparison,
        near: Mapping[p.Aggregate, DoubleSums],
        taken: Mapping[str, pa.Array],
        *,
        small: bool,
    ) -> Bools:
        """The windows in which a comparison of near sums may be another than that of the sums from
        left to right. That is the same where the least and the greatest that a sum may be are on
        one side of what it is compared with."""
        inside = [node for node in atom.walk() if isinstance(node, p.Aggregate) and node in near]
        unsure = np.zeros(len(self._spans.key), np.bool_)
        for one in inside:
            unsure |= near[one].near
        if len(inside) != 1 or inside[0] not in (atom.left, atom.right):
            return unsure
        (one,) = inside
        column, sums = self._columns[one.of_rows], near[one]
        kinds = tuple((name, values.type) for name, values in taken.items())
        apart = np.isinf(sums.off)
        with np.errstate(invalid="ignore"):  # infinity may be off by infinity
            ends = sums.sums - sums.off, sums.sums + sums.off
        for sign in ("<", "<="):
            by = decision(replace(atom, operator=sign), kinds, small=small)
            least, most = (
                by.true({**taken, str(one): OF_DOUBLES[one.part](column, end)}, len(unsure))
                for end in ends
            )
            apart |= least != most
        return np.asarray(unsure & apart)

    def aggregates(self, of: Condition) -> Mapping[str, pa.Array]:
        """What a condition names of each window, by its text. Sums of doubles over long windows may
        differ in their last digits from those that are added from left to right."""
        return {str(one): self._aggregate(one, of.events) for one in p.aggregates(of.tree)}

    def _aggregate(self, of: p.Aggregate, events: tuple[str, ...]) -> pa.Array:
        if of not in self._taken:
            self._taken[of] = self._take(of, events)
        return self._taken[of]

    def _take(self, of: p.Aggregate, events: tuple[str, ...]) -> pa.Array:
        low, high = self._spans.low, self._spans.high
        if of.column == p.EVERY_ROW:
            return pa.array(high - low)
        column = self._column(of, events)
        if types.is_null(column.kind) and of.part != "count":
            return pa.nulls(len(low))
        try:
            return TAKEN[of.part](column)
        except OutsideError:
            raise _wrong(f"{of} of {column.kind}") from None

    def _column(self, of: p.Aggregate, events: tuple[str, ...]) -> _Column:
        if of.of_rows not in self._columns:
            values = self._values(of, events).take(pa.array(self._order))
            column = _Column(values, self._spans.low, self._spans.high)
            self._columns[of.of_rows] = column
        return self._columns[of.of_rows]


def _wrong(said: str) -> EngineError:
    return EngineError(
        "where-types",
        f"a window cannot be asked this of columns of these types: {said}",
        "change fire or rearm, or the types of the columns",
    )


class _Column:
    """A column in the rows of windows."""

    def __init__(self, values: pa.Array, low: Int64, high: Int64) -> None:
        self.values, self.kind = values, values.type
        self.low, self.high = low, high

    @cached_property
    def valid(self) -> Bools:
        if not self.values.null_count:
            return np.ones(len(self.values), np.bool_)
        return np.asarray(self.values.is_valid().to_numpy(zero_copy_only=False))

    @cached_property
    def counts(self) -> Int64:
        """How many values each window has."""
        if not self.values.null_count:
            return self.high - self.low
        found: Int64 = kernels.counts_in(self.valid, self.low, self.high)
        return found

    @property
    def words(self) -> Int64:
        whole = unscaled(self.values) if is_decimal(self.kind) else pc.cast(self.values, pa.int64())
        return np.asarray(whole.fill_null(0).to_numpy())

    @property
    def long_words(self) -> npt.NDArray[np.uint64]:
        """Numbers as words of 128 bits: shape [n, 2], the low ones first."""
        if is_integer(self.kind):
            low = self.words
            return np.stack([low, low >> 63], axis=1).view(np.uint64)
        chunk = self.values
        words = np.frombuffer(chunk.buffers()[1], np.uint64)
        words = words[2 * chunk.offset : 2 * (chunk.offset + len(chunk))]
        return words.reshape(-1, 2)

    @cached_property
    def double_sums(self) -> DoubleSums:
        doubles = pc.cast(self.values, pa.float64(), safe=False)
        filled = doubles.fill_null(0.0) if doubles.null_count else doubles
        return DoubleSums(np.asarray(filled.to_numpy()), self.low, self.high)

    def of_doubles(self, part: str) -> bool:
        """Whether an aggregate of it is made of sums of doubles."""
        doubles = is_float(self.kind) or (part == "avg" and is_integer(self.kind))
        return doubles and part in OF_DOUBLES

    @property
    def small_sums(self) -> Int64 | None:
        """Sums of whole numbers, or of the digits of decimals, if all have 64 bits."""
        words = self.words
        most = max(abs(int(words.min(initial=0))), abs(int(words.max(initial=0))))
        if most * int((self.high - self.low).max(initial=0)) > _WORD_MAX:
            return None
        found: Int64 = kernels.sums_of_words(words, self.valid, self.low, self.high)
        return found

    def long_sums(self, kind: pa.DataType) -> pa.Array:
        """Sums of 128 bits as decimals."""
        words = kernels.sums_of_long_words(self.long_words, self.valid, self.low, self.high)
        values = pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(words.tobytes())])
        return self.or_null(values)

    def or_null(self, found: pa.Array) -> pa.Array:
        """Null where a window has no value; `found` has no nulls."""
        some = self.counts > 0
        return found if some.all() else _masked(found, some)


def _counted(column: _Column) -> pa.Array:
    return pa.array(column.counts)


def _summed(column: _Column) -> pa.Array:
    kind = column.kind
    if column.of_doubles("sum"):
        return _doubles_summed(column, column.double_sums.sums)
    if is_integer(kind):
        sums = column.small_sums
        if sums is not None:
            return column.or_null(pa.array(sums))
        return column.long_sums(pa.decimal128(p.INTEGERS[spark_type(kind)] + SUM_DIGITS, 0))
    if not is_decimal(kind) or kind.precision + SUM_DIGITS > DIGITS_MAX:
        raise OutsideError
    return column.long_sums(pa.decimal128(kind.precision + SUM_DIGITS, kind.scale))


def _averaged(column: _Column) -> pa.Array:
    if column.of_doubles("avg"):
        return _doubles_averaged(column, column.double_sums.sums)
    if not is_decimal(column.kind):
        raise OutsideError
    return _decimal_averages(column)


def _doubles_summed(column: _Column, sums: Doubles) -> pa.Array:
    return column.or_null(pa.array(sums))


def _doubles_averaged(column: _Column, sums: Doubles) -> pa.Array:
    return column.or_null(pa.array(kernels.quotients(sums, column.counts)))


def _decimal_averages(column: _Column) -> pa.Array:
    kind, counts = column.kind, column.counts
    if kind.precision > AVG_DIGITS_MAX:
        raise OutsideError
    found = pa.decimal128(kind.precision + AVG_DIGITS, kind.scale + AVG_DIGITS)
    small = column.small_sums
    if small is not None:
        return column.or_null(divided(small, np.maximum(counts, 1), AVG_DIGITS, found))
    sums = column.long_sums(pa.decimal128(kind.precision + SUM_DIGITS, kind.scale))
    digits = Decimal(1).scaleb(-found.scale)
    with localcontext(prec=2 * DIGITS_MAX, rounding=ROUND_HALF_UP):
        of_each = zip(sums.to_pylist(), counts.tolist(), strict=True)
        values = [None if s is None else (s / count).quantize(digits) for s, count in of_each]
    return pa.array(values, found)


def _least(column: _Column) -> pa.Array:
    return _extreme(column, least=True)


def _greatest(column: _Column) -> pa.Array:
    return _extreme(column, least=False)


def _extreme(column: _Column, *, least: bool) -> pa.Array:
    kind = column.kind
    number = is_integer(kind) or is_decimal(kind) or is_float(kind)
    if not (number or types.is_date32(kind) or types.is_timestamp(kind)):
        raise OutsideError
    # floats alone are refused: these stand beside doubles, in rows that are not at hand
    values = pc.cast(column.values, pa.float64()) if is_float(kind) else column.values
    code = numbers(pa.chunked_array([values]))
    code = code if least else ~code
    at = kernels.least_in(code, column.valid, column.low, column.high)
    return values.take(pa.array(at, mask=at < 0))


TAKEN: Mapping[str, Callable[[_Column], pa.Array]] = {
    "count": _counted,
    "sum": _summed,
    "avg": _averaged,
    "min": _least,
    "max": _greatest,
}
OF_DOUBLES: Mapping[str, Callable[[_Column, Doubles], pa.Array]] = {
    "sum": _doubles_summed,
    "avg": _doubles_averaged,
}
"""Aggregates that are made of sums of doubles."""
