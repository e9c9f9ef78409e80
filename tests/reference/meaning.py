"""`[[E]]`: all instances of an expression over a history. Semantics 2, row by row.

Exponential on purpose: every definition is written as it stands, by going through everything.
An instance may end after the history (own terminators and `+ [d]` run out); nothing here knows
of contexts but the choice among a composite's instances of one instant (S1).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.reference.timing import add
from tests.reference.values import NOTHING, Instance, Occurrence, Tick, distinct, greatest, hull
from tidegate.rules.expressions.nodes import (
    And,
    AnyOf,
    AnyRepeat,
    Aperiodic,
    AperiodicStar,
    BeginOf,
    Clock,
    Cron,
    Duration,
    EndOf,
    Every,
    Expression,
    Instant,
    Labelled,
    Minus,
    Name,
    Not,
    Nth,
    Or,
    Own,
    Periodic,
    PeriodicStar,
    Plus,
    Resolved,
    Seq,
    Within,
)

Window = Aperiodic | AperiodicStar | Periodic | PeriodicStar


class TooLargeError(Exception):
    """More instances than the reference is willing to enumerate."""


@dataclass(frozen=True)
class World:
    """What one rule sees for one key: occurrences by type, up to the horizon (microseconds)."""

    occurrences: Mapping[Any, Sequence[Occurrence]]
    horizon: int
    zone: str = "UTC"
    instances_max: int = 100_000


def plain(expression: Expression) -> Expression:
    """Labels aside (parentheses are no nodes)."""
    return plain(expression.part) if isinstance(expression, Labelled) else expression


def bare(expression: Expression) -> Any:
    """The tree without labels, as a comparable value: equal trees are one `P`, one opener."""
    node = plain(expression)
    fields = [
        tuple(bare(v) if isinstance(v, Expression) else v for v in value)
        if isinstance(value, tuple)
        else bare(value)
        if isinstance(value, Expression)
        else value
        for name in node.__dataclass_fields__
        if node.__dataclass_fields__[name].compare
        for value in [getattr(node, name)]
    ]
    return (type(node).__name__, *fields)


def leaf_type(expression: Expression) -> Any:
    """The key of `World.occurrences` for an event type's, a rule's or a clock's occurrences."""
    node = plain(expression)
    if isinstance(node, Name):
        return node.name
    return node if isinstance(node, BeginOf | EndOf | Resolved | Clock | Cron) else None


def is_composite(expression: Expression) -> bool:
    """S9: anything but an event type's or a rule's name, a clock literal, `begin_of` or `end_of`,
    an `or` of plain ones, or `instant` of a plain one, labels and parentheses aside."""
    node = plain(expression)
    if isinstance(node, Or):
        return any(map(is_composite, node.parts))
    if isinstance(node, Instant):
        return is_composite(node.part)
    return leaf_type(node) is None


def own_terminator(opener: Expression, closer: Expression) -> Own | None:
    """A bare `[d]`, or `a + [d]` over the same a, in last position."""
    if isinstance(closer, Plus) and bare(closer.base) == bare(opener):
        return Own(closer.duration)
    return closer if isinstance(closer, Own) else None


