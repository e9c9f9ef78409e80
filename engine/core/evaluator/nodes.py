"""A typed expression, and the rows that it is evaluated over.

Example: `amount * 2 > 5` is a node of type boolean. It reads the column amount.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.parameters import OLD

JOINED_BYTES_MAX = 2**30  # of columns: an array of strings holds twice as much
Literal = int | Decimal | float | str | bool | date | datetime
Values: TypeAlias = pa.Array | pa.Scalar
"""A scalar is the value of a literal in every row."""
Mask = npt.NDArray[np.bool_]


class OutsideError(Exception):
    """The text is not of a form that Arrow may decide."""


class UndecidedError(Exception):
    """A kernel cannot decide rows of the list's text: Spark would raise on one of them, or means
    something that Arrow does not have."""


class RaisingError(UndecidedError):
    """Spark raises on one of the rows."""


def raising(kernel: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
    """A kernel that raises RaisingError where a value does not fit its type."""

    def run(*values: Values) -> pa.Array:
        try:
            return kernel(*values)
        except pa.ArrowInvalid:
            raise RaisingError from None

    return run


class Rows:
    """Columns of equal length, by name. Chunks are joined when a column is first read."""

    def __init__(
        self, columns: Mapping[str, pa.Array | pa.ChunkedArray] | Rows, count: int
    ) -> None:
        self._columns = columns
        self._read: dict[str, pa.Array] = {}
        self._mask: pa.Array | None = None
        self.count = count

    def __getitem__(self, name: str) -> pa.Array:
        if name not in self._read:
            values = self._columns[name]
            if isinstance(values, pa.ChunkedArray):
                values = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
            self._read[name] = values if self._mask is None else values.filter(self._mask)
        return self._read[name]

    def some(self, mask: Mask) -> Rows:
        """The rows at which the mask is true."""
        if mask.all():
            return self
        found = Rows(self, int(mask.sum()))
        found._mask = pa.array(mask)
        return found


@dataclass(frozen=True, slots=True)
class Node:
    """A typed expression. `kind`: Spark's type of its values. `text`: its normal form; nodes over
    columns of the same types with equal texts are equal.

    `run` gives its values: a scalar if it is a literal, else an array. It raises UndecidedError,
    and only if the node is `checked`. `literal`: its value, if it is one.
    """

    kind: pa.DataType
    text: str
    run: Callable[[Rows], Values]
    columns: frozenset[str] = field(default_factory=frozenset)
    checked: bool = False
    literal: Literal | None = None

    @property
    def is_literal(self) -> bool:
        return not self.columns


def column(name: str, kind: pa.DataType) -> Node:
    return Node(kind, f"`{name}`", lambda rows: rows[name], frozenset({name}))


def made(
    kind: pa.DataType,
    text: str,
    parts: tuple[Node, ...],
    kernel: Callable[..., pa.Array],
    *,
    checked: bool = False,
    right_first: bool = False,
) -> Node:
    """A node whose kernel takes the values of its one or two parts, and gives null for null. Of two
    the second is evaluated only where the first is not null; `right_first`: the other way round.

    Raises OutsideError if no part reads a column: Spark evaluates constants when it plans."""
    columns = frozenset[str]().union(*(part.columns for part in parts))
    if not columns:
        raise OutsideError
    first, second = (parts[-1], parts[0]) if right_first else (parts[0], parts[-1])

    def run(rows: Rows) -> Values:
        if len(parts) == 1:
            return kernel(first.run(rows))
        known = first.run(rows)
        other = _beside(known, second, rows) if second.checked else second.run(rows)
        return kernel(other, known) if right_first else kernel(known, other)

    checked = checked or any(part.checked for part in parts)
    return Node(kind, text, run, columns, checked=checked)


def doubtful(node: Node) -> Node:
    """The same node, if Spark may not evaluate it: where it would raise, Spark must decide."""

    def run(rows: Rows) -> Values:
        try:
            return node.run(rows)
        except RaisingError:
            raise UndecidedError from None

    return replace(node, run=run) if node.checked else node


def _beside(known: Values, part: Node, rows: Rows) -> Values:
    """The values of a part, null where another value is null."""
    if isinstance(known, pa.Scalar):
        return part.run(rows)
    mask = np.asarray(known.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    return placed(part.run(rows.some(mask)), mask, pa.nulls(rows.count, part.kind))


def placed(values: Values, mask: Mask, among: pa.Array) -> pa.Array:
    """The values in the rows of the mask, in their order."""
    if isinstance(values, pa.Array) and len(values) == len(among):
        return values
    return pc.replace_with_mask(among, pa.array(mask), values)


def column_types(schema: pa.Schema) -> dict[str, pa.DataType]:
    """The names that texts over a table may use, with their types: its columns, and `old.x` for a
    field of the struct `old`."""
    return dict(_typed(schema))


def named_columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The columns of `column_types`."""
    found = {}
    for name in column_types(table.schema):
        whole, _, inner = name.partition(".")
        nested = inner and whole == OLD and name not in table.column_names
        found[name] = pc.struct_field(table[OLD], inner) if nested else table[name]
    return found


def _typed(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    for column_ in schema:
        yield column_.name, column_.type
        if column_.name == OLD and pa.types.is_struct(column_.type):
            yield from ((f"{OLD}.{inner.name}", inner.type) for inner in column_.type)
