"""The event graph (Snoop): expressions of all rules as shared nodes.

A node is named by the digest of all that its instances depend on: the operator and its parameters,
the operands, the key columns and the activation of the leaves, and its horizon. So equal
subexpressions of rules with equal keys and activation are one node, with one carry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import accumulate

from tidegate.engine.detect.events.graph.operators.detection import Detection
from tidegate.engine.detect.events.graph.shape import Scan, Shape
from tidegate.engine.detect.events.kernels.columns import NEVER
from tidegate.engine.detect.events.occurrences.instances import Carry, Flow
from tidegate.rules.expressions import nodes as x

Stream = tuple[str, tuple[str, ...]]
"""A keyed event type and its key columns."""


@dataclass(frozen=True, slots=True)
class Node:
    """One operator over its operands.

    roles[i]        the event type of the i-th event of the expression, from the left
    streams         the keyed event types below
    own             whether it has instances of one key
    every           whether it has instances of every key, which are made of broadcasts only
    point           whether all its instances have start = end
    horizon_micros  the age, in microseconds, from which on its instances are of no use
    census          the name of the set of known keys, if broadcasts are repeated for each of them
                    (see `operators.broadcast`)
    timed           whether an instance may end when nothing arrives
    apart           whether broadcasts must be repeated, as one may count for some keys only
    expression      the expression that it detects, for people
    """

    digest: str
    shape: Shape | Scan
    operands: tuple[Node, ...]
    roles: tuple[str, ...]
    streams: frozenset[Stream]
    own: bool
    every: bool
    point: bool
    horizon_micros: int | None = None
    census: str | None = None
    timed: bool = False
    apart: bool = False
    expression: x.Expression | None = field(default=None, compare=False)

    @property
    def keys(self) -> tuple[bool, bool]:
        return self.own, self.every

    def oldest(self, watermark: int) -> int:
        """When an instance must start at least, so that it is of use after a watermark."""
        return NEVER + 1 if self.horizon_micros is None else watermark + 1 - self.horizon_micros

    def forgetting(self, flow: Flow, kept: Carry, watermark: int) -> tuple[Flow, Carry]:
        """A step's flow and carry without what is older than the horizon."""
        if self.horizon_micros is None:
            return flow, kept
        oldest = self.oldest(watermark)
        kept = tuple(part.where(part.start >= oldest) for part in kept)
        return replace(flow, pending=flow.pending.since(oldest)), kept

    def walk(self) -> Iterator[Node]:
        """Operands before the node that reads them; a shared one each time."""
        for operand in self.operands:
            yield from operand.walk()
        yield self


def first_roles(operands: Sequence[Node]) -> tuple[int, ...]:
    """The number of the first role of each operand."""
    return tuple(accumulate((len(o.roles) for o in operands[:-1]), initial=0))


def mixed(operands: Sequence[Node], looked_at: Node | None = None) -> bool:
    """Whether keys must be told apart. They must if some operand has instances of every key, and
    some operand or `looked_at` has instances of one key."""
    nodes = operands if looked_at is None else (*operands, looked_at)
    return any(o.every for o in operands) and any(o.own for o in nodes)


def digest(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Census:
    """A set of known keys, for rules that tell their keys apart: the keys of `streams` since
    `activation`."""

    name: str
    streams: frozenset[Stream]
    activation: int


@dataclass(frozen=True, slots=True)
class Graph:
    """The expressions of all rules.

    roots      rule -> the node of its expression; a rule comes after those that it uses as events
    uses       rule -> the rules that it uses as events
    events     rule -> its event types, and those of the rules that it uses
    key_names  rule -> the names of its key columns
    nodes      digest -> node, operands first
    domains    stream -> the number of its domain; a domain has one set of key codes
    censuses   name -> census
    """

    roots: Mapping[str, Node]
    uses: Mapping[str, frozenset[str]]
    events: Mapping[str, frozenset[str]]
    key_names: Mapping[str, tuple[str, ...]]
    nodes: Mapping[str, Node]
    domains: Mapping[Stream, int]
    censuses: Mapping[str, Census]

    def active(self, arrivals: Collection[str], old: Collection[str] = ()) -> list[str]:
        """The rules to step when these event types arrive: those with such an event, a timer, or a
        node among `old`, and the rules that they use, which come first. `old`: nodes by digest that
        carry what is too old; it goes when they are stepped."""
        found = {
            rule
            for rule, root in self.roots.items()
            if root.timed
            or not self.events[rule].isdisjoint(arrivals)
            or (old and any(node.digest in old for node in root.walk()))
        }
        for rule in reversed([*self.roots]):
            if rule in found:
                found |= self.uses[rule]
        return [rule for rule in self.roots if rule in found]

    def same_keys(self, stream: Stream) -> bool:
        """Whether a stream of a rule's detections is keyed by the key columns of that rule."""
        return stream[1] == self.key_names[stream[0]]

    def domain(self, node: Node) -> int | None:
        """The domain of a node's keys; None for a node of broadcasts."""
        return next((self.domains[stream] for stream in node.streams), None)

    def census_domain(self, name: str) -> int:
        """The domain of a census."""
        return next(self.domains[stream] for stream in self.censuses[name].streams)


def connect(
    roots: Mapping[str, Node],
    key_names: Mapping[str, tuple[str, ...]],
    censuses: Iterable[Census],
) -> Graph:
    """The graph of some rules' nodes: equal ones become one."""
    nodes = {node.digest: node for root in roots.values() for node in root.walk()}
    uses = {rule: frozenset(root.roles) & roots.keys() for rule, root in roots.items()}
    events: dict[str, frozenset[str]] = {}
    for rule, root in roots.items():
        own = frozenset(root.roles) - uses[rule]
        events[rule] = own.union(*(events[used] for used in uses[rule]))
    graph = Graph(roots, uses, events, key_names, nodes, {}, {c.name: c for c in censuses})
    groups = [node.streams for node in nodes.values() if node.streams]
    groups += [
        frozenset({stream, *roots[stream[0]].streams})
        for node in nodes.values()
        if isinstance(node.shape, Detection)
        for stream in node.streams
        if graph.same_keys(stream)
    ]
    return replace(graph, domains=_domains(groups))


def _domains(groups: Iterable[Iterable[Stream]]) -> dict[Stream, int]:
    """The domain of each stream. The streams of a group are in one domain."""
    leader: dict[Stream, Stream] = {}

    def lead(stream: Stream) -> Stream:
        while leader.setdefault(stream, stream) != stream:
            stream = leader[stream]
        return stream

    for group in groups:
        first, *more = sorted(group)
        for member in [first, *more]:
            leader[lead(member)] = lead(first)
    places: dict[Stream, int] = {}
    for stream in sorted(leader):
        places.setdefault(lead(stream), len(places))
    return {stream: places[lead(stream)] for stream in leader}
