"""When timed markers are due (`eventscript.md` 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidegate.engine.core.clocks import RunningClock
from tidegate.engine.core.values import FOREVER
from tidegate.engine.detect.scripts.context import Variables
from tidegate.engine.detect.scripts.expressions import Expressions
from tidegate.engine.detect.scripts.places import Marker, Places
from tidegate.rules.eventscript import tree
from tidegate.rules.expressions import nodes as x

Due = Callable[[Variables, int], int]
"""The instant at which a marker is due that is reached at an instant; `FOREVER`: never."""
_CLOCKS_MAX = 1_000
"""Of `arrive` with variables in it: so many clocks are remembered."""


def dues(places: Places, expressions: Expressions, zone: str) -> Mapping[int, Due]:
    """When each timed marker is due, by its place."""
    found: dict[int, Due] = {}
    for part in places.places:
        if isinstance(part, Marker) and isinstance(part.tree, tree.Elapse):
            found[part.number] = _elapse(part.tree, expressions)
        elif isinstance(part, Marker) and isinstance(part.tree, tree.Arrive):
            instant = part.tree.instant
            found[part.number] = (
                _clock(part.tree, expressions, zone)
                if instant is None
                else _instant(instant, expressions)
            )
    return found


def _elapse(marker: tree.Elapse, expressions: Expressions) -> Due:
    amount, context = expressions.operand(marker.amount), expressions.context
    unit, place = marker.unit_micros, marker.place

    def due(variables: Variables, now: int) -> int:
        length: float = amount(variables)
        if not length > 0:
            context.fail("elapse", f"elapse of {length} is never due", place)
            return FOREVER
        if length * unit >= FOREVER - now:
            return FOREVER
        return now + max(round(length * unit), 1)

    return due


def _instant(expression: tree.Expression, expressions: Expressions) -> Due:
    instant = expressions.operand(expression)

    def due(variables: Variables, now: int) -> int:
        at = instant(variables)
        return int(at) if now < at < FOREVER else FOREVER

    return due


def _clock(marker: tree.Arrive, expressions: Expressions, zone: str) -> Due:
    parts = [None if part is None else expressions.operand(part) for part in marker.components]
    clocks: dict[tuple[int | None, ...], _Clock] = {}

    def due(variables: Variables, now: int) -> int:
        reading = tuple(None if part is None else part(variables) for part in parts)
        clock = clocks.get(reading)
        if clock is None:
            if len(clocks) >= _CLOCKS_MAX:
                clocks.clear()
            clock = clocks[reading] = _Clock(reading, zone)
        return clock.following(now)

    return due


class _Clock:
    """A clock that remembers the last instant that it has found: several instances mostly ask for
    the same one."""

    def __init__(self, reading: tuple[int | None, ...], zone: str) -> None:
        year, month, day, hour, minute, second = reading
        clock = x.Clock(hour, minute, second, month, day, year)
        self._running = RunningClock("arrive", clock, zone) if _possible(reading) else None
        self._asked, self._found = FOREVER, FOREVER

    def following(self, after: int) -> int:
        """The first instant later than another at which the clock reads so."""
        if not self._asked <= after < self._found and self._running is not None:
            found = self._running.following(after)
            self._asked, self._found = after, FOREVER if found is None else found
        return self._found


def _possible(reading: tuple[int | None, ...]) -> bool:
    """Whether a clock ever reads so."""
    bounds = ((1, 9999), (1, 12), (1, 31), (0, 23), (0, 59), (0, 59))
    return all(
        value is None or low <= value <= high
        for value, (low, high) in zip(reading, bounds, strict=True)
    )
