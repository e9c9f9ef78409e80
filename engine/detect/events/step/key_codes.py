"""The key codes of one step: those of arrivals and of carried rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.graph import Graph, Node, Stream
from tidegate.engine.detect.events.occurrences.comparison import KeyTypeError
from tidegate.engine.detect.events.occurrences.instances import EVERY_KEY, Int32
from tidegate.engine.detect.events.occurrences.keys import NO_KEYS, Columns, Keys, encode
from tidegate.engine.detect.events.occurrences.timeline import Timeline
from tidegate.engine.detect.events.state.decoded import Decoded
from tidegate.rules.errors import InputError, Problem, word_place

Chunk = tuple[int, int, tuple[str, ...]]
"""Key columns of a table that are encoded once for several streams: domain, table, names."""


@dataclass(frozen=True, slots=True)
class Codes:
    """The key codes of a step.

    found    by stream, in the order of its batch; or by chunk, in the order of its table
    chunks   the chunk of each stream that is read from one
    again    by domain, for each key code of what is carried that of the step
    keys     by domain, the keys that the codes stand for
    """

    timeline: Timeline
    found: Mapping[object, Int32]
    chunks: Mapping[Stream, Chunk]
    again: Mapping[int | None, Int32]
    keys: Mapping[int | None, Keys]

    def coded(self, domain: int | None, key: Int32) -> Int32:
        """The codes of carried keys in this step."""
        return self.again[domain][key] if domain in self.again else key

    def of(
        self, event: str, columns: tuple[str, ...] | None, positions: Int64 | None = None
    ) -> Int32:
        """The key codes of the arrivals of an event type: of all, or of those at some positions of
        the timeline. A broadcast has `EVERY_KEY`."""
        line = self.timeline
        if columns is None:
            count = line.counts[event] if positions is None else len(positions)
            return np.full(count, EVERY_KEY, dtype=np.int32)
        chunk = self.chunks.get((event, columns))
        if chunk is None:
            code = self.found[event, columns]
            return code if positions is None else code[line.index[positions]]
        row = line.batch(event).row if positions is None else line.rows(positions, event)
        return self.found[chunk][row]

    def along(self, leaves: Mapping[str, tuple[str, ...] | None]) -> Int32:
        """The key codes of the arrivals of some event types, in the order of the timeline. `leaves`
        has the key columns by event type. Other arrivals have any code."""
        streams = [(e, c) for e, c in leaves.items() if e in self.timeline.counts and c is not None]
        chunks = {self.chunks.get(stream) for stream in streams}
        log = self.timeline.log
        if log and len(chunks) == 1 and None not in chunks:
            (chunk,) = chunks
            return log.sorted(self.found[chunk])
        code = np.zeros(len(self.timeline), dtype=np.int32)
        for event, columns in streams:
            code[self.timeline.positions(event)] = self.of(event, columns)
        return code


def encode_step(graph: Graph, nodes: Iterable[Node], decoded: Decoded, timeline: Timeline) -> Codes:
    """Encode the keys of all streams that arrive, after those that are carried."""
    chunks: dict[int, dict[object, Columns]] = defaultdict(dict)
    streams: set[Stream] = set()
    used: set[Stream] = set()
    for node in nodes:
        domain = graph.domain(node)
        if domain is None:
            continue
        streams |= {stream for stream in node.streams if stream[0] in timeline.counts}
        used |= {s for s in node.streams if s[0] in graph.roots and not graph.same_keys(s)}
        if decoded.keys.get(domain, NO_KEYS).columns:
            chunks[domain][domain] = decoded.keys[domain].chunked
    read: dict[Stream, Chunk] = {}
    for shared in _by_table(graph, streams, timeline):
        event, columns = shared[0]
        table = timeline.table(event)
        if 2 * sum(timeline.counts[event] for event, _ in shared) >= table.num_rows:
            chunk = graph.domains[shared[0]], id(table), columns
            chunks[chunk[0]][chunk] = select(table, columns)
            read |= dict.fromkeys(shared, chunk)
        else:
            for stream in shared:
                rows = table.take(timeline.batch(stream[0]).row)
                chunks[graph.domains[stream]][stream] = select(rows, columns)
    for stream in sorted(used):
        for n, part in enumerate(_values(graph, stream, decoded, timeline)):
            chunks[graph.domains[stream]][stream, n] = part
    found: dict[object, Int32] = {}
    keys: dict[int | None, Keys] = {None: NO_KEYS}
    for domain, parts in chunks.items():
        keys[domain] = decoded.keys.get(domain, NO_KEYS)
        arriving = {name: part for name, part in parts.items() if name != domain}
        codes = keys[domain].known_codes([*arriving.values()])
        if codes is not None:
            found |= zip(arriving, codes, strict=True)
            continue
        try:
            codes, keys[domain] = encode(list(parts.values()))
        except KeyTypeError as error:
            looked = [s for s in graph.domains if graph.domains[s] == domain]
            raise _wrong([s for s in looked if s[0] in timeline.counts], timeline, error) from None
        found |= zip(parts, codes, strict=True)
    every, none = [EVERY_KEY], np.empty(0, np.int32)
    again: dict[int | None, Int32] = {
        domain: np.concatenate(
            [every, found.get(domain, none), [keys[domain].count + 1]], dtype=np.int32
        )
        for domain in chunks
        if keys[domain] is not decoded.keys.get(domain)
    }
    return Codes(timeline, found, read, again, keys)


def _wrong(streams: Iterable[Stream], timeline: Timeline, error: KeyTypeError) -> InputError:
    """The error that names the columns of keys that cannot be compared."""
    columns = []
    for event, names in sorted(streams):
        schema = timeline.table(event).schema
        kinds = {name: schema.field(name).type for name in names if name in schema.names}
        columns += [f"{name} of {event} ({kind})" for name, kind in kinds.items()]
    message = f"keys cannot be compared with each other or with those before: {', '.join(columns)}"
    hint = f"{error}; give the columns of a key one type"
    return InputError([Problem("key-type", message, word_place("<occurrences>"), hint)])


def _by_table(graph: Graph, streams: Iterable[Stream], timeline: Timeline) -> list[list[Stream]]:
    """The streams of one domain that read the same columns of the same table."""
    groups: dict[tuple[int, int, tuple[str, ...]], list[Stream]] = defaultdict(list)
    for stream in sorted(streams):
        table = id(timeline.table(stream[0]))
        groups[graph.domains[stream], table, stream[1]].append(stream)
    return list(groups.values())


def _values(
    graph: Graph, stream: Stream, decoded: Decoded, timeline: Timeline
) -> Iterator[Columns]:
    """The key columns that occurrences of a stream may have in this step."""
    event, columns = stream
    if event in timeline.counts:
        batch = timeline.batch(event)
        yield select(batch.table.take(batch.row), columns)
    if event not in graph.roots:
        return
    root, names = graph.roots[event], graph.key_names[event]
    chosen = [names.index(name) for name in columns]
    parts = [part for below in sorted(root.streams) for part in
             _values(graph, below, decoded, timeline)]  # fmt: skip
    if (domain := graph.domain(root)) in decoded.keys:
        parts.append(decoded.keys[domain].chunked)
    yield from ([part[i] for i in chosen] for part in parts if part)


def select(table: pa.Table, columns: tuple[str, ...]) -> Columns:
    """Some columns of a table. One that the table lacks is all null."""
    missing = pa.chunked_array([pa.nulls(table.num_rows)])
    return [table.column(c) if c in table.column_names else missing for c in columns]
