"""One expression without keys: histories for it, what it sees, how its instances are compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from tests.reference.meaning import Meaning, TooLargeError, World
from tests.reference.planted import planted
from tests.reference.strategies import NAMES, PLACE, SECOND
from tests.reference.timing import clock_instants
from tests.reference.values import Instance, Occurrence, distinct
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.nodes import Clock, Expression
from tidegate.rules.model import Context, Pattern, Rule, Rulebook, SignalEvent

History = list[tuple[str, int]]  # event type, second


def alone(on: Expression, names: Sequence[str] = NAMES) -> Rulebook:
    """One rule over signals of these names."""
    events = {name: SignalEvent(name, PLACE, {"v": "bigint"}) for name in names}
    rule = Rule("r", PLACE, Pattern(on, "", Context.RESTRICTED))
    return Rulebook("alone", None, "", "UTC", {}, events, {"r": rule})


def seconds(
    on: Expression, names: Sequence[str] = NAMES, lines_max: int = 8
) -> st.SearchStrategy[History]:
    """Histories that hold an instance."""
    lines = planted(alone(on, names), lines_max)
    return lines.map(lambda found: [(name, time // SECOND) for name, time, _ in found])


def world(history: Iterable[tuple[str, int]], *clocks_of: Expression) -> World:
    """What a rule sees of a history, and of the clocks in some expressions."""
    found: dict[Any, list[Occurrence]] = {name: [] for name in NAMES}
    for name, second in history:
        found[name].append(Occurrence(name, name, second * SECOND, second * SECOND))
    times = [o.end for group in found.values() for o in group]
    horizon = max([10 * SECOND, *times])
    for node in (node for on in clocks_of for node in on.walk()):
        if isinstance(node, Clock) and times:
            instants = clock_instants(node, min(times), horizon, "UTC")
            found[node] = [Occurrence(node, format_expression(node), t, t) for t in instants]
    return World(found, horizon, instances_max=1_000)


def has_instance(on: Expression, seeing: World) -> bool:
    """Few enough of them to be compared."""
    try:
        return bool(Meaning(seeing).of(on))
    except TooLargeError:
        return False


def seen(instances: Iterable[Instance]) -> set[Any]:
    return {(i.start, i.end, i.constituents()) for i in distinct(instances)}


def spans(instances: Iterable[Instance]) -> list[tuple[int, int]]:
    return [(i.start, i.end) for i in instances]
