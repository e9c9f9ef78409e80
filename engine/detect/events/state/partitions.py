"""Carried tables in parts, one for each partition of the keys' hash: their names, and what is said
of them. Alike for what rules carry and for what scripts carry.

`node:1f/3` holds the instances of node 1f whose key is of partition 3, `node:1f/every` those of
every key. `occ:a/3` holds the occurrences of `a` that instances of partition 3 refer to. An
occurrence that several partitions refer to is stored in each of them. A single partition is named
`/0`. A part says in its metadata into how many partitions its table is cut, when its first timer is
due, how many timers it has, and when something in it is dropped for its age.

The number of partitions grows with the state. It is one for the first few thousand instances, and
four times as many whenever a part has grown too large, up to `state_partitions`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tidegate.engine.core.columns.hashing import row_hash
from tidegate.engine.core.state_parts import FilePart, metadata_of
from tidegate.engine.core.values import DUE, FOREVER, TIMERS, Carried, Int64, UInt64
from tidegate.engine.detect.events.kernels import table_rows

EVERY = -1
"""The partition of instances of every key, and of the keys not seen yet."""
SLOTS = 2**16
"""Keys are hashed into so many slots. A partition is made of whole slots, however many there are of
it."""
ROWS_MAX = 4_000
"""The most rows of a part: one with more is cut into `GROWTH`."""
GROWTH = 4
_LATE = 8
"""An instance is dropped once it is older than may be by an eighth of that. Were it dropped at
once, a partition with many instances would be touched in every step."""
Tables = Mapping[str, pa.Table]
COUNT, OLD = b"partitions", b"old"
SCRIPT = "script:"
"""What the names of all that scripts carry begin with."""


def part_name(whole: str, partition: int) -> str:
    return f"{whole}/{'every' if partition == EVERY else partition}"


@lru_cache(maxsize=1 << 17)
def place(name: str) -> tuple[str, int]:
    """The table and the partition of a part."""
    whole, _, partition = name.rpartition("/")
    return whole, EVERY if partition == "every" else int(partition)


def grouped(tables: Tables) -> dict[str, dict[int, pa.Table]]:
    """The parts of each table by partition."""
    found: dict[str, dict[int, pa.Table]] = defaultdict(dict)
    for name, table in tables.items():
        whole, partition = place(name)
        found[whole][partition] = table
    return found


def count_of(tables: Iterable[pa.Table]) -> int:
    """Into how many partitions the tables are cut."""
    return next((int(metadata_of(table).get(COUNT, 1)) for table in tables), 1)


def wanted(count: int, largest: int, most: int) -> int:
    """The number of partitions wanted: more once a part, the `largest`, has too many rows."""
    while count < most and largest > ROWS_MAX:
        count, largest = min(count * GROWTH, most), largest // GROWTH
    return count


def next_due(carried: Carried) -> int | None:
    """The watermark at which the first carried timer is due, or something that was held back is
    let go; None if there is neither."""
    return earliest(map(due_of, carried.tables.values()))


def earliest(due: Iterable[int]) -> int | None:
    """The earliest of some instants; `FOREVER` is none."""
    first = min(due, default=FOREVER)
    return first if first < FOREVER else None


def due_of(part: pa.Table) -> int:
    """The watermark at which the first timer of a part is due, or something of it is let go."""
    return int(metadata_of(part).get(DUE, FOREVER))


def timers_of(part: pa.Table) -> int:
    """How many timers a part has."""
    return int(metadata_of(part).get(TIMERS, 0))


def marked(
    part: pa.Table, count: int, due: int = FOREVER, timers: int = 0, old: int = FOREVER
) -> pa.Table:
    """The part with what is said of it. `old`: when the first of it is dropped for its age."""
    said = {COUNT: count, DUE: min(due, FOREVER), TIMERS: timers, OLD: min(old, FOREVER)}
    added = {key: str(value).encode() for key, value in said.items()}
    return part.replace_schema_metadata({**(part.schema.metadata or {}), **added})


def dropped_at(start: Int64, age: int | None) -> int:
    """When the oldest of what has started then is dropped for its age; None: it is not."""
    if age is None or not len(start):
        return FOREVER
    return int(start.min()) + age + age // _LATE


def slots(columns: Iterable[pa.ChunkedArray]) -> Int64:
    """The slot of each key."""
    return (key_hash(columns) % np.uint64(SLOTS)).astype(np.int64)


def partitions(columns: Iterable[pa.ChunkedArray], count: int) -> Int64:
    """The partition of each key."""
    return slots(columns) % count


def key_hash(columns: Iterable[pa.ChunkedArray]) -> UInt64:
    """A hash of each key: the same for equal keys, whatever their types."""
    plain = {f"k{i}": _of_one_kind(column) for i, column in enumerate(columns)}
    return row_hash(pa.table(plain))[:, 0]


def _of_one_kind(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates as the instants that they are equal to."""
    return column.cast(pa.timestamp("us")) if pa.types.is_date(column.type) else column


def by_partition(of: Int64, count: int) -> tuple[Int64, dict[int, slice]]:
    """The rows of one partition after the other, each in the order that it has; and where each
    partition is among them. of[n] is the partition of row n."""
    order, bounds = table_rows.split(of - EVERY, count - EVERY)
    spans = enumerate(pairwise(bounds.tolist()), start=EVERY)
    return order, {partition: slice(a, b) for partition, (a, b) in spans if a < b}


def sliced(table: pa.Table, spans: Mapping[int, slice]) -> dict[int, pa.Table]:
    """The parts of a table in order of partition."""
    return {p: table.slice(span.start, span.stop - span.start) for p, span in spans.items()}


def replaced(
    tables: Tables, read: Collection[str], written: Tables
) -> tuple[dict[str, pa.Table], frozenset[str]]:
    """The tables with `written` in place of those that were read, and the names of all that differ
    from before."""
    kept = {name: table for name, table in tables.items() if name not in read}
    changed = {name for name in read if name not in written}
    for name, table in written.items():
        before = tables.get(name)
        if alike(before, table):
            kept[name] = before
        else:
            kept[name] = table
            changed.add(name)
    return kept, frozenset(changed)


def alike(before: pa.Table | None, table: pa.Table | None) -> bool:
    """Whether a table is as it was. One that was written to a file has changed."""
    if before is table:
        return True
    if before is None or table is None or {FilePart} & {type(before), type(table)}:
        return False
    same: bool = before.equals(table, check_metadata=True)
    return same
