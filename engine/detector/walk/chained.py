"""A walk in the contexts that use occurrences up: chains of event types (`contexts.chain`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.engine.detector.contexts.chain import Chain
from tidegate.engine.detector.graph import Node
from tidegate.engine.detector.instances import NONE
from tidegate.engine.detector.log import Keyed, Log
from tidegate.engine.detector.operators.event import Event
from tidegate.engine.detector.walk import kernel
from tidegate.engine.detector.walk.found import Found, Walked


@dataclass(frozen=True, slots=True)
class Chained:
    """A rule's chain over event types, all keyed by `columns` (None: all without a key)."""

    chain: Chain
    events: tuple[str, ...]
    columns: tuple[str, ...] | None


def chained(root: Node) -> Chained | None:
    """The chain that a rule's node is, if it is one."""
    leaves = [o.shape for o in root.operands if isinstance(o.shape, Event)]
    if not isinstance(root.shape, Chain) or len({leaf.columns for leaf in leaves}) > 1:
        return None
    return Chained(root.shape, tuple(leaf.event for leaf in leaves), leaves[0].columns)


def walk_chained(rule: str, own: Chained, log: Log, keyed: Keyed) -> Walked | None:
    """What a rule detects; None if there are simultaneous occurrences that only the event graph
    can choose among."""
    value, low, keys = keyed
    last, place = np.uint64(len(own.events) - 1), log.places(own.events)
    *line, possible = kernel.timeline(log.code, log.time, value, low, last, place)
    if not possible:
        return None
    stage, key, row = line
    name = np.argsort(np.argsort(own.events))
    none = np.empty(0, dtype=np.int64)
    found, _ = own.chain.over(
        (stage, key, row), (NONE,) * own.chain.slots, log.time, name, none, max(keys.count, 1)
    )
    part = Found(found.key, found.start, found.end, found.offsets, found.row)
    return {rule: [part.in_order(keys)]}, keys
