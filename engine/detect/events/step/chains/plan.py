"""Chains of the event graph, each stepped in one scan: `((a ; b) - c ; d) within s`.

A chain is a path of `;`, `-` and `within` nodes over distinct event types that all have one key. It
is the special case of the graph's own way (a node at a time, `operators.sequence` and others): the
same instances, and the same carried instances, node by node. So a rule that comes or goes changes
how its neighbours are stepped, and nothing of what they carry.

Example: `a ; b ; c` is the path a -> (a ; b) -> (a ; b ; c), two `;` nodes. The first carries the
latest a of each key, the second the latest match of (a ; b): the scan has both in one record.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tidegate.engine.detect.events.graph.graph import Graph, Node
from tidegate.engine.detect.events.graph.operators.event import Event
from tidegate.engine.detect.events.graph.operators.minus import Minus
from tidegate.engine.detect.events.graph.operators.sequence import Sequence as Seq
from tidegate.engine.detect.events.graph.operators.within import Within
from tidegate.engine.detect.events.graph.shape import Scan
from tidegate.engine.detect.events.kernels.columns import ENDLESS


@dataclass(frozen=True, slots=True)
class Stage:
    """One event type of a chain. An occurrence of it at t, with the latest match of the stages
    before, is a match if that starts at t - span or later, and after the last occurrence of every
    event type in `guards`.

    leaf       the node of the event type
    top        the node whose instances are the matches of this stage
    role       the role of the event type
    sequence   the `;` that reads the stage before; None for the first stage
    guards     the nodes of the event types that must be absent
    minus      the `-` node of each guard
    """

    leaf: Node
    top: Node
    role: int
    sequence: Node | None = None
    span: int = ENDLESS
    guards: tuple[Node, ...] = ()
    minus: tuple[Node, ...] = ()


@dataclass(frozen=True, eq=False)
class Chain:
    """Stages over distinct event types, all of one key or all without one. `shown` are the nodes
    whose instances others read; each of them ends a stage."""

    stages: tuple[Stage, ...]
    shown: frozenset[str] = frozenset()

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Its nodes but for the events, from the first stage on."""
        found: list[Node] = []
        for stage in self.stages:
            inside, node = [], stage.top
            while node is not stage.leaf:
                inside.append(node)
                if node is stage.sequence:
                    break
                node = node.operands[0]
            found += reversed(inside)
        return tuple(found)

    @cached_property
    def leaves(self) -> tuple[Node, ...]:
        """Its event types: the stages', then the guards'."""
        guards = (guard for stage in self.stages for guard in stage.guards)
        return (*(stage.leaf for stage in self.stages), *guards)

    @cached_property
    def layout(self) -> Layout:
        last = len(self.stages) - 1
        events = tuple(leaf.roles[0] for leaf in self.leaves)
        sizes = [stage + 2 for stage in range(last)] + [0] + [2] * (len(events) - last - 1)
        carried = {s.sequence.digest: p - 1 for p, s in enumerate(self.stages) if s.sequence}
        for stage in self.stages:
            for node, guard in zip(stage.minus, stage.guards, strict=True):
                carried[node.digest] = events.index(guard.roles[0])
        at = tuple(sum(sizes[:place]) for place in range(len(events)))
        return Layout(events, at, sum(sizes), carried)

    def upto(self, digests: Collection[str]) -> Chain:
        """The first stages, as far as their nodes are among these."""
        count = sum(stage.top.digest in digests for stage in self.stages)
        return self if count == len(self.stages) else self._beginnings[count]

    @cached_property
    def _beginnings(self) -> tuple[Chain, ...]:
        return tuple(replace(self, stages=self.stages[:n]) for n in range(len(self.stages)))


