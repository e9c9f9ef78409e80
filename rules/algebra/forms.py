"""The form of an expression in a parameter context: how its instances are detected.

The first that fits is taken:

operators  each operator is a node of the event graph: everything in `restricted`
single     each instance is one occurrence: `a or b`, `A(a, b, c) - d`, `not(b)[a, [5 s]]`
flat       stages in sequence, chosen among in one scan: `a ; (b and c) ; any(2, d, e)`, `a ; a`
windowed   windows of event types, chosen among in one scan: `A*(a, b, c) - d`
nested     anything else, searched exactly: `(a ; b) and c`, `a ; b ; (a or c)`; and every `select`

A walk reads all rows of its event types: these are all of one key, or all broadcast, and no rules.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tidegate.rules.algebra.amount import Amount
from tidegate.rules.algebra.detector_form import KEPT_MAX
from tidegate.rules.algebra.plain import plain
from tidegate.rules.algebra.recent import unused
from tidegate.rules.algebra.stages import Stages, most_kept, stages
from tidegate.rules.algebra.windows import Window, window
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.parser import unlabelled
from tidegate.rules.model import Context, Selection


@dataclass(frozen=True, slots=True)
class Operators:
    """`a ; (b - c)` in `restricted`: each operator is a node, and the root detects."""


@dataclass(frozen=True, slots=True)
class Single:
    """`A(a, b, c)` in `unrestricted`: as `Operators`, but every row of b counts. `united`: those
    that end together are one detection, as `cumulative` wants it."""

    united: bool


@dataclass(frozen=True, slots=True)
class Flat:
    """`a ; (b and c)`. `kept`: the instances that are carried, and the occurrences in them, where
    that is a number."""

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
    """`(a ; b) and c`: the choice is searched for among what is not consumed; `kept` as in `Flat`,
    beside what the operators carry."""

    context: Context | Selection
    kept: tuple[Amount, Amount] | None = None


Form = Operators | Single | Flat | Windowed | Nested


def forms(
    expression: x.Expression,
    keyed: Collection[str] = (),
    rules: Collection[str] = (),
    points: Collection[str] = (),
) -> Forms:
    """The forms of an expression, by context. `keyed`: the keyed event types; `rules`: those that
    may be used as events; `points`: those of them whose detections are instants."""
    expression = unlabelled(expression)
    names = x.names_in(expression)
    named = (frozenset(n for n in names if n in given) for given in (keyed, rules, points))
    return _forms(expression, *named)


@dataclass(frozen=True)
class Forms:
    """The forms of one expression; what several contexts ask of it is found once."""

    expression: x.Expression
    keyed: frozenset[str]
    rules: frozenset[str]
    points: frozenset[str]

    def of(self, context: Context | Selection) -> Form:
        if isinstance(context, Selection):
            return Nested(context)
        if self._single:
            context = _SAME.get(context, context)
        if context is Context.RESTRICTED:
            return Operators()
        if context is Context.UNRESTRICTED and plain(self.expression):
            return Single(united=False)
        if self._single and self._alike(self._single):
            return Single(united=context is Context.CUMULATIVE)
        return self._walked(context) or self._nested(context)

    def _walked(self, context: Context) -> Flat | Windowed | None:
        flat, found = self._stages, self._window
        if context is Context.UNRESTRICTED:
            return None
        if flat and flat.direct(context):
            kept = most_kept(flat, context)
            return Flat(context, flat, kept and (Amount(kept[0]), Amount(kept[1])))
        return Windowed(context, found) if found else None

    def _nested(self, context: Context) -> Nested:
        if context is not Context.RECENT:
            return Nested(context)
        few = unused(self.expression, self.keyed, self.rules - self.points)
        return Nested(context, (few, few) if few else None)

    @cached_property
    def _single(self) -> tuple[x.Expression, ...]:
        return single(self.expression)

    @cached_property
    def _stages(self) -> Stages | None:
        found = stages(self.expression)
        return found if found and self._one_walk else None

    @cached_property
    def _window(self) -> Window | None:
        found = window(self.expression)
        return found if found and self._one_walk else None

    @property
    def _one_walk(self) -> bool:
        leaves = [node for node in self.expression.walk() if isinstance(node, x.Name)]
        return not self.rules and self._alike(leaves)

    def _alike(self, leaves: Collection[x.Expression]) -> bool:
        """Whether all are of one key, or all broadcast."""
        return len({isinstance(n, x.Name) and n.name in self.keyed for n in leaves}) == 1


_forms = lru_cache(maxsize=KEPT_MAX)(Forms)

_SAME = {
    Context.RECENT: Context.RESTRICTED,
    Context.CHRONICLE: Context.UNRESTRICTED,
    Context.CONTINUOUS: Context.UNRESTRICTED,
}
"""What detects the same where each instance is one occurrence: it ends once, so no other misses
what it consumes."""


def single(e: x.Expression) -> tuple[x.Expression, ...]:
    """The event types whose occurrences the instances are: each passes, or not, at once or a fixed
    length of time later. None at all where instances are anything else."""
    match e:
        case _ if plain(e):
            leaves = [leaf for leaf in e.walk() if not leaf.operands()]
            return tuple(leaves) if len({*leaves}) == len(leaves) else ()
        case x.Within(part=part) | x.Minus(part=part) | x.Aperiodic(part=part):
            return single(part)
        case (
            x.Seq(first=opener, then=x.Own(duration=duration))
            | x.Not(opener=opener, closer=x.Own(duration=duration))
        ) if not duration.months:
            return single(opener)
    return ()
