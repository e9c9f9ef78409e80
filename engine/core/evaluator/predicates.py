"""The `where` of a rule on Arrow columns: numbers that are whole or decimal are exact.

Whole numbers take part in arithmetic as decimals of their digits, which have room for every result
(`rules.analysis.predicate_types` refuses what has not). Else it means what a `where` of an event
type means (G30).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tidegate.engine.core.evaluator import kernels
from tidegate.engine.core.evaluator.branches import joined
from tidegate.engine.core.evaluator.casts import cast, literal_node
from tidegate.engine.core.evaluator.kinds import (
    DIGITS_MAX,
    common,
    decimal,
    is_decimal,
    is_float,
    is_integer,
    literal_decimal,
)
from tidegate.engine.core.evaluator.nodes import Mask, Node, Rows, Values, column
from tidegate.engine.core.types.spark import arrow_type, spark_type
from tidegate.rules.expressions import predicates as p

Span = tuple[int, int]


class Decision:
    """A condition between constituents, over columns of these types. `columns`: their names."""

    def __init__(
        self, tree: p.Predicate, types: Mapping[str, pa.DataType], *, small: bool = False
    ) -> None:
        """`small`: every result of whole numbers is one of 64 bits (`is_small`)."""
        self.columns = tuple(types)
        self._node = _Maker(types, small=small).node(tree)

    def true(self, columns: Mapping[str, pa.Array], count: int) -> Mask:
        """Which of `count` assignments it is true of; null is not true."""
        held = self._node.run(Rows(columns, count))
        if isinstance(held, pa.Scalar):
            return np.full(count, held.as_py() is True)
        return np.asarray(held.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)


@lru_cache(maxsize=1024)
def decision(
    tree: p.Predicate, types: tuple[tuple[str, pa.DataType], ...], *, small: bool = False
) -> Decision:
    """The decision that a condition is over columns of these types, by name. Raises `OutsideError`
    where the types do not fit."""
    return Decision(tree, dict(types), small=small)


@lru_cache(maxsize=1024)
def sides(
    tree: p.Comparison, types: tuple[tuple[str, pa.DataType], ...], *, small: bool = False
) -> tuple[Node, Node] | None:
    """Both sides of a comparison as values of one type, which compare as it says; None where it is
    null whatever they are. As `decision`."""
    maker = _Maker(dict(types), small=small)
    return _of_one_type(maker.node(tree.left), maker.node(tree.right))


def is_small(tree: p.Predicate, columns: Mapping[str, pa.Array]) -> bool:
    """Whether each result of whole numbers has 64 bits, over these values: sums of small numbers
    are faster than exact ones of any size, and the same."""
    spans: dict[str, Span] = {}
    for name, values in columns.items():
        if is_integer(values.type):
            found = pc.min_max(values).as_py()
            spans[name] = found["min"] or 0, found["max"] or 0
    results = (_span(node, spans) for node in tree.walk())
    return all(span is None or -(2**63) <= span[0] <= span[1] < 2**63 for span in results)


def _span(tree: p.Predicate, spans: Mapping[str, Span]) -> Span | None:
    """The least and the greatest value of whole numbers; None of others."""
    match tree:
        case p.Column():
            return spans.get(str(tree))
        case p.Literal(value=int() as value, kind="bigint"):
            return value, value
        case p.Unary(operator="-" | "abs" as sign, part=part) if found := _span(part, spans):
            low, high = found
            return (-high, -low) if sign == "-" else (0, max(-low, high))
        case p.Arithmetic(operator=sign, left=left, right=right):
            one, other = _span(left, spans), _span(right, spans)
            if one and other:
                if sign == "*":
                    ends = [a * b for a in one for b in other]
                    return min(ends), max(ends)
                low, high = other if sign == "+" else (-other[1], -other[0])
                return one[0] + low, one[1] + high
    return None


def column_type(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """The type of a column that several event types have. One type stays as it is: it may yet be
    asked for null. Raises `OutsideError`."""
    several = [*dict.fromkeys(kind for kind in kinds if not types.is_null(kind))]
    return common(*several) if len(several) > 1 else next(iter(several), pa.null())


class _Maker:
    def __init__(self, types: Mapping[str, pa.DataType], *, small: bool) -> None:
        self._types = types
        self._small = small

    def node(self, tree: p.Predicate) -> Node:
        match tree:
            case p.Column():
                return _as_double(column(str(tree), self._types[str(tree)]))
            case p.Literal():
                return _literal(tree)
            case p.Chain(operator=word, members=members):
                return joined([self._boolean(member) for member in members], word.upper())
            case p.Unary(operator=operator, part=part):
                return self._unary(operator, part)
            case p.Comparison(operator=operator, left=left, right=right):
                return _compared(operator, self.node(left), self.node(right))
            case p.Arithmetic(operator=operator, left=left, right=right):
                one, other = self._operands(left, right)
                if (value := _constant(operator, one.literal, other.literal)) is not None:
                    return literal_node(value, literal_decimal(value))
                return _calculated(operator, one, other, small=self._small)
        raise TypeError(tree)

    def _operands(self, left: p.Predicate, right: p.Predicate) -> tuple[Node, ...]:
        """Small whole numbers have 64 bits, but beside decimals: the digits would be too many."""
        found = self._whole(left), self._whole(right)
        if all(is_integer(part.kind) for part in found):
            return self._words(*found)
        return self.node(left), self.node(right)

    def _whole(self, tree: p.Predicate) -> Node:
        """A node; of small whole numbers one of 64 bits."""
        found = self.node(tree)
        if self._small and isinstance(tree, p.Literal) and tree.kind == "bigint":
            return literal_node(tree.value, pa.int64())  # `is_small` has looked at it
        return found

    def _words(self, *parts: Node) -> tuple[Node, ...]:
        if self._small and all(is_integer(part.kind) for part in parts):
            return tuple(_over_kind(part, pa.int64()) for part in parts)
        return parts

    def _boolean(self, tree: p.Predicate) -> Node:
        found = self.node(tree)
        return _null(pa.bool_(), found) if types.is_null(found.kind) else found

    def _unary(self, operator: str, tree: p.Predicate) -> Node:
        if operator == "not":
            part = self._boolean(tree)
            return _over(pa.bool_(), f"NOT {part.text}", part, pc.invert)
        part = self.node(tree)
        if operator.startswith("is"):
            kernel = pc.is_null if operator == "is null" else pc.is_valid
            return _over(pa.bool_(), f"({part.text} {operator})", part, kernel)
        if types.is_null(part.kind):
            return part
        if isinstance(part.literal, int | Decimal):
            value = Decimal(part.literal)
            value = value.copy_negate() if operator == "-" else value.copy_abs()
            return literal_node(value, literal_decimal(value))
        (part,) = self._words(part)
        part = part if self._small and is_integer(part.kind) else _exact(part)
        kernel = pc.negate if operator == "-" else pc.abs
        return _over(part.kind, f"{operator}({part.text})", part, kernel)


def _constant(operator: str, left: Any, right: Any) -> Decimal | None:
    """The exact result of two numbers that are written as such; None of others."""
    if not (isinstance(left, int | Decimal) and isinstance(right, int | Decimal)):
        return None
    with localcontext(prec=2 * DIGITS_MAX + 2):
        one, other = Decimal(left), Decimal(right)
        return one * other if operator == "*" else one + (other if operator == "+" else -other)


def _literal(tree: p.Literal) -> Node:
    if isinstance(tree.value, int | Decimal) and tree.kind != "boolean":
        return literal_node(tree.value, literal_decimal(tree.value))
    return literal_node(tree.value, arrow_type(tree.kind))


def _exact(part: Node) -> Node:
    """Whole numbers as decimals."""
    if not is_integer(part.kind):
        return part
    return _over_kind(part, pa.decimal128(p.INTEGERS[spark_type(part.kind)], 0))


def _over_kind(part: Node, kind: pa.DataType) -> Node:
    """The same values in a type that has room for them."""
    if part.kind == kind:
        return part
    return _over(kind, f"({part.text}: {kind})", part, lambda values: pc.cast(values, kind))


def _compared(operator: str, left: Node, right: Node) -> Node:
    found = _of_one_type(left, right)
    if found is None:
        return _null(pa.bool_(), left, right)
    left, right = found
    text = f"({left.text} {operator} {right.text})"
    return _both(pa.bool_(), text, left, right, kernels.compared(operator, left.kind))


def _of_one_type(left: Node, right: Node) -> tuple[Node, Node] | None:
    """The type in which two values are compared; None where one is null whatever the row."""
    if types.is_null(left.kind) or types.is_null(right.kind):
        return None
    left, right = _as_word(left, right), _as_word(right, left)
    if is_decimal(left.kind) or is_decimal(right.kind):
        left, right = _exact(left), _exact(right)
    if is_float(left.kind) or is_float(right.kind):
        return cast(left, pa.float64()), cast(right, pa.float64())
    if is_decimal(left.kind) and is_decimal(right.kind):
        digits, scale = _widest(left.kind, right.kind)
        wide = pa.decimal256 if digits > DIGITS_MAX else pa.decimal128
        return _over_kind(left, wide(digits, scale)), _over_kind(right, wide(digits, scale))
    kind = common(left.kind, right.kind)
    return cast(left, kind), cast(right, kind)


def _as_word(part: Node, other: Node) -> Node:
    """A literal beside whole numbers as one of them: it compares faster."""
    value = part.literal
    if not (is_integer(other.kind) and isinstance(value, int | Decimal)):
        return part
    whole = value == int(value) and -(2**63) <= value < 2**63
    return literal_node(int(value), pa.int64()) if whole else part


def _widest(left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    """Digits and scale of what holds both."""
    scale = max(left.scale, right.scale)
    return max(left.precision - left.scale, right.precision - right.scale) + scale, scale


def _calculated(operator: str, left: Node, right: Node, *, small: bool = False) -> Node:
    if types.is_null(left.kind) or types.is_null(right.kind):
        return _null(pa.null(), left, right)
    text = f"({left.text} {operator} {right.text})"
    if is_float(left.kind) or is_float(right.kind):
        left, right = cast(left, pa.float64()), cast(right, pa.float64())
        return _both(pa.float64(), text, left, right, _PLAIN[operator])
    if left.kind == right.kind == pa.int64() and small:
        return _both(pa.int64(), text, left, right, _PLAIN[operator])
    left, right = _exact(left), _exact(right)
    if operator == "*":
        a, b = left.kind, right.kind
        kind = decimal(a.precision + b.precision, a.scale + b.scale)
        return _both(kind, text, left, right, lambda x, y: _product(x, y, kind))
    digits, scale = _widest(left.kind, right.kind)
    kind = decimal(digits + 1, scale)
    return _both(kind, text, left, right, _PLAIN[operator])


def _product(x: Values, y: Values, kind: pa.DataType) -> Values:
    """Arrow makes room for a digit more than a product can have."""
    if kind.precision == DIGITS_MAX:
        x, y = (pc.cast(v, pa.decimal256(v.type.precision, v.type.scale)) for v in (x, y))
    return pc.cast(pc.multiply(x, y), kind)


_PLAIN: Mapping[str, kernels.Kernel] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def _as_double(part: Node) -> Node:
    return cast(part, pa.float64()) if is_float(part.kind) else part


def _both(kind: pa.DataType, text: str, left: Node, right: Node, kernel: kernels.Kernel) -> Node:
    columns = left.columns | right.columns
    return Node(kind, text, lambda rows: kernel(left.run(rows), right.run(rows)), columns)


def _over(kind: pa.DataType, text: str, part: Node, kernel: kernels.Kernel) -> Node:
    return Node(kind, text, lambda rows: kernel(part.run(rows)), part.columns)


def _null(kind: pa.DataType, *parts: Node) -> Node:
    """What is null in every row."""
    columns = frozenset[str]().union(*(part.columns for part in parts))
    return Node(kind, f"null: {kind}", lambda rows: pa.nulls(rows.count, kind), columns)
