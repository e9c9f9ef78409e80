"""Amounts and lengths of time in words."""

from __future__ import annotations

from tidegate.engine.explain.model import Node, Stores
from tidegate.rules.expressions.durations import format_duration
from tidegate.rules.expressions.nodes import Duration


def length(micros: int) -> str:
    """A length of time: `5 min`."""
    return format_duration(Duration(0, micros))


def kept(stores: Node | Stores) -> str:
    """How much is stored per key: `3 instances, 5 occurrences`; by a node, for how long: equal
    expressions under another `within` are other nodes."""
    if stores.instances_max == 0:
        return "nothing"
    if stores.instances_max is not None and stores.occurrences_max is not None:
        instances = _counted(stores.instances_max, "instance")
        horizon = stores.horizon_micros if isinstance(stores, Node) else None
        until = "" if horizon is None else f", for {length(horizon)}"
        return f"{instances}, {_counted(stores.occurrences_max, 'occurrence')}{until}"
    if stores.span_micros is not None:
        return f"what arrives in {length(stores.span_micros)}"
    return "no bound"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
