"""The frame of a step: its occurrences numbered, its keys encoded, its carried state read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tidegate.engine.core.event_names import whole_of
from tidegate.engine.core.values import FOREVER, Int64
from tidegate.engine.detect.events.graph.graph import Graph, Node, Stream
from tidegate.engine.detect.events.graph.operators.broadcast import endow
from tidegate.engine.detect.events.graph.operators.detection import Detection
from tidegate.engine.detect.events.graph.operators.event import Event
from tidegate.engine.detect.events.graph.timers import Behind
from tidegate.engine.detect.events.kernels import ties
from tidegate.engine.detect.events.occurrences.instances import (
    EVERY_KEY,
    NONE,
    Arrivals,
    Carry,
    Counting,
    Flow,
    Instances,
    Int32,
    Moment,
    Pending,
    no_pending,
    points,
)
from tidegate.engine.detect.events.occurrences.keys import NO_KEYS, Keys
from tidegate.engine.detect.events.occurrences.occurrences import Occurrences, Ranking, number
from tidegate.engine.detect.events.occurrences.timeline import Timeline
from tidegate.engine.detect.events.state.decoded import Decoded
from tidegate.engine.detect.events.step.key_codes import Codes, encode_step


class Until(NamedTuple):
    """How far a step goes (see `Moment`)."""

    watermark: int
    last: int
    timers: Counting

    def behind(self, micros: int) -> Until:
        """How far it goes for rules that run so far behind."""
        if not micros or self.watermark == FOREVER:
            return self
        own = self.watermark - micros
        return Until(own, self.last, Behind(self.timers, micros))


class Frame:
    """One step: its nodes by digest, its occurrences, its carried state, its key codes.

    A rule that other rules use adds its detections as occurrences while the step goes on (S8).
    """

    def __init__(
        self,
        graph: Graph,
        nodes: Mapping[str, Node],
        occurrences: Occurrences,
        decoded: Decoded,
        codes: Codes,
        passed_over: Mapping[str, Int64],
        timeline: Timeline,
    ) -> None:
        """`passed_over`: by node digest the positions in the timeline of the arrivals that are not
        the greatest of their key and instant."""
        self.graph = graph
        self.nodes = nodes
        self.occurrences = occurrences
        self.decoded = decoded
        self.codes = codes
        self._passed_over = passed_over
        self.timeline = timeline
        self._known: dict[str, tuple[Int32, Int32]] = {}
        self._detected: dict[str, Flow] = {}
        self.censuses = dict.fromkeys(node.census for node in nodes.values() if node.census)

    def keys(self, node: Node) -> Keys:
        return self.codes.keys.get(self.graph.domain(node), NO_KEYS)

    def unseen(self, node: Node) -> int:
        """The code that stands for every key not seen yet."""
        return self.keys(node).count + 1

    def moment(self, node: Node, until: Until) -> Moment:
        """What an operator knows beside instances."""
        known = self.known(node.census)[0] if node.census else np.empty(0, np.int32)
        unseen = self.unseen(node)
        return Moment(
            self.occurrences,
            unseen,
            np.append(known, np.int32(unseen)),
            until.watermark,
            until.last,
            until.timers,
        )

    def known(self, name: str) -> tuple[Int32, Int32]:
        """The codes of the known keys of a census, and of those that are new in this step.

        A key is known from its first arrival on. A key of a used rule is known from its first
        pending start on: a later detection may start there. A census that the step does not ask
        for stays as it is.
        """
        if name not in self._known:
            census = self.graph.censuses[name]
            stored = self.decoded.known.get(name, np.empty(0, np.int32))
            parts = [self.codes.coded(self.graph.census_domain(name), stored)]
            for stream in sorted(census.streams) if name in self.censuses else ():
                shape = Detection(stream[0], "", stream[1], census.activation, all_rows=True)
                if stream[0] in self.timeline.counts:
                    time = self.timeline.batch(stream[0]).time
                    first = np.searchsorted(time, census.activation)
                    parts.append(self.codes.of(*stream)[first:])
                elif stream[0] in self._detected:
                    flow = self.detections(shape)
                    single = (flow.pending.key > EVERY_KEY) & (
                        flow.pending.key <= self._count(stream)
                    )
                    parts += [flow.instances.key, flow.pending.key[single]]
            known = np.unique(np.concatenate(parts))
            self._known[name] = known, np.setdiff1d(known, parts[0])
        return self._known[name]

    def _count(self, stream: Stream) -> int:
        """How many keys a stream's domain has."""
        return self.codes.keys.get(self.graph.domains[stream], NO_KEYS).count

    def stored(self, node: Node) -> Carry | None:
        """What a node carried, in the key codes of this step; None if it did not."""
        slots, domain = self.decoded.carry.get(node.digest), self.graph.domain(node)
        if slots is None or domain not in self.codes.again:
            return slots
        return tuple(replace(part, key=self.codes.coded(domain, part.key)) for part in slots)

    def carry(self, node: Node) -> Carry:
        """What a node carries. A new key begins with what the keys not seen yet carry."""
        read = self.stored(node)
        if read is None:
            return (NONE,) * node.shape.slots
        if node.census:
            new = self.known(node.census)[1]
            read = tuple(endow(part, new, self.unseen(node)) for part in read)
        return read

    def arrivals(self, node: Node, shape: Event) -> Instances:
        """The arrivals of an event type, from the activation on. They are all there, or only the
        greatest of each key and instant where nothing else counts."""
        if shape.event not in self.timeline.counts:
            return NONE
        time = self.timeline.batch(shape.event).time
        key = self.codes.of(shape.event, shape.columns)
        rows = self.occurrences.sources[shape.event].arrivals
        first = int(np.searchsorted(time, shape.activation))
        found = points(key[first:], time[first:], rows[first:])
        if node.digest not in self._passed_over:
            return found
        keep = np.ones(len(time), dtype=np.bool_)
        keep[self.timeline.index[self._passed_over[node.digest]]] = False
        return found.where(keep[first:])

    def arrivals_of(self, leaves: Sequence[Node]) -> Arrivals:
        """The arrivals of some event types, from their activation on."""
        shapes = [leaf.shape for leaf in leaves if isinstance(leaf.shape, Event)]
        line, code = self.timeline, self.timeline.code
        for leaf in leaves:
            if leaf.digest in self._passed_over:
                code = code.copy() if code is line.code else code
                code[self._passed_over[leaf.digest]] = len(line.events)
        key = self.codes.along({shape.event: shape.columns for shape in shapes})
        begin = int(np.searchsorted(line.time, shapes[0].activation))
        first = self.occurrences.first + begin
        return Arrivals(line.events, code[begin:], line.time[begin:], key[begin:], first)

    def add_detected(self, rule: str, detected: Flow) -> None:
        """Adds a rule's detections, numbered as its occurrences, for the rules that use it."""
        self._detected[rule] = detected

    def detected(self, rule: str) -> Instances:
        """The detections of a rule in this step, by its own keys."""
        return self._detected[rule].instances

    def detections(self, shape: Detection) -> Flow:
        """The detections of a rule in this step, from the activation on. Their key codes are those
        of the rule that uses them."""
        if shape.rule not in self._detected:
            return Flow(NONE, no_pending())
        found, pending = self._detected[shape.rule].instances, self._detected[shape.rule].pending
        first = int(np.searchsorted(found.end, shape.activation))
        found = found.where(np.arange(len(found)) >= first)
        code = self._as_used(shape)
        own = Instances(code[found.key], found.start, found.end, found.offsets, found.row,
                        found.role)  # fmt: skip
        return Flow(own, Pending(code[pending.key], pending.start))

    def _as_used(self, shape: Detection) -> Int32:
        """For each key code of a used rule the key code of the rule that uses it."""
        own = self.keys(self.graph.roots[shape.rule])
        if shape.columns is None:
            return np.zeros(own.count + 2, dtype=np.int32)
        stream = (shape.rule, shape.columns)
        if self.graph.same_keys(stream):
            return np.arange(own.count + 2, dtype=np.int32)
        keys = self.codes.keys.get(self.graph.domains[stream], NO_KEYS)
        inside = np.empty(0, np.int32)
        if own.count:
            names = self.graph.key_names[shape.rule]
            inside = keys.codes_of([own.columns[names.index(name)] for name in shape.columns])
        return np.concatenate([[0], inside, [keys.count + 1]]).astype(np.int32)


