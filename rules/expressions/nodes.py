"""Event expressions: one frozen node per operator, holding fields only.

The meaning `[[E]]` of each node is section 2 of the semantics; names follow Snoop
(Chakravarthy & Mishra, UF-CIS-TR-93-007) and Carlson & Lisper's event detection algebra.
Nodes compare by value, so equal subexpressions are equal keys; `Span` (where the text stood)
does not take part in comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter, is_
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """Character offsets [start, end) of a node in the text of its expression."""

    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time: calendar months (counted in the rulebook's zone) plus microseconds."""

    months: int
    micros: int

    @property
    def fixed(self) -> bool:
        """Whether it is equally long wherever it begins."""
        return not self.months


@dataclass(frozen=True, slots=True)
class BusinessCalendar:
    """Which days are business days: those of the week (0 = Monday) that are no date in `excluded`
    (ISO) and no holiday of the regions in `holidays`, as DE-BE."""

    days: tuple[int, ...] = (0, 1, 2, 3, 4)
    excluded: tuple[str, ...] = ()
    holidays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BusinessDays(Duration):
    """`3 business days`: until the same local time on the n-th business day after (S11)."""

    months: int = field(default=0, init=False, repr=False)
    micros: int = field(default=0, init=False, repr=False)
    count: int = 1
    calendar: BusinessCalendar = BusinessCalendar()

    @property
    def fixed(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Expression:
    """Base of all nodes. `word`: the plain name that stands for the operator's sign in the text:
    `during`, `collect`, `ticks`, `no` of `a then no b for 5 min`, `times` and others of Ode's; like
    `span`, it does not take part in comparison."""

    span: Span = field(default=Span(), compare=False, repr=False, kw_only=True)
    word: str = field(default="", compare=False, repr=False, kw_only=True)

    def operands(self) -> tuple[Expression, ...]:
        """The child expressions from left to right."""
        return _READERS[type(self)](self)

    def walk(self) -> Iterator[Expression]:
        """This node and all below it, parents first."""
        found, ahead = [], [self]
        while ahead:
            node = ahead.pop()
            found.append(node)
            operands = _READERS[type(node)](node)
            if operands:
                ahead += operands[::-1]
        return iter(found)


_Operands = Callable[["Expression"], tuple["Expression", ...]]
_NAMES: dict[type[Expression], tuple[str, ...]] = {}


def _operand_names(kind: type[Expression]) -> tuple[str, ...]:
    """The fields of a node that hold expressions: one a field, or in one field a tuple of them."""
    if kind not in _NAMES:
        _NAMES[kind] = tuple(f.name for f in fields(kind) if "Expression" in str(f.type))
    return _NAMES[kind]


class _Readers(dict[type[Expression], _Operands]):
    """A function for each kind of node that reads its operands. It is made when the kind is met
    first: `operands` is called a million times for a rulebook of many rules."""

    def __missing__(self, kind: type[Expression]) -> _Operands:
        names = _operand_names(kind)
        read: Callable[[Expression], Any] = attrgetter(*names) if names else lambda _: ()
        many = any(str(f.type).startswith("tuple") for f in fields(kind) if f.name in names)
        single = len(names) == 1 and not many
        self[kind] = (lambda node: (read(node),)) if single else read
        return self[kind]


_READERS = _Readers()


@dataclass(frozen=True, slots=True)
class Name(Expression):
    """An event type, or another rule (its detections)."""

    name: str


@dataclass(frozen=True, slots=True)
class Or(Expression):
    """`a or b ..`: union."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class And(Expression):
    """`a and b ..`, `all(a, b, ..)`: Carlson-Lisper `+`, any order, also simultaneous."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(Expression):
    """`any(m, a, b, ..)`: m distinct operands; m > n means all."""

    count: int
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AnyRepeat(Expression):
    """`any(m, a*)`: m distinct occurrences of one operand."""

    count: int
    part: Expression


@dataclass(frozen=True, slots=True)
class Seq(Expression):
    """`a ; b`: e(a) < s(b)."""

    first: Expression
    then: Expression


@dataclass(frozen=True, slots=True)
class BoundedSeq(Seq):
    """`a ;_t b`: { a u b : e(a) < s(b), e(b) - s(b) <= t }, Carlson & Lisper's bounded sequence.

    It has the instances of `a ; b` if no b is longer than t, which `rules.algebra.transformation`
    finds out. A b that ends now started at now - t or later. So of the a's that ended before
    now - t, only the one with the latest start is kept. The language has no sign for it.
    """

    duration: Duration


@dataclass(frozen=True, slots=True)
class Minus(Expression):
    """`a - b`, `a without b`: a with no b wholly inside [s(a), e(a)]."""

    part: Expression
    absent: Expression


@dataclass(frozen=True, slots=True)
class Within(Expression):
    """`a within d`: e(a) - s(a) <= d."""

    part: Expression
    duration: Duration


@dataclass(frozen=True, slots=True)
class Own(Expression):
    """`[d]` in last position: d after this window's own opener."""

    duration: Duration


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """`not(b)[a, c]`."""

    absent: Expression
    opener: Expression
    closer: Expression


@dataclass(frozen=True, slots=True)
class Aperiodic(Expression):
    """`A(a, b, c)`: each b in an open window."""

    opener: Expression
    part: Expression
    closer: Expression


@dataclass(frozen=True, slots=True)
class AperiodicStar(Expression):
    """`A*(a, b, c)`: once per closed window, with all its b's."""

    opener: Expression
    part: Expression
    closer: Expression


@dataclass(frozen=True, slots=True)
class Periodic(Expression):
    """`P(a, [d]: sample, c)`: ticks at e(a) + k*d while the window is open."""

    opener: Expression
    period: Duration
    closer: Expression
    sample: str | None = None


@dataclass(frozen=True, slots=True)
class PeriodicStar(Expression):
    """`P*(a, [d]: sample, c)`: once per closed window, with all its ticks."""

    opener: Expression
    period: Duration
    closer: Expression
    sample: str | None = None


@dataclass(frozen=True, slots=True)
class Plus(Expression):
    """`a + [d]`: Snoop's relative event, a point at e(a) + d."""

    base: Expression
    duration: Duration


@dataclass(frozen=True, slots=True)
class Instant(Expression):
    """`instant(x)`: x as a point at its end. Time as Ode and other systems have it: an event is at
    the instant at which it is detected."""

    part: Expression


@dataclass(frozen=True, slots=True)
class Nth(Expression):
    """`a[i]`: the i-th occurrence since activation (Hinze & Voisard)."""

    part: Expression
    index: int


@dataclass(frozen=True, slots=True)
class Every(Expression):
    """`every(n, a)`: the last n, at the n-th, 2n-th, .. occurrence."""

    count: int
    part: Expression


@dataclass(frozen=True, slots=True)
class Labelled(Expression):
    """`L: (a)`."""

    label: str
    part: Expression


@dataclass(frozen=True, slots=True)
class Edge(Expression):
    """The beginning or end of what takes time: an update, a commit or a rule's action (S10)."""

    name: str


@dataclass(frozen=True, slots=True)
class BeginOf(Edge):
    """`begin_of x` of an update, a commit or a rule's action."""


@dataclass(frozen=True, slots=True)
class EndOf(Edge):
    """`end_of x` of an update, a commit or a rule's action."""


@dataclass(frozen=True, slots=True)
class Failed(Edge):
    """`failed x`: the action of the rule x is dead."""


@dataclass(frozen=True, slots=True)
class Resolved(Edge):
    """`resolved x`: what the rule x has fired for, with `holds`, is over."""


@dataclass(frozen=True, slots=True)
class Clock(Expression):
    """A clock literal `<(hh:mm:ss)mm/dd/yyyy>`; None is the wildcard `*`."""

    hour: int | None
    minute: int | None
    second: int | None
    month: int | None
    day: int | None
    year: int | None


@dataclass(frozen=True, slots=True)
class Cron(Expression):
    """`cron("..")`: a Vixie cron line of five fields."""

    text: str


def names_in(node: Expression) -> set[str]:
    """The event types and rules that an expression names."""
    return {part.name for part in node.walk() if isinstance(part, Name)}


def with_operands(node: Expression, operands: Sequence[Expression]) -> Expression:
    """The same operator over other operands, given in the order of `operands()`."""
    old = node.operands()
    if len(old) == len(operands) and all(map(is_, old, operands)):
        return node
    given = iter(operands)
    changed: dict[str, Any] = {}
    for name in _operand_names(type(node)):
        value = getattr(node, name)
        many = isinstance(value, tuple)
        changed[name] = tuple(next(given) for _ in value) if many else next(given)
    return replace(node, **changed) if changed else node


def counted_by(node: Expression, calendar: BusinessCalendar) -> Expression:
    """The expression whose business days are those of a calendar."""
    operands = [counted_by(part, calendar) for part in node.operands()]
    changed: dict[str, Any] = {
        name: replace(value, calendar=calendar)
        for name in ("duration", "period")
        if isinstance(value := getattr(node, name, None), BusinessDays)
    }
    node = with_operands(node, operands)
    return replace(node, **changed) if changed else node


def business_calendars(node: Expression) -> set[BusinessCalendar]:
    """The calendars by which an expression counts business days."""
    values = (getattr(e, name, None) for e in node.walk() for name in ("duration", "period"))
    return {value.calendar for value in values if isinstance(value, BusinessDays)}
