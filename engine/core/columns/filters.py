"""Filters of a closed list of forms, run on Arrow columns with Spark's meaning (G30).

Forms: `=`, `==`, `<>`, `!=`, `<`, `<=`, `>`, `>=`, `[NOT] IN (literals)`, `[NOT] BETWEEN`,
`IS [NOT] NULL`, bare boolean columns, `AND`, `OR`, `NOT`, parentheses, over plain columns
(`x`, `old.x`, `new.x`) and literals. A comparison is in the list only where Spark would compare
without a cast that could raise, round or depend on a setting; `compile_filter` answers None for
everything else, and Spark decides that. Logic is three-valued; null is not an occurrence.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tidegate.engine.core.parameters import OLD
from tidegate.engine.core.types.spark import arrow_schema, plain_columns
from tidegate.rules.sql.tree import tree_of

Columns = Mapping[str, pa.ChunkedArray]
Value = int | Decimal | float | str | bool | date

_OPERATORS: Mapping[type[exp.Expr], tuple[str, Callable[[Any, Any], Any]]] = {
    exp.EQ: ("=", pc.equal),
    exp.NEQ: ("<>", pc.not_equal),
    exp.LT: ("<", pc.less),
    exp.LTE: ("<=", pc.less_equal),
    exp.GT: (">", pc.greater),
    exp.GTE: (">=", pc.greater_equal),
}
_FLIPPED: dict[Any, Any] = {exp.LT: exp.GT, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.GTE: exp.LTE}
_DATE = re.compile(r"\bdate\s*('[^']*')", re.IGNORECASE)
_WORD = re.compile(r"'[^']*'|`[^`]*`|\bNOT\s+IS\b|\w+|[<>=!]+|\S")
_SPELLED = {"==": "=", "!=": "<>"}
_TYPES = {bool: pa.bool_(), str: pa.string(), date: pa.date32(), float: pa.float64()}
_MOST_DIGITS = 38  # of a decimal


class _OutsideTheList(Exception):
    """The text is not of a form that Arrow may decide."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A predicate that Arrow may decide. `text` is its normal form: equal texts, equal filters.

    `columns` are the names that it reads: `x` (`new.x` is the same), or `old.x`. `evaluate` gives
    true, false or null for each row.
    """

    text: str
    columns: frozenset[str]
    evaluate: Callable[[Columns], pa.ChunkedArray]

    def run(self, columns: Columns) -> npt.NDArray[np.bool_]:
        """Which rows the predicate is true of (false and null alike are not)."""
        held = self.evaluate(columns)
        return np.asarray(held.fill_null(False).to_numpy(), np.bool_)


def compile_filter(text: str, types: Mapping[str, pa.DataType]) -> Filter | None:
    """The filter that `text` is over columns of these types, or None if Spark must decide it.

    `types` are by name, pre-images as `old.x`; where there are any, `new.x` is `x`. Case does not
    matter.
    """
    tree = tree_of(text, expression=True)
    if tree is None or "\\" in text or _words(text) != _words(tree.sql("spark")):
        return None
    proper = {name.lower(): name for name in types}
    if any(name.startswith("old.") for name in types):
        proper.update({f"new.{name.lower()}": name for name in types})
    try:
        return _Compiler(proper, types).filter(tree)
    except _OutsideTheList:
        return None


def _words(text: str) -> Counter[str]:
    """The words of a text. sqlglot also takes what Spark does not, such as `x BETWEEN 1 2`, and
    writes it as it should be."""
    cast = _DATE.sub(r"CAST(\1 AS DATE)", text)
    return Counter(_SPELLED.get(word, word) for word in _WORD.findall(cast.upper()))


class _Compiler:
    """Makes filters of sqlglot's trees. Everything outside the list raises _OutsideTheList."""

    def __init__(self, proper: Mapping[str, str], types: Mapping[str, pa.DataType]) -> None:
        self._proper = proper
        self._types = types

    def filter(self, node: exp.Expr) -> Filter:
        match node:
            case exp.Paren():
                return self.filter(node.this)
            case exp.And() | exp.Or():
                return _joined([self.filter(part) for part in node.flatten()], node)
            case exp.Not():
                part = self.filter(node.this)
                text = f"NOT {part.text}"
                return Filter(text, part.columns, lambda rows: pc.invert(part.evaluate(rows)))
            case exp.Column():
                name, kind = self._column(node)
                if kind != pa.bool_():
                    raise _OutsideTheList
                return _of(name, "", lambda values: values)
            case exp.Is(this=column, expression=exp.Null()):
                name, _ = self._column(column)
                return _of(name, "IS NULL", lambda values: values.is_null())
            case exp.In(this=column, expressions=[_, *_] as options):
                name, kind = self._column(column)
                values = [_literal(option, kind) for option in options]
                return _of(name, f"IN {values}", lambda rows: _is_in(rows, values))
            case exp.Between(this=column):
                name, kind = self._column(column)
                low, high = (_literal(node.args[end], kind) for end in ("low", "high"))
                says = f"BETWEEN {low!r} AND {high!r}"
                return _of(name, says, lambda rows: _is_between(rows, low, high))
            case exp.Binary() if type(node) in _OPERATORS:
                return self._compare(type(node), node.this, node.expression)
        raise _OutsideTheList

    def _column(self, node: exp.Expr) -> tuple[str, pa.DataType]:
        """A column's proper name, and its type."""
        if not isinstance(node, exp.Column):
            raise _OutsideTheList
        name = self._proper.get(".".join(part.name for part in node.parts).lower(), "")
        if name not in self._types:
            raise _OutsideTheList
        return name, self._types[name]

    def _compare(self, operator: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> Filter:
        if not isinstance(left, exp.Column):
            left, right, operator = right, left, _FLIPPED.get(operator, operator)
        sign, compare = _OPERATORS[operator]
        name, kind = self._column(left)
        if not isinstance(right, exp.Column):
            value = _literal(right, kind)
            text = f"{sign} {value!r}"
            return _of(name, text, lambda rows: _compare(operator, rows, value))
        other, other_kind = self._column(right)
        if kind != other_kind or not _ordered(kind):
            raise _OutsideTheList
        text = f"`{name}` {sign} `{other}`"
        return Filter(text, frozenset({name, other}), lambda rows: compare(rows[name], rows[other]))


def _joined(parts: Sequence[Filter], node: exp.Expr) -> Filter:
    word, combine = ("AND", pc.and_kleene) if isinstance(node, exp.And) else ("OR", pc.or_kleene)
    text = f" {word} ".join(part.text for part in parts)
    columns = frozenset[str]().union(*(part.columns for part in parts))
    return Filter(
        f"({text})", columns, lambda rows: reduce(combine, (p.evaluate(rows) for p in parts))
    )


def _of(name: str, says: str, evaluate: Callable[[pa.ChunkedArray], pa.ChunkedArray]) -> Filter:
    """A filter that reads one column."""
    text = f"`{name}` {says}"
    return Filter(text, frozenset({name}), lambda rows: evaluate(rows[name]))


def _literal(node: exp.Expr, kind: pa.DataType) -> Value:
    """A literal that compares with a column of this type, without a cast of either."""
    value = _value(node)
    if not _comparable(kind, value):
        raise _OutsideTheList
    return value


def _value(node: exp.Expr) -> Value:
    """An integer, a decimal (`1.5`), a double (`1e3`), a string, a boolean or a date."""
    match node:
        case exp.Neg(this=exp.Literal(is_string=False)):
            return _number("-" + node.this.name)
        case exp.Literal(is_string=True):
            return str(node.name)
        case exp.Literal():
            return _number(node.name)
        case exp.Boolean():
            return bool(node.this)
        case exp.Cast(this=exp.Literal(is_string=True)) if node.to.is_type("date"):
            return _date(node.this.name)
    raise _OutsideTheList


def _number(text: str) -> int | Decimal | float:
    if "e" in text.lower():
        double = float(text)
        if math.isinf(double):
            raise _OutsideTheList
        return double
    if len(text.lstrip("-")) > _MOST_DIGITS:
        raise _OutsideTheList
    return Decimal(text) if "." in text else int(text)


def _date(text: str) -> date:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise _OutsideTheList
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise _OutsideTheList from None


def _ordered(kind: pa.DataType) -> bool:
    """Types on which Spark and Arrow agree about column against column (no NaN, no collation)."""
    plain = (pa.string(), pa.date32(), pa.bool_())
    return kind in plain or bool(pa.types.is_signed_integer(kind) or pa.types.is_decimal(kind))


def _comparable(kind: pa.DataType, value: Value) -> bool:
    if (known := _TYPES.get(type(value))) is not None:
        return bool(kind == known)
    if pa.types.is_signed_integer(kind):
        return isinstance(value, int) and -(2**63) <= value < 2**63
    if pa.types.is_float64(kind):
        return True
    if not isinstance(value, int | Decimal):
        return False
    return bool(pa.types.is_decimal(kind)) and _fits(value, kind)


def _fits(value: int | Decimal, kind: pa.DataType) -> bool:
    """Whether the literal is a value of the column's scale, and no common type overflows."""
    _, digits, exponent = Decimal(value).as_tuple()
    scale = max(0, -int(exponent))
    integral = max(len(digits) + int(exponent), kind.precision - kind.scale)
    return bool(scale <= kind.scale and integral + kind.scale <= 38)


def _compare(operator: type[exp.Expr], values: pa.ChunkedArray, literal: Value) -> pa.ChunkedArray:
    given = float(literal) if pa.types.is_float64(values.type) else literal  # type: ignore[arg-type]
    held = _OPERATORS[operator][1](values, pa.scalar(given, _literal_type(values.type)))
    if operator in (exp.GT, exp.GTE) and pa.types.is_float64(values.type):
        return pc.or_kleene(held, pc.is_nan(values))  # for Spark NaN is above every number
    return held


def _is_between(values: pa.ChunkedArray, low: Value, high: Value) -> pa.ChunkedArray:
    return pc.and_kleene(_compare(exp.GTE, values, low), _compare(exp.LTE, values, high))


def _is_in(values: pa.ChunkedArray, literals: Sequence[Value]) -> pa.ChunkedArray:
    if pa.types.is_float64(values.type):  # a set lookup tells -0.0 from 0.0
        return reduce(pc.or_kleene, (_compare(exp.EQ, values, literal) for literal in literals))
    kind = _literal_type(values.type)
    held = pc.is_in(values.cast(kind), value_set=pa.array(literals, kind))
    return pc.if_else(values.is_valid(), held, pa.scalar(None, pa.bool_()))


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
