"""What a step begins with: occurrences numbered, keys encoded, carried instances read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from engine.detector import carried as tables
from engine.detector import ties
from engine.detector.codes import Codes, encode_step
from engine.detector.graph import Graph, Node
from engine.detector.instances import NONE, Bools, Carry, Instances, Int32, Moment, points
from engine.detector.keys import NO_KEYS, Keys
from engine.detector.occurrences import CarriedOccurrences, Occurrences, Ranking, gather, number
from engine.detector.operators.event import Event
from engine.detector.operators.repeated import endow
from engine.values import Batch, Carried, Int64


@dataclass(frozen=True, slots=True)
class Frame:
    """The input of one step: carried occurrences by event type, by node digest the arrivals that
    are the greatest of their key and instant, if not all are; known keys and those that are new by
    census, what is carried by node digest."""

    graph: Graph
    nodes: Mapping[str, Node]
    occurrences: Occurrences
    carried: Mapping[str, CarriedOccurrences]
    codes: Codes
    chosen: Mapping[str, Int64]
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

    def arrivals(self, node: Node, shape: Event) -> Instances:
        """The occurrences of an event type that arrive in this step, from the activation on: all of
        them, or the greatest of each key and instant."""
        source = self.occurrences.sources.get(shape.event)
        if source is None or source.carried == len(source.batch):
            return NONE
        rows = source.arrivals
        time = self.occurrences.time[rows]
        key = self.codes.of(shape.event, shape.columns, len(time))
        first = int(np.searchsorted(time, shape.activation))
        if node.digest not in self.chosen:
            return points(key[first:], time[first:], np.arange(rows.start + first, rows.stop))
        place = self.chosen[node.digest]
        place = place[np.searchsorted(place, first) :]
        return points(key[place], time[place], rows.start + place)


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
    chosen, tied = _simultaneous(graph, nodes, codes, batches, ranking)
    sources = gather(carried, batches)
    occurrences = number(sources, carried, tied, ranking)
    censuses = {node.census for node in nodes.values() if node.census}
    known = {name: codes.known(graph, name, batches) for name in censuses}
    frame = Frame(graph, nodes, occurrences, carried, codes, chosen, known, {})
    return replace(frame, carry=_carry(frame, stored))


def _simultaneous(
    graph: Graph,
    nodes: Mapping[str, Node],
    codes: Codes,
    batches: Mapping[str, Batch],
    ranking: Ranking,
) -> tuple[dict[str, Int64], dict[str, Bools]]:
    """By node digest the arrivals that are the greatest of their key and instant, where only these
    count and there are others; by event type the marks of those that are to be ranked."""
    chosen: dict[str, Int64] = {}
    tied: dict[str, Bools] = {}
    for digest, node in nodes.items():
        shape = node.shape
        if not isinstance(shape, Event) or shape.event not in batches:
            continue
        batch = batches[shape.event]
        time = np.array(batch.time)
        if (time[1:] > time[:-1]).all():
            continue
        keys = codes.keys.get(graph.domain(node), NO_KEYS).count
        group, count = ties.groups(codes.of(shape.event, shape.columns, len(batch)), time, keys)
        if count == len(batch):
            continue
        if shape.all_rows:
            mark = np.bincount(group)[group] > 1
            tied[shape.event] = tied.get(shape.event, np.zeros_like(mark)) | mark
        else:
            chosen[digest] = ranking.greatest(group, batch.table, batch.row)
    return chosen, tied


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
