"""Conditions as trees: the `where` of a rule, between constituents, and the `fire` and `rearm` of a
window, over all of its rows.

Example: `w.amount > 1.1 * d.amount` is a Comparison of two operands: a Column, and Arithmetic over
a Literal and a Column. In `avg(celsius) > 80` one operand is an Aggregate. Nodes compare by value;
`span` (where the text stood) does not take part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from operator import add, eq, ge, gt, le, lt, mul, ne, neg, not_, sub
from typing import Any

from tidegate.rules.expressions.nodes import Span

EVERY_ROW = "*"
Value = int | Decimal | float | str | bool | date | datetime


@dataclass(frozen=True, slots=True)
class Predicate:
    """Base of all nodes."""

    span: Span = field(default=Span(), compare=False, repr=False, kw_only=True)

    def parts(self) -> tuple[Predicate, ...]:
        """The nodes below this one, from left to right."""
        return ()

    def walk(self) -> Iterator[Predicate]:
        """This node and all below it, parents first."""
        yield self
        for part in self.parts():
            yield from part.walk()


@dataclass(frozen=True, slots=True)
class Column(Predicate):
    """`label.column` or `event.column`; `old`: `label.old.column`, of the pre-image. Null where the
    part is absent."""

    part: str
    column: str
    old: bool = False

    def __str__(self) -> str:
        return f"{self.part}.{'old.' if self.old else ''}{self.column}"


@dataclass(frozen=True, slots=True)
class Aggregate(Column):
    """`count(*)`, `avg(celsius)`, `sum(old.balance)`: a value of all rows of a window. `part`: the
    function's name. `column` of `count(*)` is `EVERY_ROW`."""

    @property
    def of_rows(self) -> Column:
        """What is aggregated: a column of each row."""
        return Column("", self.column, self.old)

    def __str__(self) -> str:
        return f"{self.part}({'old.' if self.old else ''}{self.column})"


@dataclass(frozen=True, slots=True)
class Literal(Predicate):
    """A value. `kind`: bigint, decimal, double, string, boolean, date, timestamp or
    timestamp_ntz."""

    value: Value
    kind: str


@dataclass(frozen=True, slots=True)
class Unary(Predicate):
    """`-x`, `abs(x)`, `not x`, `x is null`, `x is not null`."""

    operator: str  # - | abs | not | is null | is not null
    part: Predicate

    def parts(self) -> tuple[Predicate, ...]:
        return (self.part,)


@dataclass(frozen=True, slots=True)
class Binary(Predicate):
    """Base of what has two operands."""

    operator: str
    left: Predicate
    right: Predicate

    def parts(self) -> tuple[Predicate, ...]:
        return self.left, self.right


@dataclass(frozen=True, slots=True)
class Arithmetic(Binary):
    """`+`, `-` or `*` of numbers."""


@dataclass(frozen=True, slots=True)
class Comparison(Binary):
    """`=`, `<>`, `<`, `<=`, `>` or `>=`."""


@dataclass(frozen=True, slots=True)
class Chain(Predicate):
    """`x and y ..` or `x or y ..`."""

    operator: str  # and | or
    members: tuple[Predicate, ...]

    def parts(self) -> tuple[Predicate, ...]:
        return self.members


@dataclass(frozen=True, slots=True)
class Exact:
    """A type of exact numbers: how many digits before and after the point."""

    whole: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.whole + self.scale},{self.scale})"


Kind = Exact | str
"""An exact number, or: double, string, boolean, date, timestamp, timestamp_ntz."""
INTEGERS: Mapping[str, int] = {
    **dict.fromkeys(("byte", "tinyint"), 3),
    **dict.fromkeys(("short", "smallint"), 5),
    **dict.fromkeys(("int", "integer"), 10),
    **dict.fromkeys(("long", "bigint"), 19),
}
"""How many digits the types of whole numbers have."""


def conjuncts(tree: Predicate) -> tuple[Predicate, ...]:
    """The parts of which all must be true."""
    if isinstance(tree, Chain) and tree.operator == "and":
        return tuple(found for member in tree.members for found in conjuncts(member))
    return (tree,)


def columns(tree: Predicate) -> tuple[Column, ...]:
    """The columns that a condition names, each once, in their order."""
    return tuple(dict.fromkeys(node for node in tree.walk() if isinstance(node, Column)))


def aggregates(tree: Predicate) -> tuple[Aggregate, ...]:
    """The aggregates that a condition over rows names, each once, in their order."""
    return tuple(node for node in columns(tree) if isinstance(node, Aggregate))


def true_of_nothing(tree: Predicate) -> bool:
    """Whether a condition over rows is true of none: of these counts are 0, and others null."""
    return _of_nothing(tree) is True


def _of_nothing(tree: Predicate) -> Any:
    match tree:
        case Literal(value=value):
            return value
        case Aggregate(part=part):
            return 0 if part == "count" else None
        case Chain(operator=word, members=members):
            found = [_of_nothing(member) for member in members]
            ends = word == "or"  # what one member decides alone
            return ends if ends in found else None if None in found else not ends
        case Unary(operator="is null" | "is not null" as asked, part=operand):
            return (_of_nothing(operand) is None) == (asked == "is null")
    values = [_of_nothing(part) for part in tree.parts()]
    if None in values:
        return None
    match tree:
        case Unary(operator=word):
            return _UNARY[word](*values)
        case Binary(operator=sign):
            one, other = (float(v) if isinstance(v, Decimal) else v for v in values)
            return _BINARY[sign](one, other)
    raise TypeError(tree)


_UNARY: Mapping[str, Callable[[Any], Any]] = {"-": neg, "abs": abs, "not": not_}
_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": add, "-": sub, "*": mul, "=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip
