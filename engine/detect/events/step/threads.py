"""Nodes that may be stepped side by side, on threads: kernels let other threads go on."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tidegate.engine.detect.events.graph.graph import Graph, Node
from tidegate.engine.detect.events.graph.operators.detection import Detection
from tidegate.engine.detect.events.graph.operators.periodic import Periodic
from tidegate.engine.detect.events.graph.operators.periodic_star import PeriodicStar
from tidegate.engine.detect.events.graph.search.choice import Choice
from tidegate.engine.detect.events.step.chains import Chain

ARRIVALS_MIN = 20_000
"""A step with fewer arrivals is done sooner than threads are started."""
_IN_TURN = Choice | Detection | Periodic | PeriodicStar
"""These make ticks, wait for what other rules detect, or leave no room for another thread."""

Generation = tuple[Node, ...]


def generations(
    graph: Graph, chains: Mapping[str, Chain], only_scanned: Collection[str]
) -> tuple[Generation, ...]:
    """The nodes that may be stepped before all others, of chains the first: those of the first
    generation need arrivals alone, those of the next one what the first gives, and so on.

    Example: of `a ; b`, `b and c` and `(b and c) - d`, the first generation is the chain, the
    events b, c, d; the second `b and c`, the third the `-`.
    """
    number: dict[str, int] = {}
    found: list[list[Node]] = []
    for node in graph.nodes.values():
        chain = chains.get(node.digest)
        ahead = [number.get(operand.digest) for operand in node.operands]
        in_turn = isinstance(node.shape, _IN_TURN) or node.census is not None
        if chain:
            place = 0
        elif in_turn or None in ahead or node.digest in only_scanned:
            continue
        else:
            place = max((n + 1 for n in ahead if n is not None), default=0)
        number[node.digest] = place
        if chain is None or node is chain.nodes[0]:
            found += [[] for _ in range(place + 1 - len(found))]
            found[place].append(node)
    return tuple(map(tuple, found))
