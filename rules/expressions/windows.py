"""Windows: the words of `on:` that stand alone. Each is the root of a rule's expression.

A window takes the occurrences of plain expressions (S9), a rule's detections at their end. What it
detects is a union of them, chosen by itself: a window has no parameter context, no `where` and no
`select`. The end of a detection is an instant at which nothing need arrive.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.rules.errors import Place
from tidegate.rules.expressions.nodes import Duration, Expression
from tidegate.rules.expressions.predicates import Predicate

_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Window(Expression):
    """Base of the five windows."""


@dataclass(frozen=True, slots=True)
class Tumbling(Window):
    """`{window: d, of: x}`: [t - d, t) for each t on the grid of d that has an x inside."""

    part: Expression
    length: Duration


@dataclass(frozen=True, slots=True)
class Sliding(Window):
    """`{window: d, every: e, of: x}`: [t - d, t) for each t on the grid of e that has an x inside;
    nothing is consumed."""

    part: Expression
    length: Duration
    every: Duration


@dataclass(frozen=True, slots=True)
class Session(Window):
    """`{session: d, of: x}`: x's at most d apart, at the last + d."""

    part: Expression
    gap: Duration


@dataclass(frozen=True, slots=True)
class Asked:
    """A condition over the rows of a window."""

    tree: Predicate
    text: str
    place: Place = field(default=Place(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Crossing(Window):
    """`{over: {window: d, of: x, fire: p, rearm: q}}`: the x's of (t - d, t] at each t at which p
    becomes true of them after q was. Without q: after p was not true."""

    part: Expression
    length: Duration
    fire: Asked
    rearm: Asked | None = None


@dataclass(frozen=True, slots=True)
class Holding(Window):
    """`{holds: x, until: y, for: d, keep: e}`: x has begun, and d later no y has come. It is over,
    and `resolved`, e after the first y behind which no x comes within e."""

    begun: Expression
    ended: Expression
    length: Duration
    keep: Duration


@dataclass(frozen=True, slots=True)
class Resolution(Holding):
    """The ends of what holds, each as a point: what `resolved r` is of a rule r with that `on`. The
    language has no sign for it."""


def whole_days(duration: Duration) -> int:
    """How many days of 24 hours a length of time is; 0 if it is none, or counts months."""
    days, rest = divmod(duration.micros, _DAY)
    return 0 if rest or duration.months else days


def calendar(duration: Duration) -> bool:
    """Whether the grid of a length of time is that of the local calendar: days and months."""
    return bool(duration.months or whole_days(duration))
