"""Key codes of one step: of what arrives and of what is carried."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.engine.detector import carried as tables
from tidegate.engine.detector.comparable import KeyTypeError
from tidegate.engine.detector.graph import Graph, Node, Stream
from tidegate.engine.detector.instances import EVERY_KEY, Int32
from tidegate.engine.detector.keys import NO_KEYS, Columns, Keys, encode
from tidegate.engine.values import Batch, Carried
from tidegate.rules.errors import InputError, Problem, word_place


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


def encode_step(
    graph: Graph, nodes: Iterable[Node], stored: Carried, batches: Mapping[str, Batch]
) -> Codes:
    """Encode the keys of all streams that arrive and of all tables that the nodes carry."""
    chunks: dict[int, dict[object, Columns]] = defaultdict(dict)
    streams: dict[Stream, object] = {}
    names: set[str] = set()
    used: set[Stream] = set()
    for node in nodes:
        domain = graph.domain(node)
        if domain is None:
            continue
        streams |= {stream: None for stream in node.streams if stream[0] in batches}
        used |= {s for s in node.streams if s[0] in graph.roots and not graph.same_keys(s)}
        for name in ("node:" + node.digest, node.census or ""):
            columns = tables.key_columns(stored.tables[name]) if name in stored.tables else []
            if columns:
                names.add(name)
                chunks[domain][name] = columns
    for shared in _by_table(graph, streams, batches):
        table = batches[shared[0][0]].table
        if 2 * sum(len(batches[event]) for event, _ in shared) >= table.num_rows:
            whole = graph.domains[shared[0]], id(table), shared[0][1]
            chunks[whole[0]][whole] = select(table, shared[0][1])
            streams |= dict.fromkeys(shared, whole)
        else:
            for stream in shared:
                rows = table.take(batches[stream[0]].row)
                chunks[graph.domains[stream]][stream] = select(rows, stream[1])
    for stream in sorted(used):
        for n, part in enumerate(_values(graph, stream, stored, batches)):
            chunks[graph.domains[stream]][stream, n] = part
    found: dict[object, Int32] = {}
    keys: dict[int | None, Keys] = {None: NO_KEYS}
    for domain, parts in chunks.items():
        try:
            codes, keys[domain] = encode(list(parts.values()))
        except KeyTypeError as error:
            looked = [s for s in graph.domains if graph.domains[s] == domain and s[0] in batches]
            raise _wrong(looked, batches, error) from None
        found |= zip(parts, codes, strict=True)
    arrivals = {
        stream: found[stream] if whole is None else found[whole][batches[stream[0]].row]
        for stream, whole in streams.items()
    }
    return Codes(arrivals, {name: found[name] for name in names}, keys)


def _wrong(
    streams: Iterable[Stream], batches: Mapping[str, Batch], error: KeyTypeError
) -> InputError:
    """The error that names the columns of keys that cannot be compared."""
    columns = []
    for event, names in sorted(streams):
        schema = batches[event].table.schema
        kinds = {name: schema.field(name).type for name in names if name in schema.names}
        columns += [f"{name} of {event} ({kind})" for name, kind in kinds.items()]
    message = f"keys cannot be compared with each other or with those before: {', '.join(columns)}"
    hint = f"{error}; give the columns of a key one type"
    return InputError([Problem("key-type", message, word_place("<occurrences>"), hint)])


def _by_table(
    graph: Graph, streams: Iterable[Stream], batches: Mapping[str, Batch]
) -> list[list[Stream]]:
    """The streams of one domain that read the same columns of the same table."""
    groups: dict[tuple[int, int, tuple[str, ...]], list[Stream]] = defaultdict(list)
    for stream in sorted(streams):
        table = id(batches[stream[0]].table)
        groups[graph.domains[stream], table, stream[1]].append(stream)
    return list(groups.values())


def _values(
    graph: Graph, stream: Stream, stored: Carried, batches: Mapping[str, Batch]
) -> Iterator[Columns]:
    """The key columns that occurrences of a stream may have in this step."""
    event, columns = stream
    if event in batches:
        yield select(batches[event].table.take(batches[event].row), columns)
    if event not in graph.roots:
        return
    root, names = graph.roots[event], graph.key_names[event]
    chosen = [names.index(name) for name in columns]
    parts = [part for below in sorted(root.streams) for part in
             _values(graph, below, stored, batches)]  # fmt: skip
    for node in root.walk():
        if "node:" + node.digest in stored.tables and node.streams:
            parts.append(tables.key_columns(stored.tables["node:" + node.digest]))
    yield from ([part[i] for i in chosen] for part in parts if part)


def select(table: pa.Table, columns: tuple[str, ...]) -> Columns:
    """Some columns; all null where the table lacks one."""
    missing = pa.chunked_array([pa.nulls(table.num_rows)])
    return [table.column(c) if c in table.column_names else missing for c in columns]
