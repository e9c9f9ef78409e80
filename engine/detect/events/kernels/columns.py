"""What all kernels share: the tables that they read, and their constants."""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def, call-arg"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidegate.engine.core.columns.numba_cache import njit
from tidegate.engine.core.values import Int64

Int16 = npt.NDArray[np.int16]
Int32 = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

NEVER = -(2**63)
"""Before all instants: the instant of what has not happened yet."""
LAST = 2**63 - 1
"""After all instants: the end of a window that nothing closes, the instant after a run's last."""
ENDLESS = 2**62
"""The longest span of an instance without a `within`. An instant minus it does not overflow."""
TICK_RANK = 2**62
"""The rank of a tick. A tick is no occurrence (S6)."""


class Columns(NamedTuple):
    """A table of instances, in order of end unless a kernel says otherwise (see `Instances`).

    key[i]             key code; 0 stands for every key
    start[i], end[i]   microseconds
    offsets[i]         where the entries of instance i begin; they end at offsets[i + 1]
    row[e], role[e]    of entry e: the occurrence, and which event of the expression it is

    Example: a of key 1 at instants 10 and 20, then a composite (a ; b) of key 2 from 15 to 30:

        key      1   1   2
        start   10  20  15
        end     10  20  30
        offsets  0   1   2  4
        row      0   2   1  3
        role     0   0   0  1

    >>> table = Columns(
    ...     key=np.array([1, 1, 2]), start=np.array([10, 20, 15]), end=np.array([10, 20, 30]),
    ...     offsets=np.array([0, 1, 2, 4]), row=np.array([0, 2, 1, 3]), role=np.array([0, 0, 0, 1]),
    ... )
    >>> table.row[table.offsets[2] : table.offsets[3]]  # the occurrences of the composite
    array([1, 3])
    """

    key: Int32
    start: Int64
    end: Int64
    offsets: Int64
    row: Int64
    role: Int16


class Ranks(NamedTuple):
    """The order of occurrences (S1): by time, then by rank.

    time[r]   the instant at which occurrence r starts
    rank[r]   its order among the simultaneous; a negative rank is its order among all
    """

    time: Int64
    rank: Int64


class Order(NamedTuple):
    """The columns of a table that `later` compares instances by, and the ranks. The other columns
    are left out, as each array makes a call slower."""

    start: Int64
    offsets: Int64
    row: Int64
    ranks: Ranks


@njit
def order_of(columns, ranks):
    """The order of a table's instances."""
    return Order(columns.start, columns.offsets, columns.row, ranks)


@njit
def grow(array, room):
    """A copy of an array with `room` places. The new places are not set.

    >>> grow(np.array([7, 8]), 5)[:2]
    array([7, 8])
    """
    grown = np.empty(room, dtype=array.dtype)
    for i in range(len(array)):
        grown[i] = array[i]
    return grown
