"""The form of an expression in a parameter context: how its instances are detected.

The first that fits is taken:

operators  each operator is a node of the event graph: everything in `restricted`, and
           the windows that stand alone as all of `on:`
single     each instance is one occurrence: `a or b`, `A(a, b, c) - d`, `not(b)[a, [5 s]]`
flat       stages in sequence, chosen among in one scan: `a ; (b and c) ; any(2, d, e)`, `a ; a`
windowed   windows of event types, chosen among in one scan: `A*(a, b, c) - d`
nested     anything else, searched exactly: `(a ; b) and c`, `a ; b ; (a or c)`; every `select`; and
           in `restricted`, too, what has points: `a ; instant(b ; c)`

`flat` and `windowed` scan the rows of their event types. These event types are all keyed, or all
broadcast; none of them is a rule.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from tidegate.rules.algebra.amount import Amount
from tidegate.rules.algebra.detector_form import KEPT_MAX
from tidegate.rules.algebra.emptiness import needed
from tidegate.rules.algebra.plain_expressions import plain
from tidegate.rules.algebra.points import points as points_of
from tidegate.rules.algebra.stages import Stages, most_kept, stages
from tidegate.rules.algebra.transformation import longest_micros, loosened, shorter
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.parser import unlabelled
from tidegate.rules.model import Context, Selection

_SAME = {
    Context.RECENT: Context.RESTRICTED,
    Context.CHRONICLE: Context.UNRESTRICTED,
    Context.CONTINUOUS: Context.UNRESTRICTED,
}
"""For an expression of which each instance is one occurrence: the context that detects the same.
What one detection consumes is in no other, so consuming it changes nothing."""
_FLAT = x.Name | x.Clock | x.Cron | x.Or | x.And | x.AnyOf | x.Seq | x.Instant


@dataclass(frozen=True, slots=True)
class Operators:
    """`a ; (b - c)` in `restricted`: each operator is a node, and the root detects."""


@dataclass(frozen=True, slots=True)
class Single:
    """`A(a, b, c)` in `unrestricted`: as `Operators`, but every row of b counts. `united`:
    instances that end together are one detection (`cumulative`)."""

    united: bool


@dataclass(frozen=True, slots=True)
class Flat:
    """`a ; (b and c)`. `kept`: how many instances are carried at most, and how many occurrences
    they hold; None where there is no such number."""

    context: Context
    stages: Stages
    kept: tuple[Amount, Amount] | None


@dataclass(frozen=True, slots=True)
class Windowed:
    """`A*(a, b, c)`: a window for each a, closed by the first c after it."""

    context: Context
    window: Window


@dataclass(frozen=True, slots=True)
class Nested:
    """`(a ; b) and c`: a search chooses among the occurrences that are not consumed. `kept`: as in
    `Flat`, beside what the operators carry."""

    context: Context | Selection
    kept: tuple[Amount, Amount] | None = None


Form = Operators | Single | Flat | Windowed | Nested


def forms(
    expression: x.Expression,
    keyed: Collection[str] = (),
    rules: Collection[str] = (),
    points: Collection[str] = (),
) -> Forms:
    """The forms of an expression, by context. `keyed`: the keyed event types. `rules`: the rules
    that may be used as events. `points`: the rules among them whose detections are instants."""
    expression = unlabelled(expression)
    names = x.names_in(expression)
    named = (frozenset(n for n in names if n in given) for given in (keyed, rules, points))
    return _forms(expression, *named)


@dataclass(frozen=True)
class Forms:
    """The forms of one expression. What several contexts need is computed once."""

    expression: x.Expression
    keyed: frozenset[str]
    rules: frozenset[str]
    points: frozenset[str]

    def of(self, context: Context | Selection) -> Form:
        if isinstance(self.expression, w.Window):
            return Operators()
        if isinstance(context, Selection):
            return Nested(context)
        if self.has_points:
            return self._nested(context)
        if self._single:
            context = _SAME.get(context, context)
        if context is Context.RESTRICTED:
            return Operators()
        if context is Context.UNRESTRICTED and plain(self.expression):
            return Single(united=False)
        if self._single and self._alike(self._single):
            return Single(united=context is Context.CUMULATIVE)
        return self._scanned(context) or self._nested(context)

    def _scanned(self, context: Context) -> Flat | Windowed | None:
        flat, found = self._stages, self._window
        if context is Context.UNRESTRICTED:
            return None
        if flat and flat.direct(context):
            kept = most_kept(flat, context)
            return Flat(context, flat, kept and (Amount(kept[0]), Amount(kept[1])))
        return Windowed(context, found) if found else None

    def _nested(self, context: Context) -> Nested:
        if context not in (Context.RECENT, Context.RESTRICTED):
            return Nested(context)
        few = unused(self.expression, self.keyed, self.rules - self.points)
        return Nested(context, (few, few) if few else None)

    @cached_property
    def has_points(self) -> bool:
        """Whether an `instant` of what takes time is a constituent."""
        return any(points_of(self.expression, self.rules))

    @cached_property
    def _single(self) -> tuple[x.Expression, ...]:
        return single(self.expression)

    @cached_property
    def _stages(self) -> Stages | None:
        found = stages(self.expression)
        return found if found and self._one_scan else None

    @cached_property
    def _window(self) -> Window | None:
        found = window(self.expression)
        return found if found and self._one_scan else None

    @property
    def _one_scan(self) -> bool:
        leaves = [node for node in self.expression.walk() if isinstance(node, x.Name)]
        return not self.rules and self._alike(leaves)

    def _alike(self, leaves: Collection[x.Expression]) -> bool:
        """Whether all are keyed, or all broadcast."""
        return len({isinstance(n, x.Name) and n.name in self.keyed for n in leaves}) == 1


_forms = lru_cache(maxsize=KEPT_MAX)(Forms)


def single(e: x.Expression) -> tuple[x.Expression, ...]:
    """The event types of which each instance is one occurrence, detected at once or a fixed length
    of time later, as in `A(a, b, c)` (b) and `not(b)[a, [5 s]]` (a); () for other expressions."""
    match e:
        case _ if plain(e):
            leaves = [leaf for leaf in e.walk() if not leaf.operands()]
            return tuple(leaves) if len({*leaves}) == len(leaves) else ()
        case x.Within(part=part) | x.Minus(part=part) | x.Aperiodic(part=part):
            return single(part)
        case (
            x.Seq(first=opener, then=x.Own(duration=duration))
            | x.Not(opener=opener, closer=x.Own(duration=duration))
        ) if duration.fixed:
            return single(opener)
    return ()


@dataclass(frozen=True, slots=True)
class Window:
    """`A*(a, b, c)` or (`length_micros` > 0) `A*(a, b, [d])` over distinct event types.

    An instance lasts no longer than `span_micros` and has no occurrence of `absent` inside.
    """

    events: tuple[str, ...]
    length_micros: int
    span_micros: int | None = None
    absent: str | None = None


def window(expression: x.Expression) -> Window | None:
    """An expression without labels as a `Window`; None if it has another form."""
    found = _window(expression)
    return found if found and len({*found.events}) == len(found.events) else None


def _window(node: x.Expression) -> Window | None:
    match node:
        case x.Within(part=part, duration=duration) if duration.fixed:
            if found := _window(part):
                span = shorter(found.span_micros, duration.micros)
                return replace(found, span_micros=span)
        case x.Minus(part=part, absent=x.Name(name=name)):
            found = _window(part)
            if found and not found.absent:
                return replace(found, events=(*found.events, name), absent=name)
        case x.AperiodicStar(opener=x.Name(name=a), part=x.Name(name=b), closer=closer):
            if isinstance(closer, x.Name):
                return Window((a, b, closer.name), 0)
            if isinstance(closer, x.Own) and closer.duration.fixed:
                return Window((a, b), closer.duration.micros)
    return None


def unused(
    expression: x.Expression, keyed: Collection[str], rules: Collection[str]
) -> Amount | None:
    """How many occurrences, at most, are not consumed and can still be in a detection.

    These are the last occurrence of each event type, and the last one before each pending start of
    what must follow it; a point has none. If all instances share an event type, the occurrences
    kept never make up an instance: it would have been detected and consumed. With points it may
    have been detected in `restricted`, which consumes nothing.

    None where more can matter: an event type occurs twice in the expression, a part is filtered,
    keyed and broadcast event types are mixed, or a rule of `rules` is used as an event. `keyed`:
    the keyed event types.
    """
    whole, longest = expression, None
    while isinstance(whole, x.Within):
        longest = shorter(longest, longest_micros(whole.duration))
        whole = whole.part
    whole = loosened(whole, longest)
    events = [node for node in whole.walk() if not node.operands()]
    names = {node.name for node in events if isinstance(node, x.Name)}
    flat = all(isinstance(node, _FLAT) for node in whole.walk())
    once = len({*events}) == len(events) and not any(name in rules for name in names)
    alike = len({isinstance(node, x.Name) and node.name in keyed for node in events}) == 1
    if not (flat and once and alike):
        return None
    points = any(isinstance(node, x.Instant) for node in whole.walk())
    missing = _missing(whole, lasting=False) if _in_common(whole) and not points else 0
    return Amount(_kept(whole, 0, lasting=False)[0] - missing)


def _kept(node: x.Expression, before: int, *, lasting: bool) -> tuple[int, int]:
    """How many occurrences of a node are kept, and how many pending starts they make. `before`: the
    pending starts of what follows the node. `lasting`: something may follow; an occurrence that can
    only end an instance is not kept."""
    if isinstance(node, x.Seq):
        last, starts = _kept(node.then, before, lasting=lasting)
        kept, starts = _kept(node.first, starts, lasting=True)
        return kept + last, starts
    if isinstance(node, x.Instant):
        return _kept(node.part, before, lasting=lasting)[0], 0
    parts = node.operands()
    if not parts:
        kept = before + 1 if lasting else 0
        return kept, kept
    found = [_kept(part, before, lasting=lasting or needed(node) > 1) for part in parts]
    return sum(kept for kept, _ in found), sum(starts for _, starts in found)


def _missing(node: x.Expression, *, lasting: bool) -> int:
    """How many of the occurrences that `_kept` counts are missing as long as there is no instance
    of the node."""
    if isinstance(node, x.Seq):
        return _missing(node.first, lasting=True) * _missing(node.then, lasting=lasting)
    parts = node.operands()
    if not parts:
        return int(lasting)
    count = needed(node)
    each = sorted(_missing(part, lasting=lasting or count > 1) for part in parts)
    return sum(each[: len(parts) - count + 1])


def _in_common(node: x.Expression) -> bool:
    """Whether all instances share an event type."""
    parts = node.operands()
    if needed(node) < len(parts):
        return False
    return not parts or any(map(_in_common, parts))
