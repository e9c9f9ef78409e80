"""Key codes of one step: of what arrives and of what is carried."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.detector import carried as tables
from engine.detector.graph import Graph, Node, Stream
from engine.detector.instances import EVERY_KEY, Int32
from engine.detector.keys import NO_KEYS, Columns, Keys, encode
from engine.values import Batch, Carried


@dataclass(frozen=True, slots=True)
class Codes:
    """arrivals: the key code of each occurrence that arrives, by stream; stored: that of each row
    of `carried.key_columns`, by table name; keys: what codes stand for, by domain."""

    arrivals: Mapping[Stream, Int32]
    stored: Mapping[str, Int32]
    keys: Mapping[int | None, Keys]

    def of(self, event: str, columns: tuple[str, ...] | None, count: int) -> Int32:
        """The key codes of the `count` arrivals of an event type; of a broadcast `EVERY_KEY`."""
        if columns is None:
            return np.full(count, EVERY_KEY, dtype=np.int32)
        return self.arrivals[event, columns]

    def known(self, graph: Graph, name: str, batches: Mapping[str, Batch]) -> tuple[Int32, Int32]:
        """The codes of the known keys of a census, and of those that are new in this step."""
        census = graph.censuses[name]
        parts = [self.stored.get(name, np.empty(0, np.int32))]
        for stream in census.streams:
            if stream in self.arrivals:
                first = np.searchsorted(batches[stream[0]].time, census.activation)
                parts.append(self.arrivals[stream][first:])
        known = np.unique(np.concatenate(parts))
        return known, np.setdiff1d(known, parts[0])


def encode_step(
    graph: Graph, nodes: Iterable[Node], stored: Carried, batches: Mapping[str, Batch]
) -> Codes:
    """Encode the keys of all streams that arrive and of all tables that the nodes carry."""
    chunks: dict[int, dict[object, Columns]] = defaultdict(dict)
    streams: dict[Stream, object] = {}
    names: set[str] = set()
    for node in nodes:
        domain = graph.domain(node)
        if domain is None:
            continue
        streams |= {stream: None for stream in node.streams if stream[0] in batches}
        for name in ("node:" + node.digest, node.census or ""):
            columns = tables.key_columns(stored.tables[name]) if name in stored.tables else []
            if columns:
                names.add(name)
                chunks[domain][name] = columns
    for shared in _by_table(streams, batches):
        table = batches[shared[0][0]].table
        if 2 * sum(len(batches[event]) for event, _ in shared) >= table.num_rows:
            whole = id(table), shared[0][1]
            chunks[graph.domains[shared[0]]][whole] = _select(table, shared[0][1])
            streams |= dict.fromkeys(shared, whole)
        else:
            for stream in shared:
                rows = table.take(batches[stream[0]].row)
                chunks[graph.domains[stream]][stream] = _select(rows, stream[1])
    found: dict[object, Int32] = {}
    keys: dict[int | None, Keys] = {None: NO_KEYS}
    for domain, parts in chunks.items():
        codes, keys[domain] = encode(list(parts.values()))
        found |= zip(parts, codes, strict=True)
    arrivals = {
        stream: found[stream] if whole is None else found[whole][batches[stream[0]].row]
        for stream, whole in streams.items()
    }
    return Codes(arrivals, {name: found[name] for name in names}, keys)


def _by_table(streams: Iterable[Stream], batches: Mapping[str, Batch]) -> list[list[Stream]]:
    """The streams that read the same columns of the same table."""
    groups: dict[tuple[int, tuple[str, ...]], list[Stream]] = defaultdict(list)
    for event, columns in sorted(streams):
        groups[id(batches[event].table), columns].append((event, columns))
    return list(groups.values())


def _select(table: pa.Table, columns: tuple[str, ...]) -> Columns:
    """Some columns; all null where the table lacks one."""
    missing = pa.chunked_array([pa.nulls(table.num_rows)])
    return [table.column(c) if c in table.column_names else missing for c in columns]
