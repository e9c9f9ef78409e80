"""What is remembered of firings that passed, a row for each kind and key."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.values import Int64
from tidegate.rules.checks.damping import KEYS

MEMORY = pa.schema(
    {"kind": pa.int8(), "id": pa.string(), "until": pa.int64(), "instants": pa.binary()}
)
"""`kind`: 1 + the place in `KEYS`; `id`: a key's, or for dedupe that of what repeats (hex);
`until`: when it says nothing any more; `instants`: when firings passed, int64 each. A key that is
disarmed has a row until FOREVER, one that was armed again a row that has run out."""

WANTED = MEMORY.remove(3).remove(2)
"""The rows that are asked for."""

Recall = Callable[[pa.Table], pa.Table]
"""What is remembered of the rows WANTED: those of them that are there."""


def kind_names(kinds: npt.NDArray[np.uint8]) -> pa.StringArray:
    """What dropped each firing; null where nothing did."""
    names = pa.array([None, *KEYS], pa.string())
    return names.take(pa.array(kinds))


def wanted(kind: int, ids: pa.StringArray) -> pa.Table:
    return pa.table({"kind": pa.array(np.full(len(ids), kind, np.int8)), "id": ids})


def rows(kind: int, ids: pa.StringArray, until: Int64, counts: Int64, flat: Int64) -> pa.Table:
    """Rows to be remembered; counts[n] instants each, one after the other in `flat`."""
    offsets = np.concatenate([[0], np.cumsum(8 * counts)]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(flat.astype("<i8").tobytes())]
    instants = pa.Array.from_buffers(pa.binary(), len(ids), buffers)
    kinds = pa.array(np.full(len(ids), kind, np.int8))
    return pa.table([kinds, ids, pa.array(until, pa.int64()), instants], schema=MEMORY)


class Known:
    """What is remembered in one kind of some ids. `place`: of each row, which of the ids it is;
    `until`; `counts` of its instants, which stand one after the other in `flat`."""

    def __init__(self, remembered: pa.Table, kind: int, ids: pa.StringArray) -> None:
        mine = remembered.filter(pc.equal(remembered["kind"], kind))
        self.place: Int64 = pc.index_in(mine["id"], ids).to_numpy().astype(np.int64)
        self.until: Int64 = mine["until"].to_numpy()
        self.counts: Int64 = pc.binary_length(mine["instants"]).to_numpy().astype(np.int64) // 8
        self.flat: Int64 = np.frombuffer(b"".join(mine["instants"].to_pylist()), "<i8")
