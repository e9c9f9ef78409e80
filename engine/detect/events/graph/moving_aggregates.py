"""Conditions over the rows of windows: each aggregate of all windows at once, then the condition.

Example: `avg(celsius) > 80` over rows 79, 83 and the windows {79}, {79, 83} has the averages 79
and 81, and is true of the second window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tidegate.engine.core.evaluator.casts import unscaled
from tidegate.engine.core.evaluator.division import divided
from tidegate.engine.core.evaluator.kinds import is_decimal, is_float, is_integer
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
_DIGITS_MAX = 38


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition over the rows of a window. `events`: the event types that the rows are of."""

    tree: p.Predicate
    events: tuple[str, ...]


class Windows:
    """Some windows over rows of a step; each aggregate of them is taken once. rows[i] is the
    occurrence that row i of the windows is."""

    def __init__(self, spans: Spans, rows: Int64, moment: Moment) -> None:
        self._spans = spans
        self._rows = rows
        self._moment = moment
        self._columns: dict[tuple[str, bool], pa.Array] = {}
        self._taken: dict[p.Aggregate, pa.Array] = {}

    def true(self, of: Condition) -> Bools:
        """Of which windows a condition is true; null is not. Raises `EngineError('where-types')`
        for columns of other types than it can be asked of."""
        taken = {str(one): self._aggregate(one, of.events) for one in p.aggregates(of.tree)}
        kinds = tuple((name, values.type) for name, values in taken.items())
        try:
            by = decision(of.tree, kinds, small=is_small(of.tree, taken))
        except OutsideError:
            raise _wrong(", ".join(f"{name} is {kind}" for name, kind in kinds)) from None
        return by.true(taken, len(self._spans.key))

    def _aggregate(self, of: p.Aggregate, events: tuple[str, ...]) -> pa.Array:
        if of not in self._taken:
            self._taken[of] = self._take(of, events)
        return self._taken[of]

    def _take(self, of: p.Aggregate, events: tuple[str, ...]) -> pa.Array:
        low, high = self._spans.low, self._spans.high
        if of.column == p.EVERY_ROW:
            return pa.array(high - low)
        values = self._column(of, events)
        if types.is_null(values.type) and of.part != "count":
            return pa.nulls(len(low))
        try:
            return TAKEN[of.part](_Column(values), low, high)
        except OutsideError:
            raise _wrong(f"{of} of {values.type}") from None

    def _column(self, of: p.Aggregate, events: tuple[str, ...]) -> pa.Array:
        name = of.column, of.old
        if name not in self._columns:
            values = column_of(self._moment, self._rows, Named(of.of_rows, (), events))
            self._columns[name] = values[:-1]  # a null stands behind them
        return self._columns[name]


def _wrong(said: str) -> EngineError:
    return EngineError(
        "where-types",
        f"a window cannot be asked this of columns of these types: {said}",
        "change fire or rearm, or the types of the columns",
    )


class _Column:
    """The values of a column in the rows of the windows."""

    def __init__(self, values: pa.Array) -> None:
        self.values = values
        self.kind = values.type

    @property
    def valid(self) -> Bools:
        return np.asarray(self.values.is_valid().to_numpy(zero_copy_only=False), np.bool_)

    @property
    def doubles(self) -> np.ndarray:
        filled = pc.cast(self.values, pa.float64(), safe=False).fill_null(0.0)
        return np.asarray(filled.to_numpy())

    @property
    def words(self) -> Int64:
        whole = unscaled(self.values) if is_decimal(self.kind) else pc.cast(self.values, pa.int64())
        return np.asarray(whole.fill_null(0).to_numpy())

    @property
    def long_words(self) -> np.ndarray:
        """The digits of numbers as words of 128 bits: shape [n, 2], the low ones first."""
        if is_integer(self.kind):
            low = self.words
            return np.stack([low, low >> 63], axis=1).view(np.uint64)
        chunk = self.values
        words = np.frombuffer(chunk.buffers()[1], np.uint64)
        return words[2 * chunk.offset : 2 * (chunk.offset + len(chunk))].reshape(-1, 2)


def _counted(column: _Column, low: Int64, high: Int64) -> pa.Array:
    return pa.array(kernels.counts_in(column.valid, low, high))


