"""A rule's expression -> nodes of the event graph: each operator brings its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidegate.engine.core.event_names import EventKey, with_edges, with_resolutions
from tidegate.engine.detect.events.graph.builder import Builder
from tidegate.engine.detect.events.graph.flat import flat_node
from tidegate.engine.detect.events.graph.flat.assignment_node import Assignments
from tidegate.engine.detect.events.graph.flat.window_node import Windows
from tidegate.engine.detect.events.graph.graph import (
    Census,
    Graph,
    Node,
    Stream,
    connect,
    digest,
    first_roles,
)
from tidegate.engine.detect.events.graph.operators import (
    any_repeat,
    aperiodic,
    aperiodic_star,
    aperiodic_until,
    conjunction,
    crossing,
    disjunction,
    event,
    every,
    holding,
    instant,
    minus,
    negation,
    nth,
    periodic,
    periodic_star,
    plus,
    sequence,
    session,
    sliding,
    tumbling,
    until,
    within,
)
from tidegate.engine.detect.events.graph.operators.broadcast import Repeated
from tidegate.engine.detect.events.graph.operators.detection import Detection
from tidegate.engine.detect.events.graph.operators.event import Event
from tidegate.engine.detect.events.graph.operators.single_events import AtOnce
from tidegate.engine.detect.events.graph.roles import roles
from tidegate.engine.detect.events.graph.search.nested import asked, nested
from tidegate.engine.detect.events.graph.search.sifted import Sifted, in_one, sifted, without
from tidegate.engine.detect.events.graph.shape import Scan, Shape
from tidegate.engine.detect.events.state.held_back import with_lateness
from tidegate.rules.algebra.closers import Window, chosen_closers
from tidegate.rules.algebra.detector_form import as_detected
from tidegate.rules.algebra.forms import Flat, Form, Nested, Operators, Single, Windowed, forms
from tidegate.rules.algebra.plain_expressions import plain
from tidegate.rules.algebra.stages import Stages, stages
from tidegate.rules.analysis.graph import in_order
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.parser import unlabelled
from tidegate.rules.model import Context, Pattern, Rulebook, Settings

_NODES: Mapping[type[x.Expression], Callable[[Any, Builder, int | None], Node]] = {
    x.Name: event.node,
    x.Clock: event.node,
    x.Cron: event.node,
    x.Or: disjunction.node,
    x.And: conjunction.node,
    x.AnyOf: conjunction.node,
    x.Seq: sequence.node,
    x.BoundedSeq: sequence.node,
    x.Minus: minus.node,
    x.Within: within.node,
    x.Not: negation.node,
    x.Plus: plus.node,
    x.Aperiodic: aperiodic.node,
    x.AperiodicStar: aperiodic_star.node,
    x.Periodic: periodic.node,
    x.PeriodicStar: periodic_star.node,
    x.AnyRepeat: any_repeat.node,
    x.Every: every.node,
    x.Nth: nth.node,
    x.Instant: instant.node,
    w.Holding: holding.node,
    w.Resolution: holding.resolution,
    w.Tumbling: tumbling.node,
    w.Session: session.node,
    w.Sliding: sliding.node,
    w.Crossing: crossing.node,
    Sifted: asked,
}
_WITH_OWN: Mapping[type[x.Expression], Callable[[Any, x.Duration, Builder, int | None], Node]] = {
    x.Seq: until.node,
    x.Not: until.node,
    x.Aperiodic: aperiodic_until.node,
    x.AperiodicStar: aperiodic_until.star,
}
"""The operators that have another node if their last operand is `[d]`."""


def compile_book(
    book: Rulebook,
    activations: Mapping[str, int],
    lateness: Mapping[str, int],
    only: Collection[str] | None = None,
) -> tuple[Rulebook, Graph]:
    """The rulebook as it runs, and the event graph of its enabled rules. `activations`, `lateness`
    and `only` are those of `Detector`.

    Raises `EngineError('not-detectable')` for an operator that is not built.
    """
    book = with_resolutions(with_edges(as_detected(book), {*book.events, *book.rules}))
    of = {name: EventKey.of(name).event for name in book.rules}
    book = with_lateness(book, {n: lateness[rule] for n, rule in of.items() if rule in lateness})
    rules = {
        rule.name: rule
        for rule in book.rules.values()
        if rule.enabled and (only is None or EventKey.of(rule.name).event in only)
    }
    book = replace(book, rules=rules)
    roots: dict[str, Node] = {}
    censuses: list[Census] = []
    for name in (rule.name for rule in in_order(replace(book, scripts={}))):
        since = activations[EventKey.of(name).event]
        roots[name], census = compile_rule(rules[name].pattern, since, book, roots)
        censuses += [census] if census else []
    keys = {name: rule.pattern.key_names for name, rule in rules.items()}
    return book, connect(roots, keys, censuses)


def compile_rule(
    pattern: Pattern, activation: int, book: Rulebook, roots: Mapping[str, Node]
) -> tuple[Node, Census | None]:
    """The node of a rule's whole expression, and the census that it needs, if any. `roots` are the
    nodes of the rules that it uses as events.

    Raises `EngineError('not-detectable')` for an operator that is not built.
    """
    e = unlabelled(pattern.on)
    used = [name for name in x.names_in(e) if name in roots]
    points = [name for name in used if roots[name].point]
    form: Form | Asked = forms(e, pattern.per, used, points).of(
        pattern.selection or pattern.context
    )
    closers = chosen_closers(e, None if pattern.selection else pattern.context, used)
    build = Build(pattern.per, activation, book.timezone, book.settings, roots, closers)
    if pattern.where:
        e = sifted(pattern.on, pattern.where.tree, used)
        if pattern.context is not Context.RESTRICTED:
            form = Nested(pattern.context)
        form = asked_in_one_scan(in_one(e), pattern, used) or form
    root = _root(e, form, build)
    if not root.apart:
        return root, None
    streams = frozenset(pattern.per.items())
    census = Census("keys:" + digest(sorted(streams), activation), streams, activation)
    return _root(e, form, replace(build, census=census)), census


@dataclass(frozen=True, slots=True)
class Asked:
    """`a ; b ; c within d` with a condition: assignments are made and chosen among in scans."""

    context: Context
    asked: Sifted
    stages: Stages


def asked_in_one_scan(asked: Sifted, pattern: Pattern, rules: Collection[str]) -> Asked | None:
    """The form of stages of bounded length with a condition; None for another expression, and where
    an initiator may yet be in an assignment that another has begun. The event types are no `rules`,
    and all keyed or all broadcast."""
    found = stages(asked.part)
    if found is None or not {*found.events}.isdisjoint(rules):
        return None
    size = sum(stage.count for stage in found.stages)
    bounded = size == 1 or found.span_micros is not None
    alike = len({name in pattern.per for name in found.events}) == 1
    begun = size <= 2 or len(found.stages[0].places) == 1
    fits = bounded and alike and not any(stage.repeated for stage in found.stages)
    if not fits or (pattern.context is Context.CONTINUOUS and not begun):
        return None
    return Asked(pattern.context, asked, found)


def _root(e: x.Expression, form: Form | Asked, build: Build) -> Node:
    """The node that a rule detects with."""
    most = build.settings.carried_per_key_max
    match form:
        case Operators():
            return build.operand(e, None)
        case Asked(context=context, asked=asked_of, stages=flat):
            steps = build.settings.search_steps_max
            shape: Scan = Assignments(context, asked_of, flat, most, steps)
            return build.walked(asked_of.part, shape, flat.events, flat.span_micros)
        case Single(united=united):
            found = replace(build, all_rows=True).passed(e, None)
            if not united:
                return found
            return build.make(e, AtOnce(), (found,), found.keys, None, point=found.point)
        case Flat(context=context, stages=flat):
            shape = flat_node.Flat(context, flat, most)
            return build.walked(e, shape, flat.events, flat.span_micros)
        case Windowed(context=context, window=window):
            windows, timed = Windows(context, window, most), window.length_micros > 0
            return build.walked(e, windows, window.events, window.span_micros, timed=timed)
        case Nested(context=context, kept=kept):
            return nested(e, context, build, few=kept is not None)


@dataclass(frozen=True, slots=True)
class Build:
    """Makes one rule's nodes. Implements `graph.builder.Builder`.

    `closers`: the windows whose closer is chosen among all its instances (S4). `census`: the set of
    known keys, if the rule tells its keys apart; else None.
    """

    per: Mapping[str, tuple[str, ...]]
    activation: int
    zone: str
    settings: Settings
    roots: Mapping[str, Node]
    closers: Collection[x.Expression] = ()
    census: Census | None = None
    all_rows: bool = False

    def operand(self, e: x.Expression, horizon: int | None) -> Node:
        build = replace(self, all_rows=False) if self.all_rows else self
        return _node(e, build, horizon)

    def passed(self, e: x.Expression, horizon: int | None) -> Node:
        return self.rows(e, None) if self.all_rows and plain(e) else _node(e, self, horizon)

    def each(self, e: x.Expression, horizon: int | None) -> Node:
        return self.rows(e, horizon) if plain(e) else self.operand(e, horizon)

    def closer(self, e: Window, horizon: int | None) -> Node:
        if e not in self.closers:
            return self.each(e.closer, horizon)
        young = e.closer if horizon is None else x.Within(e.closer, x.Duration(0, horizon))
        return nested(young, Context.UNRESTRICTED, self)

    def operands(self, parts: Iterable[x.Expression], horizon: int | None) -> tuple[Node, ...]:
        return self.alike([self.operand(part, horizon) for part in parts], horizon)

    def alike(self, operands: Iterable[Node], horizon: int | None) -> tuple[Node, ...]:
        found = tuple(operands)
        if self.census is None or not any(o.own for o in found):
            return found
        return tuple(o if o.own else self._repeated(o, self.census, horizon) for o in found)

    def _repeated(self, inner: Node, census: Census, horizon: int | None) -> Node:
        return replace(
            inner,
            digest=digest(Repeated(), inner.digest, census.name),
            shape=Repeated(),
            operands=(inner,),
            streams=census.streams,
            own=True,
            every=False,
            horizon_micros=horizon,
            census=census.name,
        )

    def rows(self, e: x.Expression, horizon: int | None) -> Node:
        """An event type that stands in the expression twice counts once, in its first role."""
        match e:
            case x.Instant():
                return instant.pointed(e, self, self.rows(e.part, horizon))
            case x.Or(parts=parts) if any(isinstance(node, x.Instant) for node in e.walk()):
                points = self.alike([self.rows(part, horizon) for part in parts], horizon)
                return disjunction.disjoined(e, self, points, horizon, first_roles(points))
        names = [role.event for role in roles(e)]
        types = [*dict.fromkeys(names)]
        each = [self.event(name, all_rows=True) for name in types]
        if len(names) == 1:
            return each[0]
        first = tuple(map(names.index, types))
        if self.roots.keys().isdisjoint(types) and len({o.keys for o in each}) == 1:
            found = self.walked(e, disjunction.Union(tuple(types), first), types, horizon)
            found = replace(found, point=True)
        else:
            operands = self.alike(each, horizon)
            found = disjunction.disjoined(e, self, operands, horizon, first)
        return replace(found, roles=tuple(names))

    def event(self, name: str, e: x.Expression | None = None, *, all_rows: bool = False) -> Node:
        columns, root = self.per.get(name), self.roots.get(name)
        shape: Shape
        if root is None:
            shape = Event(name, columns, self.activation, all_rows)
        else:
            shape = Detection(name, root.digest, columns, self.activation, all_rows)
        streams = frozenset[Stream]() if columns is None else frozenset([(name, columns)])
        own, point = columns is not None, root is None or root.point
        timed = root is not None and root.timed
        return Node(
            digest(shape), shape, (), (name,), streams, own, not own, point, timed=timed,
            expression=e,
        )  # fmt: skip

    def walked(
        self,
        e: x.Expression,
        shape: Scan,
        events: Iterable[str],
        span: int | None,
        *,
        timed: bool = False,
    ) -> Node:
        """The node of a choice that is made in one scan over all rows of these event types."""
        operands = tuple(self.event(name, all_rows=True) for name in events)
        return self.make(e, shape, operands, operands[0].keys, span, timed=timed)

    def make(
        self,
        e: x.Expression,
        shape: Shape | Scan,
        operands: tuple[Node, ...],
        keys: tuple[bool, bool],
        horizon: int | None,
        *,
        point: bool = False,
        timed: bool = False,
        apart: bool = False,
        ticks: str | None = None,
    ) -> Node:
        own, every = keys
        census = self.census.name if self.census and own else None
        names = [role for o in operands for role in o.roles]
        return Node(
            digest(shape, [o.digest for o in operands], horizon, census),
            shape,
            operands,
            (*names, ticks) if ticks else tuple(names),
            frozenset[Stream]().union(*(o.streams for o in operands)),
            own,
            every,
            point,
            horizon,
            census,
            timed or any(o.timed for o in operands),
            apart or any(o.apart for o in operands),
            without(e),
        )

    def zone_of(self, *durations: x.Duration | None) -> str:
        return self.zone if any(d and not d.fixed for d in durations) else ""


def _node(e: x.Expression, build: Build, horizon: int | None) -> Node:
    match e.operands():
        case (*_, x.Own(duration=own)) if type(e) in _WITH_OWN:
            return _WITH_OWN[type(e)](e, own, build, horizon)
    if type(e) not in _NODES:
        raise EngineError(
            "not-detectable",
            f"the operator {type(e).__name__} is not built",
            "validate the rulebook: it says where it stands",
        )
    return _NODES[type(e)](e, build, horizon)
