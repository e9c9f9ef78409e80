"""Conditions over the rows of windows: each aggregate of all windows at once, then the condition.

Example: `avg(celsius) > 80` over rows 79, 83 and the windows {79}, {79, 83} has the averages 79
and 81, and is true of the second window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tidegate.engine.core.evaluator.casts import unscaled
from tidegate.engine.core.evaluator.division import divided
from tidegate.engine.core.evaluator.kinds import DIGITS_MAX, is_decimal, is_float, is_integer
from tidegate.engine.core.evaluator.nodes import OutsideError
from tidegate.engine.core.evaluator.predicates import decision, is_small
from tidegate.engine.core.types.spark import spark_type
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.search.asking import column_of
from tidegate.engine.detect.events.graph.search.sifted import Named
from tidegate.engine.detect.events.kernels import moving_windows as kernels
from tidegate.engine.detect.events.kernels.moving_windows import Spans
from tidegate.engine.detect.events.occurrences.instances import Bools, Moment
from tidegate.engine.detect.events.occurrences.order import comparable
from tidegate.rules.analysis.aggregate_types import AVG_DIGITS, AVG_DIGITS_MAX, SUM_DIGITS
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions import predicates as p

_WORD_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition over the rows of a window. `events`: the event types that the rows are of."""

    tree: p.Predicate
    events: tuple[str, ...]


class Windows:
    """Some windows over rows of a step; each aggregate of them is taken once. Row i of the windows
    is the occurrence rows[order[i]]."""

    def __init__(self, spans: Spans, rows: Int64, order: Int64, moment: Moment) -> None:
        self._spans = spans
        self._rows = rows
        self._order = order
        self._moment = moment
        self._columns: dict[p.Column, pa.Array] = {}
        self._taken: dict[p.Aggregate, pa.Array] = {}

    def true(self, of: Condition) -> Bools:
        """Of which windows a condition is true; null is not. Raises `EngineError('where-types')`
        for columns of other types than it can be asked of."""
        taken = {str(one): self._aggregate(one, of.events) for one in p.aggregates(of.tree)}
        return true_of(of.tree, taken, len(self._spans.key))

    def _aggregate(self, of: p.Aggregate, events: tuple[str, ...]) -> pa.Array:
        if of not in self._taken:
            rows = self._order, self._spans.low, self._spans.high
            self._taken[of] = aggregated(of, partial(self._column, of, events), *rows)
        return self._taken[of]

    def _column(self, of: p.Aggregate, events: tuple[str, ...]) -> pa.Array:
        if of.of_rows not in self._columns:
            values = column_of(
                self._moment.numbering.shown(self._rows), Named(of.of_rows, (), events)
            )
            self._columns[of.of_rows] = values[:-1]  # a null stands behind them
        return self._columns[of.of_rows]


def aggregated(
    of: p.Aggregate, column: Callable[[], pa.Array], order: Int64, low: Int64, high: Int64
) -> pa.Array:
    """An aggregate of each window. Window i holds the rows low[i]:high[i], in order of time; row j
    has the value column()[order[j]]. Raises `EngineError('where-types')` for a type that cannot be
    aggregated so."""
    if of.column == p.EVERY_ROW:
        return pa.array(high - low)
    values = column()
    if types.is_null(values.type) and of.part != "count":
        return pa.nulls(len(low))
    try:
        return TAKEN[of.part](_Column(values, order, low, high))
    except OutsideError:
        raise _wrong(f"{of} of {values.type}") from None


def true_of(tree: p.Predicate, taken: Mapping[str, pa.Array], count: int) -> Bools:
    """Of which of `count` windows a condition is true; null is not. `taken`: its aggregates, by
    their text. Raises `EngineError('where-types')` for types that it cannot be asked of."""
    kinds = tuple((name, values.type) for name, values in taken.items())
    try:
        by = decision(tree, kinds, small=is_small(tree, taken))
    except OutsideError:
        raise _wrong(", ".join(f"{name} is {kind}" for name, kind in kinds)) from None
    return by.true(taken, count)


def _wrong(said: str) -> EngineError:
    return EngineError(
        "where-types",
        f"a window cannot be asked this of columns of these types: {said}",
        "change fire or rearm, or the types of the columns",
    )


class _Column:
    """A column in the rows of windows: row i of these has values[order[i]]."""

    def __init__(self, values: pa.Array, order: Int64, low: Int64, high: Int64) -> None:
        self.values, self.kind = values, values.type
        self.order, self.low, self.high = order, low, high

    @cached_property
    def valid(self) -> Bools:
        if not self.values.null_count:
            return np.ones(len(self.order), np.bool_)
        return np.asarray(self.values.is_valid().to_numpy(zero_copy_only=False))[self.order]

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
        return np.asarray(whole.fill_null(0).to_numpy())[self.order]

    @property
    def long_words(self) -> npt.NDArray[np.uint64]:
        """Numbers as words of 128 bits: shape [n, 2], the low ones first."""
        if is_integer(self.kind):
            low = self.words
            return np.stack([low, low >> 63], axis=1).view(np.uint64)
        chunk = self.values
        words = np.frombuffer(chunk.buffers()[1], np.uint64)
        words = words[2 * chunk.offset : 2 * (chunk.offset + len(chunk))]
        return words.reshape(-1, 2)[self.order]

    @property
    def double_sums(self) -> npt.NDArray[np.float64]:
        if not (is_float(self.kind) or is_integer(self.kind)):
            raise OutsideError
        filled = pc.cast(self.values, pa.float64(), safe=False).fill_null(0.0)
        doubles = np.asarray(filled.to_numpy())[self.order]
        found: npt.NDArray[np.float64]
        found = kernels.sums_of_doubles(doubles, self.valid, self.low, self.high)
        return found

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
        """Null where a window has no value."""
        some = self.counts > 0
        return (
            found if some.all() else pc.if_else(pa.array(some), found, pa.scalar(None, found.type))
        )


def _counted(column: _Column) -> pa.Array:
    return pa.array(column.counts)


def _summed(column: _Column) -> pa.Array:
    kind = column.kind
    if is_integer(kind):
        sums = column.small_sums
        if sums is not None:
            return column.or_null(pa.array(sums))
        return column.long_sums(pa.decimal128(p.INTEGERS[spark_type(kind)] + SUM_DIGITS, 0))
    if is_decimal(kind):
        digits = kind.precision + SUM_DIGITS
        if digits > DIGITS_MAX:
            raise OutsideError
        return column.long_sums(pa.decimal128(digits, kind.scale))
    return column.or_null(pa.array(column.double_sums))


def _averaged(column: _Column) -> pa.Array:
    if is_decimal(column.kind):
        return _decimal_averages(column)
    sums, counts = column.double_sums, column.counts
    return pa.array(kernels.quotients(sums, counts), mask=counts == 0)


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
    exact = is_integer(kind) or is_decimal(kind) or types.is_float64(kind)
    if not (exact or types.is_date32(kind) or types.is_timestamp(kind)):
        raise OutsideError
    code = comparable(pa.chunked_array([column.values]), column.order)
    code = code if least else ~code
    at = kernels.least_in(code, column.valid, column.low, column.high)
    row = np.append(column.order, 0)[at]
    return column.values.take(pa.array(row, mask=at < 0))


TAKEN: Mapping[str, Callable[[_Column], pa.Array]] = {
    "count": _counted,
    "sum": _summed,
    "avg": _averaged,
    "min": _least,
    "max": _greatest,
}