def open_frame(
    graph: Graph,
    nodes: Mapping[str, Node],
    decoded: Decoded,
    timeline: Timeline,
    ranking: Ranking,
) -> Frame:
    """Number and encode the occurrences of a step of `nodes`."""
    codes = encode_step(graph, nodes.values(), decoded, timeline)
    passed_over, tied = _simultaneous(graph, nodes, codes, timeline, ranking)
    used = {role for node in nodes.values() for role in node.roles} & graph.roots.keys()
    occurrences = number(timeline, decoded.events, used, tied, ranking)
    return Frame(graph, nodes, occurrences, decoded, codes, passed_over, timeline)


def _simultaneous(
    graph: Graph,
    nodes: Mapping[str, Node],
    codes: Codes,
    timeline: Timeline,
    ranking: Ranking,
) -> tuple[dict[str, Int64], dict[str, Int64]]:
    """Two maps of positions in the timeline.

    By node digest, of nodes for which only the greatest arrival of a key and instant counts: the
    other arrivals. By event type: the arrivals that are to be ranked by their parameters.
    """
    passed_over: dict[str, Int64] = {}
    tied: dict[str, Int64] = {}
    across = _across(graph, [*nodes.values()])
    for digest, node in nodes.items() if len(timeline.simultaneous) else ():
        shape = node.shape
        if not isinstance(shape, Event) or shape.event not in timeline.counts:
            continue
        position = timeline.of_event(timeline.simultaneous, shape.event)
        keys = codes.keys.get(graph.domain(node), NO_KEYS).count
        code = codes.of(shape.event, shape.columns, position)
        time = timeline.time[position]
        group, count = ties.groups(code, time, keys)
        if count < len(position) and not shape.all_rows:
            several, of_each = _repeated(position, group)
            row, table = timeline.rows(several, shape.event), timeline.table(shape.event)
            passed_over[digest] = np.delete(several, ranking.greatest(of_each, table, row))
        if shape.event in across:
            group, count = ties.groups(np.zeros_like(code), time, 0)
        if count < len(position) and (shape.all_rows or shape.event in across):
            known = tied.get(shape.event, np.empty(0, np.int64))
            tied[shape.event] = np.union1d(known, _repeated(position, group)[0])
    for event in across & timeline.counts.keys():
        whole = whole_of(event)
        if whole != event and whole in timeline.counts:
            if timeline.table(whole) is timeline.table(event):
                continue
            for edge in (event, whole):  # two images, which have their own parameters
                tied[edge] = timeline.positions(edge)
    return passed_over, tied


def _repeated(position: Int64, group: Int64) -> tuple[Int64, Int64]:
    """The positions whose group has several members, and their groups, numbered from 0 on."""
    size = np.bincount(group)
    mark = size[group] > 1
    return position[mark], (np.cumsum(size > 1) - 1)[group[mark]]


def _across(graph: Graph, nodes: Collection[Node]) -> frozenset[str]:
    """The event types whose simultaneous occurrences are ranked whatever their keys are.

    They are of two kinds: the event types of a used rule, if one key of the using rule sees several
    keys of the used one; and an event type whose `begin_of` is an event too, as both share a name.
    """
    begun = {role for node in nodes for role in node.roles if whole_of(role) != role}
    return frozenset({*begun, *map(whole_of, begun)}).union(
        *(
            graph.events[node.shape.rule]
            for node in nodes
            if isinstance(node.shape, Detection)
            if not (node.own and all(graph.same_keys(stream) for stream in node.streams))
        )
    )
