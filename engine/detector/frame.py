"""What a step begins with: occurrences numbered, keys encoded, carried instances read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.detector import carried as tables
from engine.detector import kernels
from engine.detector.codes import Codes, encode_step
from engine.detector.graph import Graph, Node
from engine.detector.instances import NONE, Bools, Carry, Instances, Int32, Moment, points
from engine.detector.keys import NO_KEYS, Keys
from engine.detector.occurrences import CarriedOccurrences, Occurrences, Ranking, gather, number
from engine.detector.operators.event import Event
from engine.detector.operators.repeated import endow
from engine.values import Batch, Carried


@dataclass(frozen=True, slots=True)
class Frame:
    """The input of one step: carried occurrences by event type, known keys and those that are new
    by census, what is carried by node digest."""

    graph: Graph
    nodes: Mapping[str, Node]
    occurrences: Occurrences
    carried: Mapping[str, CarriedOccurrences]
    codes: Codes
    known: Mapping[str, tuple[Int32, Int32]]
    carry: Mapping[str, Carry]

    def keys(self, node: Node) -> Keys:
        return self.codes.keys.get(self.graph.domain(node), NO_KEYS)

    def unseen(self, node: Node) -> int:
        """The code that stands for every key not seen yet."""
        return self.keys(node).count + 1

    def moment(self, node: Node, watermark: int, last: int) -> Moment:
        """What an operator knows beside instances."""
        known = self.known[node.census][0] if node.census else np.empty(0, np.int32)
        unseen = self.unseen(node)
        return Moment(
            self.occurrences,
            unseen,
            np.append(known, np.int32(unseen)),
            watermark,
            last,
        )

    def arrivals(self, shape: Event) -> Instances:
        """The occurrences of an event type that arrive in this step, from the activation on."""
        source = self.occurrences.sources.get(shape.event)
        if source is None:
            return NONE
        rows = source.arrivals
        first = rows.start + int(np.searchsorted(self.occurrences.time[rows], shape.activation))
        if shape.columns is None or rows.start == rows.stop:
            key = np.zeros(rows.stop - first, dtype=np.int32)
        else:
            key = self.codes.arrivals[shape.event, shape.columns][first - rows.start :]
        return points(key, self.occurrences.time[first : rows.stop], np.arange(first, rows.stop))


def open_frame(
    graph: Graph,
    nodes: Mapping[str, Node],
    stored: Carried,
    batches: Mapping[str, Batch],
    ranking: Ranking,
) -> Frame:
    """Read what the step's `nodes` carry, and number and encode the step's occurrences."""
    tables.check(stored.tables)
    events = {role for node in nodes.values() for role in node.roles}
    carried = {
        event: tables.read_occurrences(event, stored.tables["occ:" + event])
        for event in events
        if "occ:" + event in stored.tables
    }
    codes = encode_step(graph, nodes.values(), stored, batches)
    tied: dict[str, Bools] = {}
    for node in nodes.values():
        if isinstance(node.shape, Event) and node.shape.event in batches:
            event, batch = node.shape.event, batches[node.shape.event]
            mark = _tied(node.shape, batch, codes, codes.keys.get(graph.domain(node), NO_KEYS))
            tied[event] = tied[event] | mark if event in tied else mark
    sources = gather(carried, batches)
    occurrences = number(sources, carried, tied, ranking)
    censuses = {node.census for node in nodes.values() if node.census}
    known = {name: codes.known(graph, name, batches) for name in censuses}
    frame = Frame(graph, nodes, occurrences, carried, codes, known, {})
    return Frame(graph, nodes, occurrences, carried, codes, known, _carry(frame, stored))


def _tied(shape: Event, batch: Batch, codes: Codes, keys: Keys) -> Bools:
    """Marks the arrivals that share their instant with another one of their type and key."""
    if shape.columns is None:
        key = np.zeros(len(batch), dtype=np.int32)
    else:
        key = codes.arrivals[shape.event, shape.columns]
    mark: Bools = kernels.tied(key, np.array(batch.time), keys.count)
    return mark


def _carry(frame: Frame, stored: Carried) -> dict[str, Carry]:
    """What each node carries; new keys begin with what is carried for keys not seen yet."""
    rows = {
        event: (frame.occurrences.sources[event].base, c.serial)
        for event, c in frame.carried.items()
    }
    carry: dict[str, Carry] = {}
    for digest, node in frame.nodes.items():
        name = "node:" + digest
        if name not in stored.tables:
            carry[digest] = (NONE,) * node.shape.slots
            continue
        key = frame.codes.stored.get(name, np.empty(0, np.int32))
        read = tables.read_carry(node, stored.tables[name], key, frame.unseen(node), rows)
        if node.census:
            new = frame.known[node.census][1]
            read = tuple(endow(part, new, frame.unseen(node)) for part in read)
        carry[digest] = read
    return carry