def _summed(column: _Column, low: Int64, high: Int64) -> pa.Array:
    if is_integer(column.kind):
        sums = _small_sums(column, low, high)
        if sums is not None:
            return _or_null(sums, column, low, high)
        digits = p.INTEGERS[spark_type(column.kind)] + SUM_DIGITS
        return _long_sums(column, low, high, pa.decimal128(digits, 0))
    if is_decimal(column.kind):
        digits = column.kind.precision + SUM_DIGITS
        if digits > _DIGITS_MAX:
            raise OutsideError
        return _long_sums(column, low, high, pa.decimal128(digits, column.kind.scale))
    return _or_null(_double_sums(column, low, high), column, low, high)


def _averaged(column: _Column, low: Int64, high: Int64) -> pa.Array:
    if is_decimal(column.kind):
        return _decimal_averages(column, low, high)
    counts = kernels.counts_in(column.valid, low, high)
    averages = _double_sums(column, low, high) / np.maximum(counts, 1)
    return _or_null(averages, column, low, high)


def _decimal_averages(column: _Column, low: Int64, high: Int64) -> pa.Array:
    kind = column.kind
    if kind.precision > AVG_DIGITS_MAX:
        raise OutsideError
    counts = kernels.counts_in(column.valid, low, high)
    found = pa.decimal128(kind.precision + AVG_DIGITS, kind.scale + AVG_DIGITS)
    sums = _small_sums(column, low, high)
    if sums is not None:
        values = divided(sums, np.maximum(counts, 1), AVG_DIGITS, found)
        return pc.if_else(pa.array(counts > 0), values, pa.scalar(None, found))
    sums = _long_sums(column, low, high, pa.decimal128(kind.precision + SUM_DIGITS, kind.scale))
    digits = Decimal(1).scaleb(-found.scale)
    with localcontext(prec=2 * _DIGITS_MAX, rounding=ROUND_HALF_UP):
        of_each = zip(sums.to_pylist(), counts.tolist(), strict=True)
        values = [None if s is None else (s / count).quantize(digits) for s, count in of_each]
    return pa.array(values, found)


def _small_sums(column: _Column, low: Int64, high: Int64) -> Int64 | None:
    """Sums of whole numbers, or of the digits of decimals, if all have 64 bits."""
    words = column.words
    most = max(abs(int(words.min(initial=0))), abs(int(words.max(initial=0))))
    if most * kernels.of_longest(low, high) > _WORD_MAX:
        return None
    found: Int64 = kernels.sums_of_words(words, column.valid, low, high)
    return found


def _long_sums(column: _Column, low: Int64, high: Int64, kind: pa.DataType) -> pa.Array:
    """Sums of 128 bits as decimals."""
    words = kernels.sums_of_long_words(column.long_words, column.valid, low, high)
    some = pa.array(kernels.inside_of(column.valid, low, high))
    values = pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(words.tobytes())])
    return pc.if_else(some, values, pa.scalar(None, kind))


def _double_sums(column: _Column, low: Int64, high: Int64) -> np.ndarray:
    if not (is_float(column.kind) or is_integer(column.kind)):
        raise OutsideError
    found: np.ndarray = kernels.sums_of_doubles(column.doubles, column.valid, low, high)
    return found


def _or_null(found: np.ndarray, column: _Column, low: Int64, high: Int64) -> pa.Array:
    return pa.array(found, mask=~kernels.inside_of(column.valid, low, high))


def _least(column: _Column, low: Int64, high: Int64) -> pa.Array:
    return _extreme(column, low, high, 1)


def _greatest(column: _Column, low: Int64, high: Int64) -> pa.Array:
    return _extreme(column, low, high, -1)


def _extreme(column: _Column, low: Int64, high: Int64, sign: int) -> pa.Array:
    kind = column.kind
    exact = is_integer(kind) or is_decimal(kind) or types.is_float64(kind)
    if not (exact or types.is_date32(kind) or types.is_timestamp(kind)):
        raise OutsideError
    code = comparable(pa.chunked_array([column.values]), np.arange(len(column.values)))
    code = code if sign > 0 else ~code
    at = kernels.least_in(code, column.valid, low, high)
    return column.values.take(pa.array(at, mask=at < 0))


TAKEN: Mapping[str, Callable[[_Column, Int64, Int64], pa.Array]] = {
    "count": _counted,
    "sum": _summed,
    "avg": _averaged,
    "min": _least,
    "max": _greatest,
}
