"""Hypothesis strategies for histories that hold what an expression asks for.

An instance is planted: occurrences that make the expression true are built along its operators, at
instants in the right order. Others are added around it, of the same and of other keys, some of them
spoilt by what must be absent; then noise. Lines come in any order. A plant that does not detect (an
`a - a`, a `within` too short) is tried again, and the last one is kept as it is, so that a few
examples show what must not be detected. Everything shrinks towards one bare instance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

import tidegate.rules.expressions.nodes as x
import tidegate.rules.expressions.windows as w
from tests.reference.evaluate import Line, evaluate
from tests.reference.meaning import TooLargeError
from tests.reference.strategies import SECOND, rulebooks
from tidegate.rules.model import Rule, Rulebook, SignalEvent

Place = tuple[str, int]  # event type, microseconds
Extent = tuple[int, int]  # start and end
KEYS: dict[str, list[int | None]] = {"k": [1, 1, 2, None], "j": [1, 1, 2]}
VALUES = st.sampled_from([0, 1, None])
MINUTE = 60 * SECOND
TRIES = 4


class NoRoomError(Exception):
    """The instance needs more occurrences than wanted, an event that never happens, or an instant
    that is gone."""


@dataclass
class Planter:
    """Occurrences of one instance, and how far time must go on to see it.

    `tight`: as short as can be, nothing is drawn. `spoilt`: what must be absent is there, at an
    edge of where it is looked for.
    """

    draw: st.DrawFn
    rulebook: Rulebook
    lines_max: int
    spoilt: bool = False
    tight: bool = False
    places: list[Place] = field(default_factory=list)
    horizon: int = 0

    def plant(self, node: x.Expression, low: int) -> Extent:
        """Place an instance that starts at `low` or later."""
        return _PLANT[type(node)](self, node, low)

    def number(self, least: int, most: int) -> int:
        return least if self.tight or least == most else self.draw(st.integers(least, most))

    def gap(self, most: int = 1) -> int:
        return self.number(0, most) * SECOND

    def name(self, node: Any, low: int) -> Extent:
        if node.name in self.rulebook.rules:
            return self.plant(self.rulebook.rules[node.name].pattern.on, low)
        if len(self.places) == self.lines_max or node.name not in self.rulebook.events:
            raise NoRoomError
        at = low + self.gap()
        self.places.append((node.name, at))
        return at, at

    def clock(self, node: x.Clock, low: int) -> Extent:
        """The next instant of a literal of hour 0."""
        at = (node.second or 0) * SECOND
        if node.minute is None:
            at += max(0, -(-(low - at) // MINUTE)) * MINUTE
        if at < low:
            raise NoRoomError
        self.horizon = max(self.horizon, at)
        return at, at

    def part(self, node: Any, low: int) -> Extent:
        return self.plant(node.part, low)

    def either(self, node: x.Or, low: int) -> Extent:
        return self.plant(node.parts[self.number(0, len(node.parts) - 1)], low)

    def together(self, parts: Sequence[x.Expression], low: int) -> Extent:
        return hull([self.plant(part, low + self.gap(2)) for part in parts])

    def any_of(self, node: x.AnyOf, low: int) -> Extent:
        count = min(node.count, len(node.parts))
        first = self.number(0, len(node.parts) - 1)
        return self.together((node.parts * 2)[first : first + count], low)

    def repeated(self, node: Any, low: int) -> Extent:
        return hull(self.times(node.part, node.count, low))

    def instant(self, node: x.Instant, low: int) -> Extent:
        end = self.plant(node.part, low)[1]
        return end, end

    def nth(self, node: x.Nth, low: int) -> Extent:
        return self.times(node.part, node.index, low)[-1]

    def times(self, part: x.Expression, count: int, low: int) -> list[Extent]:
        """One after another; occurrences of an event type may be simultaneous."""
        found: list[Extent] = []
        for _ in range(count):
            found.append(self.plant(part, low))
            low = found[-1][1] + (0 if isinstance(part, x.Name) else SECOND)
        return found

    def within(self, node: x.Within, low: int) -> Extent:
        return self.bounded(node.part, low, lambda end: end - node.duration.micros)

    def bounded(self, node: x.Expression, low: int, start_min: Callable[[int], int]) -> Extent:
        """An instance that starts late enough for its end, if a tight one does."""
        places, horizon = [*self.places], self.horizon
        start, end = self.plant(node, low)
        if start >= start_min(end) or self.tight:
            return start, end
        self.places, self.horizon, self.tight = places, horizon, True
        found = self.plant(node, low)
        self.tight = False
        return found

    def closed(self, opener: Extent, closer: x.Expression, low: int) -> Extent:
        """From the opener to what closes it, at `low` or later."""
        if isinstance(closer, x.Own):
            return opener[0], opener[1] + closer.duration.micros
        return opener[0], self.plant(closer, max(low, opener[1] + SECOND))[1]

    def minus(self, node: x.Minus, low: int) -> Extent:
        return self.spoil(node.absent, self.plant(node.part, low))

    def spoil(self, absent: x.Expression, extent: Extent, after: int = 0) -> Extent:
        """With what must be absent from an extent, `after` so long from its start or at its end."""
        if self.spoilt:
            start, end = extent
            tight, self.tight = self.tight, True
            self.plant(absent, end if self.draw(st.booleans()) else start + after)
            self.tight = tight
        return extent

    def seq(self, node: x.Seq, low: int) -> Extent:
        return self.closed(self.plant(node.first, low), node.then, low)

    def lacking(self, node: x.Not, low: int) -> Extent:
        opened = self.plant(node.opener, low)
        found = self.closed(opened, node.closer, low)
        after = (opened[1] - opened[0]) + self.gap()  # at e(a) it is not looked for yet
        return self.spoil(node.absent, found, after)

    def aperiodic(self, node: x.Aperiodic, low: int) -> Extent:
        opened = self.plant(node.opener, low)
        if isinstance(node.closer, x.Own):
            last = opened[1] + node.closer.duration.micros
            return self.bounded(node.part, opened[1], lambda end: end if end > last else low)
        found = self.plant(node.part, opened[1])
        if self.number(0, 1):
            self.closed(opened, node.closer, found[1])
        return found

    def aperiodic_star(self, node: x.AperiodicStar, low: int) -> Extent:
        opened = self.plant(node.opener, low)
        held = self.times(node.part, self.number(0, 2), opened[1])
        return self.closed(opened, node.closer, held[-1][1] if held else low)

    def periodic(self, node: x.Periodic, low: int) -> Extent:
        opened = self.plant(node.opener, low)
        tick = opened[1] + node.period.micros
        self.horizon = max(self.horizon, tick)
        if not isinstance(node.closer, x.Own) and self.number(0, 1):
            self.closed(opened, node.closer, tick)
        return tick, tick

    def periodic_star(self, node: x.PeriodicStar, low: int) -> Extent:
        opened = self.plant(node.opener, low)
        return self.closed(opened, node.closer, opened[1] + node.period.micros * self.number(0, 2))

    def plus(self, node: x.Plus, low: int) -> Extent:
        point = self.plant(node.base, low)[1] + node.duration.micros
        return point, point


_PLANT: dict[type[x.Expression], Callable[[Planter, Any, int], Extent]] = {
    x.Name: Planter.name,
    x.BeginOf: Planter.name,
    x.EndOf: Planter.name,
    x.Clock: Planter.clock,
    x.Labelled: Planter.part,
    x.Minus: Planter.minus,
    x.Or: Planter.either,
    x.And: lambda planter, node, low: planter.together(node.parts, low),
    x.AnyOf: Planter.any_of,
    x.AnyRepeat: Planter.repeated,
    x.Every: Planter.repeated,
    x.Nth: Planter.nth,
    x.Instant: Planter.instant,
    x.Within: Planter.within,
    x.Seq: Planter.seq,
    x.Not: Planter.lacking,
    x.Aperiodic: Planter.aperiodic,
    x.AperiodicStar: Planter.aperiodic_star,
    x.Periodic: Planter.periodic,
    x.PeriodicStar: Planter.periodic_star,
    x.Plus: Planter.plus,
    w.Tumbling: Planter.part,
    w.Session: Planter.part,
}


def hull(extents: Sequence[Extent]) -> Extent:
    return min(start for start, _ in extents), max(end for _, end in extents)


def fields_of(rulebook: Rulebook) -> dict[str, list[str]]:
    """The parameters of each event type that lines may be of."""
    return {
        event.name: list(event.fields if isinstance(event, SignalEvent) else event.columns)
        for event in rulebook.events.values()
    }


class Lines:
    """A growing history of a rulebook."""

    def __init__(self, draw: st.DrawFn, rulebook: Rulebook, lines_max: int) -> None:
        self.draw, self.rulebook, self.lines_max = draw, rulebook, lines_max
        self.fields = fields_of(rulebook)
        self.found: list[Line] = []

    def add_instance(self, rule: Rule, low: int, *, spoilt: bool = False) -> bool:
        """Of one key; nothing is added if there is no room."""
        room = self.lines_max - len(self.found)
        planter = Planter(self.draw, self.rulebook, room, spoilt)
        try:
            planter.plant(rule.pattern.on, low)
        except NoRoomError:
            return False
        places = planter.places
        if not places:  # clocks alone: they begin with a line
            places.append((self.draw(st.sampled_from([*self.fields])), low))
        if planter.horizon > max(time for _, time in places):
            places.append((self.draw(st.sampled_from([*self.fields])), planter.horizon))
        key = {name: self.draw(st.sampled_from(values)) for name, values in KEYS.items()}
        for name, time in places:
            columns = self.fields[name]
            self.found.append((name, time, {f: self.value(f, key) for f in columns}))
        return True

    def value(self, column: str, key: dict[str, int | None]) -> int | None:
        found: int | None = key[column] if column in key else self.draw(VALUES)
        return found

    def add_noise(self, most: int) -> None:
        """Lines among the others, most of them of their event types, instants and keys."""
        last = max((time for _, time, _ in self.found), default=0)
        instants = [*{time: 0 for _, time, _ in self.found}, last + SECOND]
        names = [*(name for name, _, _ in self.found), *self.fields]
        keys = [fields for _, _, fields in self.found]
        for _ in range(min(most, self.draw(st.sampled_from([0, 3, 1, 4, 2, 6])))):
            name, time = self.draw(st.sampled_from(names)), self.draw(st.sampled_from(instants))
            like = self.draw(st.sampled_from([*keys, {}]))
            key = {n: like[n] if n in like else self.draw(st.sampled_from(KEYS[n])) for n in KEYS}
            self.found.append((name, time, {f: self.value(f, key) for f in self.fields[name]}))

    def detect(self, rule: str) -> bool:
        """The rule detects something in its own context."""
        try:
            found = evaluate(self.rulebook, self.found, instances_max=500)
        except TooLargeError:
            return False
        return any(detection.rule == rule for detection in found)


def _plant(draw: st.DrawFn, rulebook: Rulebook, lines_max: int) -> Lines | None:
    """Lines of one instance of the last rule, if they can be placed and detect something."""
    lines = Lines(draw, rulebook, lines_max)
    last = [*rulebook.rules.values()][-1]
    if lines.add_instance(last, draw(st.integers(0, 1)) * SECOND) and lines.detect(last.name):
        return lines
    return None


def _surrounded(draw: st.DrawFn, lines: Lines) -> list[Line]:
    """With more instances, of any rule, and with noise, in any order."""
    lasts = max((time for _, time, _ in lines.found), default=0) // SECOND
    rules = [*lines.rulebook.rules.values()]
    for _ in range(draw(st.sampled_from([0, 3, 2, 1]))):
        rule = rules[-1 - draw(st.integers(0, len(rules) - 1))]
        low = draw(st.integers(0, min(lasts, 6))) * SECOND
        lines.add_instance(rule, low, spoilt=draw(st.booleans()))
    lines.add_noise(max(3, lines.lines_max - len(lines.found)))
    return draw(st.permutations(lines.found))


@st.composite
def planted(draw: st.DrawFn, rulebook: Rulebook, lines_max: int = 12) -> list[Line]:
    """A history with an instance of the last rule."""
    for _ in range(TRIES):
        lines = _plant(draw, rulebook, lines_max)
        if lines is not None:
            return _surrounded(draw, lines)
    return _surrounded(draw, Lines(draw, rulebook, lines_max))


@st.composite
def cases(draw: st.DrawFn, lines_max: int = 12, **options: Any) -> tuple[Rulebook, list[Line]]:
    """A rulebook (see `rulebooks` for the options), whose last rule has an instance in the history;
    of rulebooks that are drawn in vain the last one stays."""
    for _ in range(TRIES):
        rulebook = draw(rulebooks(**options))
        lines = _plant(draw, rulebook, lines_max)
        if lines is not None:
            return rulebook, _surrounded(draw, lines)
    return rulebook, _surrounded(draw, Lines(draw, rulebook, lines_max))


def untils(history: Sequence[Line]) -> st.SearchStrategy[int | None]:
    """How far time goes on: until all has run out, past the last line, or up to one of them."""
    instants = sorted({time for _, time, _ in history})
    if not instants:
        return st.none()
    past = st.integers(3, 9).map(lambda second: instants[-1] + second * SECOND)
    early = st.sampled_from(instants[len(instants) // 2 :])
    return st.one_of(st.none(), st.none(), past, past, early)
