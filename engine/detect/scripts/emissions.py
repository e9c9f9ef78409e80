"""What a script emits in one step, by the column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.core.columns.hashing import mix_rows, row_hash
from tidegate.engine.core.values import Batch, Int64, UInt64
from tidegate.engine.detect.events.occurrences.keys import encode
from tidegate.engine.detect.scripts.context import Fault
from tidegate.engine.detect.scripts.input_columns import VALUE
from tidegate.engine.detect.scripts.value_types import OBJECTS
from tidegate.rules.eventscript.types import Basic, Structure

ERROR_NAME = "$error"
ERROR_TYPE = Structure(
    tuple((name, Basic.TIME if name == "at" else Basic.STRING) for name in Fault._fields)
)
"""What `$error` carries."""


@dataclass(frozen=True, slots=True)
class Emissions:
    """n emissions of a script, by time, at one instant by key, of one key as emitted.

    keys: a table of n rows, a column for each key name; time[n]; output[n] indexes `outputs`, the
    last of which is `$error`; row[n] is where its value stands in `values` of that output. cause
    (uint64[n, 2]) and number[n] are its identity, depth[n] is its cause's.
    """

    script: str
    keys: pa.Table
    time: Int64
    output: npt.NDArray[np.int16]
    row: Int64
    outputs: tuple[str, ...]
    values: Mapping[str, pa.Array]
    cause: UInt64
    depth: npt.NDArray[np.int32]
    number: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.time)

    def batch(self, name: str, event: str) -> Batch | None:
        """The emissions of one output as occurrences of an event type; None if there are none.

        A structure gives its fields as columns, any other value the column `value`; key columns
        stand beside, where no field has their name.
        """
        if name not in self.outputs or name not in self.values:
            return None
        chosen = np.flatnonzero(self.output == self.outputs.index(name))
        values = self.values[name]
        columns: dict[str, pa.Array] = {VALUE: values}
        if pa.types.is_struct(values.type):
            fields = [values.type.field(n).name for n in range(values.type.num_fields)]
            columns = dict(zip(fields, values.flatten(), strict=True))
        keys = self.keys.take(pa.array(chosen))
        table = pa.table({**_shown(keys), **columns})
        if not table.num_columns:
            table = pa.table({"": pa.nulls(len(chosen))}).select([])
        depth = self.depth[chosen]
        return Batch(
            event,
            self.time[chosen],
            np.arange(len(chosen)),
            table,
            {"": self._ids(name, keys, chosen)},
            depth if depth.any() else None,
            chosen,
        )

    def keys_of(self, chosen: Int64) -> dict[str, pa.Array]:
        """The key columns of some emissions, by name."""
        return _shown(self.keys.take(pa.array(chosen)))

    def _ids(self, name: str, keys: pa.Table, chosen: Int64) -> UInt64:
        """Ids uint64[n, 2] of (script, output, key, cause, number)."""
        hashes = self.cause[chosen]
        if keys.num_columns:
            hashes = hashes + mix_rows(row_hash(keys), (np.uint64(1), np.uint64(2)), chosen * 0)
        digest = blake2b(f"{len(self.script)}:{self.script} {name}".encode(), digest_size=16)
        high, low = np.frombuffer(digest.digest(), np.uint64)
        return mix_rows(hashes, (high, low), self.number[chosen].astype(np.int64))


def _shown(keys: pa.Table) -> dict[str, pa.Array]:
    """Key columns by name. Objects, which are bytes as keys, are `OBJECTS`."""
    columns = {name: keys.column(name).combine_chunks() for name in keys.column_names}
    return {n: c.cast(OBJECTS) if pa.types.is_binary(c.type) else c for n, c in columns.items()}


def merged(parts: Sequence[Emissions]) -> Emissions:
    """What a script has emitted for some keys and for others, as if it were for all at once: by
    time, at one instant by key. No key is in two parts, of which there is one at least."""
    some = [part for part in parts if len(part)] or parts[:1]
    if len(some) == 1:
        return some[0]
    codes, keys = encode([[pa.chunked_array(c) for c in part.keys.columns] for part in some])
    time = np.concatenate([part.time for part in some])
    order = np.lexsort((keys.ranks(np.concatenate(codes)), time))
    output = np.concatenate([part.output for part in some])
    row = np.concatenate([part.row for part in some])
    values = dict[str, pa.Array]()
    for number, name in enumerate(some[0].outputs):
        columns = [part.values[name] for part in some if name in part.values]
        if columns:
            counts = [len(part.values.get(name, ())) for part in some]
            first = np.repeat(np.cumsum(counts) - counts, [len(part) for part in some])
            mine = order[output[order] == number]
            values[name] = pa.concat_arrays(columns).take(pa.array((row + first)[mine]))
            row[mine] = np.arange(len(mine))
    return Emissions(
        some[0].script,
        pa.concat_tables([part.keys for part in some]).take(pa.array(order)),
        time[order],
        output[order],
        row[order],
        some[0].outputs,
        values,
        np.concatenate([part.cause for part in some])[order],
        np.concatenate([part.depth for part in some])[order],
        np.concatenate([part.number for part in some])[order],
    )
