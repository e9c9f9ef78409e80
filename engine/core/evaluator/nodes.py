"""A typed expression, and the rows that it is evaluated over.

Example: `amount * 2 > 5` is a node of type boolean. It reads the column amount.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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
) -> Node:
    """A node whose kernel takes the values of its parts.

    Raises OutsideError if no part reads a column: Spark evaluates constants when it plans."""
    columns = frozenset[str]().union(*(part.columns for part in parts))
    if not columns:
        raise OutsideError
    return Node(
        kind,
        text,
        lambda rows: kernel(*(part.run(rows) for part in parts)),
        columns,
        checked=checked or any(part.checked for part in parts),
    )
