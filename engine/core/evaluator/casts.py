"""Casts of columns and of literals.

Example of those that cannot fail: int to bigint, decimal(5,2) to decimal(9,4), bigint to double
(rounded as Java does). Those that are written, or that a field's declared type asks for, may be
checked: bigint to int, decimal(22,2) to decimal(12,2).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tidegate.engine.core.columns.decimals import as_doubles
from tidegate.engine.core.evaluator.kinds import (
    DIGITS,
    as_decimal,
    is_decimal,
    is_float,
    is_integer,
    literal_decimal,
)
from tidegate.engine.core.evaluator.nodes import (
    Literal,
    Node,
    OutsideError,
    Rows,
    UndecidedError,
    column,
    made,
    raising,
)


def literal_node(value: Literal, kind: pa.DataType) -> Node:
    value = _converted(value, kind)
    scalar = pa.scalar(value, kind)
    return Node(kind, f"{value!r}: {kind}", lambda _: scalar, literal=value)


def cast(node: Node, kind: pa.DataType) -> Node:
    """The node as values of another type. Raises OutsideError where the cast could fail."""
    if node.kind == kind:
        return node
    if types.is_null(node.kind):
        return Node(kind, f"null: {kind}", lambda _: pa.scalar(None, kind))
    kernel = _kernel(node.kind, kind)
    if node.literal is not None:
        return literal_node(node.literal, kind)
    return made(kind, f"({node.text}: {kind})", (node,), kernel)


def paired(left: Node, right: Node) -> tuple[Node, Node]:
    """Two operands. An integer literal beside a decimal is a decimal of its digits."""
    return _tight(left, right), _tight(right, left)


def _tight(node: Node, other: Node) -> Node:
    if is_decimal(other.kind) and is_integer(node.kind) and isinstance(node.literal, int):
        return literal_node(node.literal, literal_decimal(node.literal))
    return node


def _converted(value: Literal, kind: pa.DataType) -> Literal:
    if is_decimal(kind):
        return Decimal(value)  # type: ignore[arg-type]
    return float(value) if is_float(kind) else value  # type: ignore[arg-type]


def _kernel(source: pa.DataType, target: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    """The kernel of a cast. Raises OutsideError where there is none that cannot fail."""
    if is_decimal(source) and types.is_float64(target):
        return as_doubles
    if is_float(source) and types.is_float64(target):
        return lambda values: pc.cast(values, target)
    if is_integer(source) and is_float(target):
        return lambda values: pc.cast(values, target, safe=False)
    if is_integer(source) and is_integer(target) and DIGITS[source] < DIGITS[target]:
        return lambda values: pc.cast(values, target)
    if is_decimal(target) and (is_integer(source) or is_decimal(source)):
        held = as_decimal(source)
        whole = target.precision - target.scale
        if held.scale <= target.scale and held.precision - held.scale <= whole:
            return lambda values: pc.cast(values, target)
    raise OutsideError


def written_cast(node: Node, kind: pa.DataType) -> Node:
    """The node of a cast that the text has. It may also fail, make a text of integers and booleans,
    and integers of booleans."""
    if node.kind == kind:
        return node
    if node.is_literal:
        raise OutsideError
    with suppress(OutsideError):
        return cast(node, kind)
    run, checked = _written_kernel(node.kind, kind)
    return made(kind, f"({node.text}: {kind})", (node,), run, checked=checked)


def field_cast(node: Node, kind: pa.DataType) -> Node:
    """The node of a field of this type. A literal is cast here."""
    if not node.is_literal or node.kind in (kind, pa.null()):
        return cast(node, kind) if node.is_literal else written_cast(node, kind)
    values = pa.array([node.literal], node.kind)
    value = written_cast(column("x", node.kind), kind)
    try:
        scalar = value.run(Rows({"x": values}, 1))[0]
    except UndecidedError:
        raise OutsideError from None
    return Node(kind, f"({node.text}: {kind})", lambda _: scalar)


def _written_kernel(
    source: pa.DataType, target: pa.DataType
) -> tuple[Callable[[pa.Array], pa.Array], bool]:
    """The kernel of a cast that `_kernel` does not have; and whether it is checked."""
    whole = is_integer(source) or types.is_boolean(source)
    if (target == pa.string() and whole) or (is_integer(target) and types.is_boolean(source)):
        return lambda values: pc.cast(values, target), False
    if types.is_float32(target) and types.is_float64(source):
        return lambda values: pc.cast(values, target), False
    if is_integer(target) and (is_integer(source) or is_decimal(source)):
        options = pc.CastOptions(target, allow_decimal_truncate=True)
        return raising(lambda values: pc.cast(values, options=options)), True
    if is_decimal(target) and (is_integer(source) or is_decimal(source)):
        return raising(lambda values: _rounded(values, target)), True
    raise OutsideError


def _rounded(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Decimals of another type: a half is rounded away from zero."""
    held = as_decimal(values.type)
    wide = pa.decimal256(held.precision + 1, held.scale)
    values = pc.cast(pc.cast(values, held), wide)
    if held.scale > kind.scale:
        values = pc.round(values, kind.scale, round_mode="half_towards_infinity")
    return pc.cast(values, kind)


def scaled(digits: pa.Array, kind: pa.DataType) -> pa.Array:
    """The decimals of these digits: the inverse of `unscaled`."""
    whole = pc.cast(digits, pa.decimal128(max(19, kind.precision), 0))
    return pc.cast(whole, pa.decimal128(kind.precision, 0)).view(kind)
