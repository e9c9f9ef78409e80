"""Phrases of `explain`: amounts, lengths of time; markers, blocks and symbols of a script."""

from __future__ import annotations

from tidegate.engine.core.text.layout import counted
from tidegate.engine.detect.scripts.exploration import OTHER
from tidegate.engine.detect.scripts.paths import Symbol
from tidegate.engine.detect.scripts.places import Action, Marker, Places
from tidegate.engine.explain.model import Node
from tidegate.rules.algebra.bound import Bound
from tidegate.rules.errors import Place
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.tree import nodes
from tidegate.rules.expressions.durations import length


def marker_text(marker: tree.Named | tree.Elapse | tree.Arrive) -> str:
    """A marker about as it is written: `Use(x)`, `elapse[5 min]`. An operand that is not constant
    is `(..)`."""
    stored = "" if marker.variable is None else f"({marker.variable})"
    return f"{_event(marker)}{stored}"


def _event(marker: tree.Named | tree.Elapse | tree.Arrive) -> str:
    match marker:
        case tree.Named(event=event):
            return event or "."
        case tree.Elapse(amount=amount, unit_micros=unit):
            said = "(..)"
            if isinstance(amount, tree.Literal):
                said = length(round(amount.value * unit))
            return f"{'within' if isinstance(marker, tree.Within) else 'elapse'}[{said}]"
        case tree.Arrive(instant=None, components=components):
            return f"arrive[{_clock(components)}]"
    return "arrive[(..)]"


def _clock(components: tuple[tree.Expression | None, ...]) -> str:
    """The instant of an `arrive`: `2038-01-19 03:14:08`; a daily one has no date."""
    said = [
        "." if each is None else f"{each.value:02}" if isinstance(each, tree.Literal) else "(..)"
        for each in components
    ]
    clock = ":".join(said[3:])
    return clock if said[:3] == [".", ".", "."] else f"{'-'.join(said[:3])} {clock}"


def symbol_text(places: Places, symbol: Symbol) -> str:
    """A symbol of the automaton: an event's name, or the timed markers that are due together."""
    if symbol == OTHER:
        return "any other"
    if isinstance(symbol, str):
        return symbol
    parts = (places.places[number] for number in sorted(symbol))
    due = (_event(part.tree) for part in parts if isinstance(part, Marker))
    return " and ".join(dict.fromkeys(due))


def action_text(places: Places, number: int) -> str | None:
    """The action at a place: `store x`, `{5:10} !> Alarm`; None if there is none."""
    part = places.places[number]
    if not isinstance(part, Action):
        marker = part.tree
        return None if marker.variable is None else f"store {marker.variable}"
    emitted = dict.fromkeys(
        f"!> {node.output}" for node in nodes(part.block) if isinstance(node, tree.Emit)
    )
    return " ".join([f"{{{position(part.block.place)}}}", *emitted])


def position(place: Place) -> str:
    """Line and column: `5:10`."""
    return f"{place.line}:{place.column}"


def kept(stores: Node | Bound) -> str:
    """How much is stored per key: `3 instances, 5 occurrences`. For a node it also says for how
    long: the same expression within another time is another node."""
    if stores.instances_max == 0:
        return "nothing"
    if stores.instances_max is not None and stores.occurrences_max is not None:
        instances = counted(stores.instances_max, "instance")
        horizon = stores.horizon_micros if isinstance(stores, Node) else None
        until = "" if horizon is None else f", for {length(horizon)}"
        return f"{instances}, {counted(stores.occurrences_max, 'occurrence')}{until}"
    if stores.span_micros is not None:
        return f"what arrives in {length(stores.span_micros)}"
    return "no bound"
