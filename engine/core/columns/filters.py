"""Filters of a closed list of forms, run on Arrow columns with Spark's meaning (G30).

Forms: `=`, `==`, `<>`, `!=`, `<`, `<=`, `>`, `>=`, `[NOT] IN (literals)`, `[NOT] BETWEEN`,
`IS [NOT] NULL`, bare boolean columns, `AND`, `OR`, `NOT`, parentheses, over plain columns
(`x`, `old.x`, `new.x`) and literals. A comparison is in the list only where Spark would compare
without a cast that could raise, round or depend on a setting; `compile_filter` answers None for
everything else, and Spark decides that. Logic is three-valued; null is not an occurrence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.columns.predicates import (
    Bare,
    Between,
    Column,
    Compare,
    In,
    IsNull,
    Literal,
    Logical,
    Negated,
    Predicate,
    parse_predicate,
)
from tidegate.engine.core.parameters import OLD
from tidegate.engine.core.types.spark import arrow_schema, plain_columns

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


@dataclass(frozen=True, slots=True)
class Filter:
    """A predicate that Arrow may decide. `text` is its normal form: equal texts, equal filters.

    `columns` are the names that it reads: `x` (`new.x` is the same), or `old.x`.
    """

    text: str
    columns: frozenset[str]
    predicate: Predicate

    def run(self, columns: Mapping[str, pa.ChunkedArray]) -> npt.NDArray[np.bool_]:
        """Which rows the predicate is true of (false and null alike are not)."""
        held = _evaluate(self.predicate, columns)
        return np.asarray(held.fill_null(False).to_numpy(), np.bool_)


def compile_filter(text: str, types: Mapping[str, pa.DataType]) -> Filter | None:
    """The filter that `text` is over columns of these types, or None if Spark must decide it.

    `types` are by name, pre-images as `old.x`; where there are any, `new.x` is `x`. Case does not
    matter.
    """
    proper = {name.lower(): name for name in types}
    if any(name.startswith("old.") for name in types):
        proper.update({f"new.{name.lower()}": name for name in types})
    predicate = parse_predicate(text, lambda name: proper.get(name.lower(), name))
    if predicate is None or not _plain(predicate, types):
        return None
    names = frozenset(column.name for column in predicate.columns())
    return Filter(str(predicate), names, predicate)


def _plain(predicate: Predicate, types: Mapping[str, pa.DataType]) -> bool:
    """Whether every leaf compares like with like."""
    match predicate:
        case Logical(_, parts):
            return all(_plain(part, types) for part in parts)
        case Negated(part):
            return _plain(part, types)
        case Bare(column):
            return bool(types.get(column.name) == pa.bool_())
        case IsNull(column):
            return column.name in types
        case In(column, literals):
            return all(_comparable(types.get(column.name), literal) for literal in literals)
        case Between(column, low, high):
            kind = types.get(column.name)
            return _comparable(kind, low) and _comparable(kind, high)
        case Compare(_, column, Literal() as literal):
            return _comparable(types.get(column.name), literal)
        case Compare(_, column, Column() as other):
            kind = types.get(column.name)
            return kind == types.get(other.name) and _ordered(kind)
    return False


def _ordered(kind: pa.DataType | None) -> bool:
    """Types on which Spark and Arrow agree about column against column (no NaN, no collation)."""
    return kind is not None and (
        pa.types.is_signed_integer(kind)
        or pa.types.is_string(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )


def _comparable(kind: pa.DataType | None, literal: Literal) -> bool:
    value = literal.value
    if kind is None:
        return False
    if isinstance(value, bool):
        return bool(pa.types.is_boolean(kind))
    if isinstance(value, str):
        return bool(pa.types.is_string(kind))
    if isinstance(value, date):
        return bool(pa.types.is_date32(kind))
    if isinstance(value, float):
        return bool(pa.types.is_float64(kind))
    if pa.types.is_signed_integer(kind):
        return isinstance(value, int) and -(2**63) <= value < 2**63
    if pa.types.is_float64(kind):
        return True
    return bool(pa.types.is_decimal(kind)) and _fits(value, kind)


def _fits(value: int | Decimal, kind: pa.DataType) -> bool:
    """Whether the literal is a value of the column's scale, and no common type overflows."""
    _, digits, exponent = Decimal(value).as_tuple()
    scale = max(0, -int(exponent))
    integral = max(len(digits) + int(exponent), kind.precision - kind.scale)
    return bool(scale <= kind.scale and integral + kind.scale <= 38)


def _evaluate(predicate: Predicate, columns: Mapping[str, pa.ChunkedArray]) -> pa.ChunkedArray:
    match predicate:
        case Logical(operator, parts):
            combine = pc.and_kleene if operator == "AND" else pc.or_kleene
            held = _evaluate(parts[0], columns)
            for part in parts[1:]:
                held = combine(held, _evaluate(part, columns))
            return held
        case Negated(part):
            return pc.invert(_evaluate(part, columns))
        case Bare(column):
            return columns[column.name]
        case IsNull(column):
            return columns[column.name].is_null()
        case In(column, literals):
            return _is_in(columns[column.name], literals)
        case Between(column, low, high):
            values = columns[column.name]
            return pc.and_kleene(_compare(">=", values, low), _compare("<=", values, high))
        case Compare(operator, column, Column() as other):
            return _OPERATORS[operator](columns[column.name], columns[other.name])
        case Compare(operator, column, Literal() as literal):
            return _compare(operator, columns[column.name], literal)
    raise TypeError(f"{predicate} is not a predicate")


def _compare(operator: str, values: pa.ChunkedArray, literal: Literal) -> pa.ChunkedArray:
    held = _OPERATORS[operator](values, _scalar(literal.value, values.type))
    if operator in (">", ">=") and pa.types.is_float64(values.type):
        return pc.or_kleene(held, pc.is_nan(values))  # for Spark NaN is above every number
    return held


def _is_in(values: pa.ChunkedArray, literals: tuple[Literal, ...]) -> pa.ChunkedArray:
    if pa.types.is_float64(values.type):  # a set lookup tells -0.0 from 0.0
        held = _compare("=", values, literals[0])
        for literal in literals[1:]:
            held = pc.or_kleene(held, _compare("=", values, literal))
        return held
    kind = _literal_type(values.type)
    options = pa.array([literal.value for literal in literals], kind)
    held = pc.is_in(values.cast(kind), value_set=options)
    return pc.if_else(values.is_valid(), held, pa.scalar(None, pa.bool_()))


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_float64(kind):
        value = float(value)
    return pa.scalar(value, _literal_type(kind))


def _literal_type(kind: pa.DataType) -> pa.DataType:
    """A type of the same family that holds every literal that passed `_comparable`."""
    if pa.types.is_signed_integer(kind):
        return pa.int64()
    if pa.types.is_decimal(kind):
        return pa.decimal128(38, kind.scale)
    return kind


def filter_types(schema_json: str, images: bool) -> dict[str, pa.DataType]:
    """The columns that a filter on Arrow may read (G30), pre-images too if the rows have them."""
    plain = plain_columns(schema_json)
    types = {f.name: f.type for f in arrow_schema(schema_json) if f.name in plain}
    return {**types, **{f"{OLD}.{n}": t for n, t in types.items()}} if images else types
