"""Each operator of an expression -> a node of the event graph, in `restricted`."""

from __future__ import annotations

from dataclasses import replace

from tidegate.engine.detector.building import Building, first_roles
from tidegate.engine.detector.calendar import longest
from tidegate.engine.detector.clocks import name_of
from tidegate.engine.detector.edges import tick_type
from tidegate.engine.detector.graph import Node
from tidegate.engine.detector.operators.any_repeat import AnyRepeat
from tidegate.engine.detector.operators.aperiodic import Aperiodic
from tidegate.engine.detector.operators.aperiodic_star import AperiodicStar
from tidegate.engine.detector.operators.aperiodic_until import AperiodicStarUntil, AperiodicUntil
from tidegate.engine.detector.operators.conjunction import Conjunction
from tidegate.engine.detector.operators.either import Either
from tidegate.engine.detector.operators.every import Every
from tidegate.engine.detector.operators.lacking import Not
from tidegate.engine.detector.operators.minus import Minus
from tidegate.engine.detector.operators.nth import Nth
from tidegate.engine.detector.operators.periodic import Periodic
from tidegate.engine.detector.operators.periodic_star import PeriodicStar
from tidegate.engine.detector.operators.plus import Plus
from tidegate.engine.detector.operators.sequence import Sequence
from tidegate.engine.detector.operators.shape import Shape
from tidegate.engine.detector.operators.until import Until
from tidegate.engine.detector.operators.within import Within
from tidegate.rules import expression as x
from tidegate.rules.closers import Window
from tidegate.rules.errors import EngineError
from tidegate.rules.parser import unlabelled
from tidegate.rules.plain import plain


