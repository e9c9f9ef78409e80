"""Aggregates over the rows of each firing: count, count_if, sum, min, max, avg.

Example: rows (f1, 2), (f2, 5), (f1, 3) have the sums f1: 5, f2: 5. Sums of doubles are taken in the
order of the rows. Null is passed over; a sum of nothing is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tidegate.engine.core.columns.decimals import unscaled
from tidegate.engine.core.evaluator.casts import cast
from tidegate.engine.core.evaluator.division import divided
from tidegate.engine.core.evaluator.kinds import (
    WORD_DIGITS,
    common,
    decimal,
    is_decimal,
    is_integer,
    is_number,
)
from tidegate.engine.core.evaluator.nodes import Node, OutsideError, UndecidedError

_SUM_DIGITS, _AVG_DIGITS = 10, 4  # that Spark adds to those of a decimal
_LONG_MAX = 2**63 - 1
_ROWS_A_THREAD = 100_000


@dataclass(frozen=True, slots=True)
class Groups:
    """Which group each row is of: code[i] is below `count`. Groups are numbered as they appear."""

    code: npt.NDArray[np.int64]
    count: int

    @property
    def first(self) -> npt.NDArray[np.int64]:
        """The number of each group's first row."""
        return np.unique(self.code, return_index=True)[1]

    def sizes(self, values: pa.Array | None = None) -> npt.NDArray[np.int64]:
        """How many rows each group has; of `values`, how many that are not null."""
        code = self.code if values is None else self.code[_valid(values)]
        return np.bincount(code, minlength=self.count)


Kernel = Callable[[Groups, pa.Array], pa.Array]


def counted(groups: Groups, values: pa.Array) -> pa.Array:
    return pa.array(groups.sizes(values))


def counted_if(groups: Groups, values: pa.Array) -> pa.Array:
    held = values.fill_null(False).to_numpy(zero_copy_only=False)
    return pa.array(np.bincount(groups.code[held], minlength=groups.count))


def _valid(values: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False))


def _longs(groups: Groups, values: pa.Array) -> npt.NDArray[np.int64]:
    """Sums of integers. Raises UndecidedError where one may overflow."""
    valid = values.drop_null()
    numbers = pc.cast(valid, pa.int64()).to_numpy()
    most = max(abs(int(numbers.min())), abs(int(numbers.max()))) if len(numbers) else 0
    if most * len(numbers) > _LONG_MAX:
        raise UndecidedError
    sums = np.zeros(groups.count, np.int64)
    np.add.at(sums, groups.code[_valid(values)], numbers)
    return sums


def _doubles(groups: Groups, values: pa.Array) -> npt.NDArray[np.float64]:
    """Sums of doubles, each from left to right."""
    code, numbers = groups.code[_valid(values)], values.drop_null().to_numpy()
    return np.bincount(code, numbers, minlength=groups.count).astype(np.float64)


def _or_null(sums: npt.NDArray[Any], groups: Groups, values: pa.Array) -> pa.Array:
    return pa.array(sums, mask=groups.sizes(values) == 0)


def _sum_longs(groups: Groups, values: pa.Array) -> pa.Array:
    return _or_null(_longs(groups, values), groups, values)


def _sum_doubles(groups: Groups, values: pa.Array) -> pa.Array:
    return _or_null(_doubles(groups, values), groups, values)


def _sum_decimals(groups: Groups, values: pa.Array) -> pa.Array:
    rows = pa.table({"g": groups.code, "x": values})
    several = len(rows) > _ROWS_A_THREAD  # to start threads takes longer than to sum a few rows
    table = rows.group_by("g", use_threads=several).aggregate([("x", "sum")])
    sums = table.sort_by("g")["x_sum"].combine_chunks()
    kind = values.type
    return pc.cast(sums, pa.decimal128(kind.precision + _SUM_DIGITS, kind.scale))


def _avg_doubles(groups: Groups, values: pa.Array) -> pa.Array:
    with np.errstate(invalid="ignore"):
        return _or_null(_doubles(groups, values) / groups.sizes(values), groups, values)


def _avg_decimals(groups: Groups, values: pa.Array) -> pa.Array:
    """Averages with four more digits."""
    sums, sizes = _longs(groups, unscaled(values)), groups.sizes(values)
    kind = pa.decimal128(values.type.precision + _AVG_DIGITS, values.type.scale + _AVG_DIGITS)
    found = divided(sums, np.maximum(sizes, 1), _AVG_DIGITS, kind)
    return pc.if_else(pa.array(sizes > 0), found, pa.scalar(None, kind))


def _extreme(groups: Groups, values: pa.Array, *, last: bool) -> pa.Array:
    """The least or greatest value of each group, the first of equal ones (0.0 and -0.0 are). NaN
    is the greatest number."""
    valid = _valid(values)
    code, known = groups.code[valid], values.filter(pa.array(valid))
    table = pa.table({"g": code, "x": known, "row": np.arange(len(code))})
    keys = [("g", "ascending"), ("x", "ascending"), ("row", "descending" if last else "ascending")]
    order = pc.sort_indices(table, sort_keys=keys).to_numpy()
    sizes = np.bincount(code, minlength=groups.count)
    ends = np.cumsum(sizes)
    at = ends - 1 if last else ends - sizes
    some = sizes > 0
    rows = np.zeros(groups.count, np.int64)
    rows[some] = order[at[some]]
    return known.take(pa.array(rows, mask=~some))


def minimum(groups: Groups, values: pa.Array) -> pa.Array:
    return _extreme(groups, values, last=False)


def maximum(groups: Groups, values: pa.Array) -> pa.Array:
    return _extreme(groups, values, last=True)


# -- forms -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of one node's values. `kind`: the type of its results."""

    kind: pa.DataType
    text: str
    part: Node
    kernel: Kernel


def aggregate(word: type[exp.Expr], part: Node) -> Aggregate:
    """The aggregate that a function is of this argument. Raises OutsideError."""
    if part.is_literal:
        raise OutsideError
    kind, part, kernel = AGGREGATES[word](part)
    return Aggregate(kind, f"{word.__name__}({part.text})", part, kernel)


Typed = tuple[pa.DataType, Node, Kernel]


def _count(part: Node) -> Typed:
    return pa.int64(), part, counted


def _count_if(part: Node) -> Typed:
    if part.kind != pa.bool_():
        raise OutsideError
    return pa.int64(), part, counted_if


def _sum(part: Node) -> Typed:
    if is_integer(part.kind):
        return pa.int64(), part, _sum_longs
    if is_decimal(part.kind):
        kind = decimal(part.kind.precision + _SUM_DIGITS, part.kind.scale)
        return kind, part, _sum_decimals
    return pa.float64(), _double(part), _sum_doubles


def _average(part: Node) -> Typed:
    if not is_decimal(part.kind):
        return pa.float64(), _double(part), _avg_doubles
    if part.kind.precision > WORD_DIGITS:
        raise OutsideError
    kind = decimal(part.kind.precision + _AVG_DIGITS, part.kind.scale + _AVG_DIGITS)
    return kind, part, _avg_decimals


def _double(part: Node) -> Node:
    if not is_number(part.kind):
        raise OutsideError
    return cast(part, pa.float64())


def _of_ordered(kernel: Kernel) -> Callable[[Node], Typed]:
    return lambda part: (common(part.kind), part, kernel)


AGGREGATES: Mapping[type[exp.Expr], Callable[[Node], Typed]] = {
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.Sum: _sum,
    exp.Avg: _average,
    exp.Min: _of_ordered(minimum),
    exp.Max: _of_ordered(maximum),
}