@dataclass(frozen=True, slots=True)
class Layout:
    """The record that a scan keeps for each key.

    events            the event type of each place; places are the stages, then the guards
    at[place]         where in a record the state of a place begins
    size              the length of a record
    carried[digest]   the place whose state a `;` or a `-` node carries

    Example: `(a ; b) - c` has the events a, b, c, at = (0, 2, 2) and size 4: the record is [start
    of a, row of a | time of c, row of c]. The last stage, b, has no state.
    """

    events: tuple[str, ...]
    at: tuple[int, ...]
    size: int
    carried: Mapping[str, int]


def chains(graph: Graph) -> dict[str, Chain]:
    """The chain of each node that is stepped in one, by digest.

    Of two chains that begin alike the longer one is scanned, and the rest of the other is stepped
    node by node. So is a chain if another rule reads one of its nodes between two stages.
    """
    read = _readers(graph)
    found: dict[str, Chain] = {}
    candidates = [chain for node in graph.nodes.values() if (chain := _chain(node))]
    for chain in sorted(candidates, key=lambda chain: -len(chain.nodes)):
        nodes = [node.digest for node in chain.nodes]
        ends = {stage.top.digest for stage in chain.stages}
        shown = {digest for digest in nodes if read[digest] > 1} | {nodes[-1]}
        if found.keys().isdisjoint(nodes) and shown <= ends:
            found |= dict.fromkeys(nodes, replace(chain, shown=frozenset(shown)))
    return found


def only_scanned(graph: Graph, found: Collection[str]) -> frozenset[str]:
    """The event types' nodes that nothing reads but scans: chains, whose nodes are `found`, and
    nodes that are a `Scan`."""
    leaves = {node.digest for node in graph.nodes.values() if isinstance(node.shape, Event)}
    leaves -= {root.digest for root in graph.roots.values()}
    return frozenset(leaves).difference(
        operand.digest
        for node in graph.nodes.values()
        if node.digest not in found and not isinstance(node.shape, Scan)
        for operand in node.operands
    )


def _readers(graph: Graph) -> Mapping[str, int]:
    """How many nodes, and rules, read each node."""
    found = dict.fromkeys(graph.nodes, 0)
    for node in graph.nodes.values():
        for operand in node.operands:
            found[operand.digest] += 1
    for root in graph.roots.values():
        found[root.digest] += 1
    return found


def _chain(node: Node) -> Chain | None:
    """The chain that ends with a node; None if there is none, or it is but one event type.

    Its matches start no earlier than those before them, so that the greatest is the latest.
    """
    stages = _stages(node)
    if stages is None or not any(stage.sequence for stage in stages):
        return None
    leaves = [*(s.leaf for s in stages), *(guard for s in stages for guard in s.guards)]
    shapes = [leaf.shape for leaf in leaves if isinstance(leaf.shape, Event)]
    names = {shape.event for shape in shapes}
    alike = {(shape.columns is None, shape.activation) for shape in shapes}
    if len(names) < len(leaves) or len(alike) > 1:
        return None
    return Chain(stages)


def _stages(node: Node) -> tuple[Stage, ...] | None:
    match node.shape:
        case Event(all_rows=False):
            return (Stage(node, node, 0),)
        case Seq(role=role, span_micros=span):
            before, leaf = _stages(node.operands[0]), node.operands[1]
            if before and _is_leaf(leaf):
                stage = Stage(leaf, node, role, node, ENDLESS if span is None else span)
                return (*before, stage)
        case Within(duration=duration) if duration.fixed:
            if before := _stages(node.operands[0]):
                last = replace(before[-1], top=node, span=min(before[-1].span, duration.micros))
                return (*before[:-1], last)
        case Minus():
            before, leaf = _stages(node.operands[0]), node.operands[1]
            if before and _is_leaf(leaf):
                return (*before[:-1], _guarded(before[-1], node, leaf))
    return None


def _guarded(stage: Stage, minus: Node, guard: Node) -> Stage:
    guards, nodes = (*stage.guards, guard), (*stage.minus, minus)
    return replace(stage, top=minus, guards=guards, minus=nodes)


def _is_leaf(node: Node) -> bool:
    return isinstance(node.shape, Event) and not node.shape.all_rows