class Operators(Building):
    """Compiles expressions operator by operator."""

    def _node(self, e: x.Expression, horizon: int | None) -> Node:
        match e:
            case x.Name(name=name):
                return self._event(name, all_rows=False)
            case x.Labelled(part=part):
                return self._node(part, horizon)
            case x.Or(parts=parts):
                operands = self._operands(parts, horizon)
                return self._make(
                    Either(first_roles(operands), all_rows=False),
                    operands,
                    own=any(o.own for o in operands),
                    every=any(o.every for o in operands),
                    point=all(o.point for o in operands),
                    horizon=horizon,
                )
            case x.And(parts=parts):
                return self._conjunction(len(parts), parts, horizon)
            case x.AnyOf(count=count, parts=parts):
                return self._conjunction(min(count, len(parts)), parts, horizon)
            case x.Clock() | x.Cron():
                return self._event(name_of(e), all_rows=False)
            case x.Plus(base=base, duration=duration):
                return self._plus(base, duration)
            case x.Seq(first=first, then=x.Own(duration=duration)):
                return self._until(None, first, duration, horizon)
            case x.Seq(first=first, then=then):
                return self._sequence(first, then, horizon)
            case x.Minus(part=part, absent=absent):
                return self._minus(part, absent, horizon)
            case x.Within(part=part, duration=duration):
                bound = longest(duration)
                inner = self._node(part, bound if horizon is None else min(bound, horizon))
                shape = Within(duration, self._zone_of(duration))
                return self._like(shape, (inner,), inner, horizon)
            case x.Not(absent=absent, opener=opener, closer=x.Own(duration=duration)):
                return self._until(absent, opener, duration, horizon)
            case x.Not(absent=absent, opener=opener, closer=closer):
                return self._not(absent, opener, closer, horizon)
            case x.Aperiodic(closer=x.Own(duration=duration)):
                return self._window_until(e, duration, horizon)
            case x.AperiodicStar(closer=x.Own(duration=duration)):
                return self._window_until(e, duration, horizon)
            case x.Aperiodic(opener=opener, part=part, closer=closer):
                return self._aperiodic(opener, part, closer, horizon)
            case x.AperiodicStar():
                return self._aperiodic_star(e, horizon)
            case x.Periodic() | x.PeriodicStar():
                return self._periodic(e, horizon)
            case x.AnyRepeat(count=count, part=part):
                return self._counted(AnyRepeat(count), part, horizon)
            case x.Every(count=count, part=part):
                return self._counted(Every(count), part, None)
            case x.Nth(part=part, index=index):
                return self._counted(Nth(index), part, None)
        raise EngineError(
            "not-detectable",
            f"the operator {type(e).__name__} is not built",
            "validate the rulebook: it says where it stands",
        )

    def _operands(self, parts: tuple[x.Expression, ...], horizon: int | None) -> tuple[Node, ...]:
        """Operands of one node; where keys are told apart, broadcasts are repeated for each."""
        return self._alike(tuple(self._node(part, horizon) for part in parts), horizon)

    def _conjunction(
        self, count: int, parts: tuple[x.Expression, ...], horizon: int | None
    ) -> Node:
        operands = self._operands(parts, horizon)
        return self._make(
            Conjunction(count, first_roles(operands)),
            operands,
            own=any(o.own for o in operands),
            every=sum(o.every for o in operands) >= count,
            point=count == 1 and all(o.point for o in operands),
            horizon=horizon,
        )

    def _sequence(self, first: x.Expression, then: x.Expression, horizon: int | None) -> Node:
        operands = self._operands((first, then), horizon)
        a, b = operands
        return self._make(
            Sequence(len(a.roles), b.point, mixed=b.own and b.every, span_micros=horizon),
            operands,
            own=a.own or b.own,
            every=a.every and b.every,
            point=False,
            horizon=horizon,
        )

    def _minus(self, part: x.Expression, absent: x.Expression, horizon: int | None) -> Node:
        operands = self._operands((part, absent), horizon)
        a, b = operands
        if a.every and b.own:
            # an instance of every key but some: only a rule that tells its keys apart can say it
            self.excepts_keys = True
        return self._like(Minus(), operands, a, horizon)

    def _not(
        self, absent: x.Expression, opener: x.Expression, closer: x.Expression, horizon: int | None
    ) -> Node:
        operands = self._operands((absent, opener, closer), horizon)
        b, a, c = operands
        self._keep_apart((a, c), b)
        roles = first_roles(operands)
        return self._make(
            Not(roles[1], roles[2]), operands, own=a.own, every=a.every, point=False,
            horizon=horizon,
        )  # fmt: skip

    def _plus(self, base: x.Expression, duration: x.Duration) -> Node:
        inner = self._node(base, None)
        shape = Plus(duration, self._zone_of(duration))
        return self._make(
            shape,
            (inner,),
            own=inner.own,
            every=inner.every,
            point=True,
            horizon=None,
            timed=True,
        )

    def _all_rows(self, _: x.Expression, /) -> bool:
        """Whether all instances of an operand that end at an instant count, not the greatest."""
        return False

    def _until(
        self,
        absent: x.Expression | None,
        opener: x.Expression,
        duration: x.Duration,
        horizon: int | None,
    ) -> Node:
        parts = (opener,) if absent is None else (absent, opener)
        operands = self._operands(parts, horizon)
        a, b = operands[-1], operands[0]
        shape = Until(
            duration,
            self._zone_of(duration),
            absent is not None,
            first_roles(operands)[-1],
            self._all_rows(opener),
        )
        if absent is not None and a.every and b.own:
            self.excepts_keys = True
        return self._make(
            shape, operands, own=a.own, every=a.every, point=False, horizon=horizon, timed=True
        )

    def _window_until(
        self, e: x.Aperiodic | x.AperiodicStar, duration: x.Duration, horizon: int | None
    ) -> Node:
        star = isinstance(e, x.AperiodicStar)
        a = self._node(e.opener, horizon if star else None)
        b = self._each(e.part, horizon) if star else self._node(e.part, horizon)
        a, b = operands = self._alike((a, b), horizon)
        self._keep_apart(operands)
        role = first_roles(operands)[1]
        zone = self._zone_of(duration)
        if star:
            return self._make(
                AperiodicStarUntil(duration, zone, role), operands, own=a.own, every=a.every,
                point=False, horizon=horizon, timed=True,
            )  # fmt: skip
        shape = AperiodicUntil(duration, zone, role)
        return self._make(shape, operands, own=b.own, every=b.every, point=b.point, horizon=None)

    def _periodic(self, e: x.Periodic | x.PeriodicStar, horizon: int | None) -> Node:
        star = isinstance(e, x.PeriodicStar)
        own = e.closer.duration if isinstance(e.closer, x.Own) else None
        within = horizon if star else None
        closers: tuple[Node, ...] = ()
        if own is None:
            last = self._closer(e, within) if isinstance(e, Window) else self._node(e.closer, None)
            closers = (last,)
        operands = self._alike((self._node(e.opener, within), *closers), within)
        a = operands[0]
        self._keep_apart(operands if star else operands[:1], operands[-1])
        roles = first_roles(operands)
        ticks = sum(len(o.roles) for o in operands)
        zone = self.zone if e.period.months or (own and own.months) else ""
        shape: Shape
        if star:
            shape = PeriodicStar(e.period, own, zone, roles[-1], ticks, tick_type(e))
        else:
            shape = Periodic(e.period, own, zone, ticks, tick_type(e))
        found = self._make(
            shape,
            operands,
            own=a.own,
            every=a.every,
            point=not star,
            horizon=horizon if star else None,
            timed=True,
        )
        return replace(found, roles=(*found.roles, tick_type(e)))

    def _aperiodic(
        self, opener: x.Expression, part: x.Expression, closer: x.Expression, horizon: int | None
    ) -> Node:
        # a window may have opened long before b: only b is limited by a `within`
        a, b, c = (self._node(opener, None), self._node(part, horizon), self._node(closer, None))
        operands = self._alike((a, b, c), horizon)
        a, b, c = operands
        self._keep_apart((a, b), c)
        shape = Aperiodic(first_roles(operands)[1])
        return self._make(shape, operands, own=b.own, every=b.every, point=b.point, horizon=None)

    def _aperiodic_star(self, e: x.AperiodicStar, horizon: int | None) -> Node:
        a, b, c = (
            self._node(e.opener, horizon),
            self._each(e.part, horizon),
            self._closer(e, horizon),
        )
        operands = self._alike((a, b, c), horizon)
        a, b, c = operands
        self._keep_apart(operands)
        roles = first_roles(operands)
        return self._make(
            AperiodicStar(roles[1], roles[2]), operands, own=a.own, every=a.every, point=False,
            horizon=horizon,
        )  # fmt: skip

    def _closer(self, window: Window, horizon: int | None) -> Node:
        """What closes windows of `A*` or `P*`: of plain events every row, for these are chosen
        among (S4); of anything else what is greatest, for it cannot be seen which c it is."""
        return self._each(window.closer, horizon)

    def _counted(
        self, shape: AnyRepeat | Every | Nth, part: x.Expression, horizon: int | None
    ) -> Node:
        inner = self._each(part, horizon)
        self._keep_apart((inner,))
        point = inner.point and (isinstance(shape, Nth) or shape.count == 1)
        return self._make(
            shape, (inner,), own=inner.own, every=inner.every, point=point, horizon=horizon
        )

    def _each(self, part: x.Expression, horizon: int | None) -> Node:
        """What counts as an occurrence of `part`: every row of what is plain, a composite once per
        instant (S1, S9)."""
        return self._rows(part, horizon) if plain(part) else self._node(part, horizon)

    def _rows(self, e: x.Expression, horizon: int | None) -> Node:
        """Every row of plain events, of an event type once: in the first role that it has."""
        leaves = (n for n in e.walk() if isinstance(n, x.Name | x.Clock | x.Cron))
        names = [type_of(leaf) for leaf in leaves]
        types = [*dict.fromkeys(names)]
        operands = self._alike(tuple(self._event(t, all_rows=True) for t in types), horizon)
        if len(names) == 1:
            return operands[0]
        found = self._make(
            Either(tuple(map(names.index, types)), all_rows=True),
            operands,
            own=any(o.own for o in operands),
            every=any(o.every for o in operands),
            point=all(o.point for o in operands),
            horizon=horizon,
        )
        return replace(found, roles=tuple(names), expression=unlabelled(e))


def type_of(leaf: x.Name | x.Clock | x.Cron) -> str:
    """The event type of a leaf's occurrences."""
    return leaf.name if isinstance(leaf, x.Name) else name_of(leaf)
