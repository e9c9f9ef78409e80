"""The event graph (Snoop): expressions of all rules as shared nodes.

A node is named by the digest of all that its instances depend on: the operator with what the rule
wrote, its operands, the key columns and the activation at the leaves, and how long it must
remember. Equal subexpressions of rules with equal keys and activation are one node, with one carry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

from engine.detector.operators.shape import Shape

Stream = tuple[str, tuple[str, ...]]
"""A keyed event type and its key columns."""


@dataclass(frozen=True, slots=True)
class Node:
    """One operator over its operands.

    roles[i] is the event type of the i-th event of the expression, from the left; `streams` the
    keyed event types below. `own`: it has instances of one key, `every`: such of every key
    (broadcasts only). `point`: its instances have start = end. `horizon_micros`: an instance older
    than that is of no use any more. `census` names the set of known keys, where broadcasts are
    repeated for each (see `operators.repeated`). `timed`: something may end when nothing arrives.
    """

    digest: str
    shape: Shape
    operands: tuple[Node, ...]
    roles: tuple[str, ...]
    streams: frozenset[Stream]
    own: bool
    every: bool
    point: bool
    horizon_micros: int | None = None
    census: str | None = None
    timed: bool = False

    def walk(self) -> Iterator[Node]:
        """Operands before the node that reads them; a shared one each time."""
        for operand in self.operands:
            yield from operand.walk()
        yield self


def digest(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Census:
    """The known keys of rules that keep their keys apart: those of `streams` since `activation`."""

    name: str
    streams: frozenset[Stream]
    activation: int


@dataclass(frozen=True, slots=True)
class Graph:
    """The expressions of all rules.

    roots: the node of each rule's expression; nodes: all, by digest, operands first; domains: which
    streams share one set of key codes; censuses by name.
    """

    roots: Mapping[str, Node]
    nodes: Mapping[str, Node]
    domains: Mapping[Stream, int]
    censuses: Mapping[str, Census]

    def events(self) -> frozenset[str]:
        """The event types that some rule looks at."""
        return frozenset(role for root in self.roots.values() for role in root.roles)

    def domain(self, node: Node) -> int | None:
        """The domain of a node's keys; None for a node of broadcasts."""
        return next((self.domains[stream] for stream in node.streams), None)


def connect(roots: Mapping[str, Node], censuses: Iterable[Census]) -> Graph:
    """The graph of some rules' nodes: equal ones become one."""
    nodes = {node.digest: node for root in roots.values() for node in root.walk()}
    groups = [node.streams for node in nodes.values() if node.streams]
    return Graph(roots, nodes, _domains(groups), {census.name: census for census in censuses})


def _domains(groups: Iterable[Iterable[Stream]]) -> dict[Stream, int]:
    """Streams of one group are in one domain."""
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
