"""The memory of damping: a row for each kind and key whose firings passed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.values import Int64
from tidegate.rules.model import DAMPINGS

MEMORY = pa.schema(
    {"kind": pa.int8(), "id": pa.string(), "until": pa.int64(), "instants": pa.binary()}
)
"""`kind`: 1 + the index in `DAMPINGS`. `id`: of a key, for dedupe of the repeated values (hex).
`until`: the instant at which the row expires. `instants`: when firings passed, int64 each.
Hysteresis: a disarmed key has a row until FOREVER, a rearmed one an expired row.

Example: a cooldown of 10 s of key 7 that passed at 9:00:00 has `until` 9:00:10 and one instant."""

WANTED = MEMORY.remove(3).remove(2)
"""The rows to look up: (kind, id)."""

Recall = Callable[[pa.Table], pa.Table]
"""Looks up rows of WANTED. Gives the MEMORY rows that exist."""


def kind_names(kinds: npt.NDArray[np.uint8]) -> pa.StringArray:
    """What dropped each firing; null where nothing did."""
    names = pa.array([None, *DAMPINGS], pa.string())
    return names.take(pa.array(kinds))


def wanted(kind: int, ids: pa.StringArray) -> pa.Table:
    return pa.table({"kind": pa.array(np.full(len(ids), kind, np.int8)), "id": ids})


def rows(kind: int, ids: pa.StringArray, until: Int64, counts: Int64, flat: Int64) -> pa.Table:
    """Rows of MEMORY. Row n has the next counts[n] instants of `flat`."""
    offsets = np.concatenate([[0], np.cumsum(8 * counts)]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(flat.astype("<i8").tobytes())]
    instants = pa.Array.from_buffers(pa.binary(), len(ids), buffers)
    kinds = pa.array(np.full(len(ids), kind, np.int8))
    return pa.table([kinds, ids, pa.array(until, pa.int64()), instants], schema=MEMORY)


class Known:
    """The remembered rows of one kind. Row n is of ids[place[n]], expires at until[n] and has the
    next counts[n] instants of `flat`."""

    def __init__(self, remembered: pa.Table, kind: int, ids: pa.StringArray) -> None:
        mine = remembered.filter(pc.equal(remembered["kind"], kind))
        self.place: Int64 = pc.index_in(mine["id"], ids).to_numpy().astype(np.int64)
        self.until: Int64 = mine["until"].to_numpy()
        self.counts: Int64 = pc.binary_length(mine["instants"]).to_numpy().astype(np.int64) // 8
        self.flat: Int64 = np.frombuffer(b"".join(mine["instants"].to_pylist()), "<i8")