class Meaning:
    """`[[E]]` built from the occurrences that are not in `used` (S3, S4)."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.used: frozenset[Occurrence] = NOTHING
        self.known: dict[Expression, list[Instance]] = {}
        self.all = self

    def without(self, used: frozenset[Occurrence]) -> Meaning:
        """The same, with these used up; `all` stays what is looked at and counted."""
        meaning = Meaning(self.world)
        meaning.used, meaning.all = used, self.all
        return meaning

    def of(self, expression: Expression) -> list[Instance]:
        """Every instance, each once, none with a used-up occurrence, whatever the operator."""
        if expression not in self.known:
            found: set[Instance] = set()
            for instance in self._instances(expression):
                if not instance.occurrences() & self.used:
                    found.add(instance)
                    if len(found) > self.world.instances_max:
                        raise TooLargeError
            self.known[expression] = list(found)
        return self.known[expression]

    def at(self, number: int, operand: Expression) -> list[Instance]:
        """The instances of an operator's operand with that number."""
        return [instance.under(number) for instance in self.of(operand)]

    def _instances(self, expression: Expression) -> Iterable[Instance]:
        leaf = leaf_type(expression)
        if leaf is not None:
            return [
                Instance(o.start, o.end, parameters=frozenset([((), o)]))
                for o in self.world.occurrences.get(leaf, ())
            ]
        rows: dict[type[Expression], Callable[[Any], Iterable[Instance]]] = {
            Labelled: lambda e: self.of(e.part),
            Or: lambda e: itertools.chain(*itertools.starmap(self.at, enumerate(e.parts))),
            And: lambda e: self._together(enumerate(e.parts)),
            AnyOf: self._any_of,
            AnyRepeat: self._any_repeat,
            Seq: self._seq,
            Minus: self._minus,
            Within: self._within,
            Not: self._not,
            Aperiodic: self._aperiodic,
            AperiodicStar: self._aperiodic_star,
            Periodic: self._periodic,
            PeriodicStar: self._periodic_star,
            Plus: self._plus,
            Every: self._every,
            Nth: self._nth,
            Instant: self._instant,
        }
        return rows[type(expression)](expression)

    def after(self, anchor: int, duration: Duration, times: int = 1) -> int:
        return add(anchor, duration, self.world.zone, times)

    # -- any order ---------------------------------------------------------------------------

    def _together(self, parts: Iterable[tuple[int, Expression]]) -> Iterator[Instance]:
        """a u b, any order, also simultaneous; one occurrence may fill two operands (S5)."""
        for combination in itertools.product(*itertools.starmap(self.at, parts)):
            yield hull(combination)

    def _any_of(self, e: AnyOf) -> Iterator[Instance]:
        """One instance each of m distinct operands; m > n means all."""
        operands = list(enumerate(e.parts))
        for parts in itertools.combinations(operands, min(e.count, len(operands))):
            yield from self._together(parts)

    def _any_repeat(self, e: AnyRepeat) -> Iterator[Instance]:
        """m distinct occurrences of a; a composite a counts once per instant."""
        for combination in itertools.combinations(self._each(e.part), e.count):
            yield hull(combination)

    def _each(self, part: Expression) -> list[Instance]:
        """What counts as an occurrence of `part`, in order of time and rank: of a plain one every
        occurrence, once, however many operands of an `or` it fills."""
        instances = self.of(part)
        if not is_composite(part):
            return sorted(distinct(instances), key=lambda i: (i.end, i.ranks(), i.places()))
        ends = sorted({i.end for i in instances})
        return [greatest(i for i in instances if i.end == end) for end in ends]

    # -- sequence and filters ----------------------------------------------------------------

    def _seq(self, e: Seq) -> Iterator[Instance]:
        """a u b with e(a) < s(b)."""
        own = own_terminator(e.first, e.then)
        if own:
            for a in self.at(0, e.first):
                yield self._until(a, own)
            return
        for a, b in itertools.product(self.at(0, e.first), self.at(1, e.then)):
            if a.end < b.start:
                yield hull([a, b])

    def _until(self, a: Instance, own: Own) -> Instance:
        """a with the point d after it, which belongs to no other a."""
        end = self.after(a.end, own.duration)
        return replace(a, end=end)

    def _minus(self, e: Minus) -> Iterator[Instance]:
        """a with no b wholly inside [s(a), e(a)]."""
        absent = self.all.of(e.absent)
        for a in self.of(e.part):
            if not any(a.start <= b.start and b.end <= a.end for b in absent):
                yield a

    def _within(self, e: Within) -> Iterator[Instance]:
        """a with e(a) - s(a) <= d."""
        for a in self.of(e.part):
            if a.end <= self.after(a.start, e.duration):
                yield a

    def _not(self, e: Not) -> Iterator[Instance]:
        """a u c with e(a) < s(c) and no b with e(a) < s(b), e(b) <= e(c)."""
        absent = self.all.of(e.absent)

        def free(since: int, until: int) -> bool:
            return not any(since < b.start and b.end <= until for b in absent)

        own = own_terminator(e.opener, e.closer)
        for a in self.at(0, e.opener):
            if own:
                pairs = [self._until(a, own)]
            else:
                pairs = [hull([a, c]) for c in self.at(1, e.closer) if a.end < c.start]
            yield from (pair for pair in pairs if free(a.end, pair.end))

    # -- windows -----------------------------------------------------------------------------

    def _close(self, e: Window, a: Instance) -> tuple[int, Instance | None] | None:
        """The instant at which a's window closes, and the c that closes it: the first c with
        s(c) > e(a), of several the lowest in rank (S4). An own terminator is no instance."""
        own = own_terminator(e.opener, e.closer)
        if own:
            return self.after(a.end, own.duration), None
        candidates = [c for c in self.at(2, e.closer) if c.start > a.end]
        if not candidates:
            return None
        first = min(candidates, key=lambda c: (c.end, c.ranks(), c.start, c.held(), c.places()))
        return first.end, first

    def _aperiodic(self, e: Aperiodic) -> Iterator[Instance]:
        """b, if some window holds it: e(a) <= s(b), e(b) <= close. a and c are only looked at."""
        windows = [(a.end, self.all._close(e, a)) for a in self.all.of(e.opener)]
        for b in self.of(e.part):
            if any(
                opened <= b.start and (close is None or b.end <= close[0])
                for opened, close in windows
            ):
                yield b

    def _closed_windows(self, e: Window) -> Iterator[tuple[int, Instance]]:
        """Each closed window of an unused a: where it opens, and its a and c as used roles."""
        for a in self.at(0, e.opener):
            close = self._close(e, a)
            if close is not None:
                end, c = close
                used = a.parameters | a.used | (c.parameters | c.used if c else NOTHING)
                points = a.points | (c.points if c else NOTHING)
                yield a.end, Instance(a.start, end, used=used, points=points)

    def _aperiodic_star(self, e: AperiodicStar) -> Iterator[Instance]:
        """One per closed window, with the b's in it; interval [s(a), close]."""
        each = [b.under(1) for b in self._each(e.part)]
        for opened, window in self._closed_windows(e):
            inside = [b for b in each if opened <= b.start and b.end <= window.end]
            content = [window, *inside]
            yield Instance(
                window.start,
                window.end,
                parameters=frozenset().union(*(b.parameters for b in inside)),
                used=frozenset().union(*(i.used for i in content)),
                ticks=frozenset().union(*(b.ticks for b in inside)),
                points=frozenset().union(*(i.points for i in content)),
            )

    def _tick_times(self, opened: int, period: Duration, last: int) -> Iterator[int]:
        """e(a) + k * d, k >= 1, up to and including `last`."""
        for k in itertools.count(1):
            tick = self.after(opened, period, k)
            if tick > last:
                return
            yield tick

    def _periodic(self, e: Periodic) -> Iterator[Instance]:
        """A tick while some window is open (closed end). A window that nothing closes ticks up to
        the horizon. Coincident ticks of one `P` are one."""
        for a in self.all.of(e.opener):
            close = self.all._close(e, a)
            last = close[0] if close else self.world.horizon
            for tick in self._tick_times(a.end, e.period, last):
                yield Instance(tick, tick, ticks=frozenset([Tick(bare(e), tick)]))

    def _periodic_star(self, e: PeriodicStar) -> Iterator[Instance]:
        """One per closed window, with its ticks; interval as `A*`."""
        for opened, window in self._closed_windows(e):
            ticks = self._tick_times(opened, e.period, window.end)
            marks = frozenset(Tick(bare(e), tick) for tick in ticks)
            yield replace(window, ticks=marks)

    def _plus(self, e: Plus) -> Iterator[Instance]:
        """A point at e(a) + d, with nothing of a; a is only looked at."""
        for a in self.all.of(e.base):
            point = self.after(a.end, e.duration)
            yield Instance(point, point)

    # -- counting ----------------------------------------------------------------------------

    def _every(self, e: Every) -> Iterator[Instance]:
        """The last n, at the n-th, 2n-th, .. occurrence since activation, used or not."""
        each = self.all._each(e.part)
        for k in range(e.count, len(each) + 1, e.count):
            yield hull(each[k - e.count : k])

    def _instant(self, e: Instant) -> Iterator[Instance]:
        """x as a point at its end: of a plain x each occurrence, of a composite one the greatest of
        each instant among those that are not consumed."""
        for instance in self._each(e.part):
            yield instance.point(bare(e), plain=not is_composite(e.part))

    def _nth(self, e: Nth) -> Iterator[Instance]:
        """The i-th occurrence since activation, used or not."""
        each = self.all._each(e.part)
        if e.index <= len(each):
            yield each[e.index - 1]
