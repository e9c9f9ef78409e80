"""An event script as a typed tree: declarations, and a regular expression over markers and blocks.

All nodes are frozen values. Names are resolved, and every expression knows its type: a `long` that
is widened is a `Call("double", ..)`. Only this tree is run and explained, never the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from tidegate.rules.errors import Place
from tidegate.rules.eventscript.types import Type

# Expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Node:
    """Base of all nodes. Nodes that differ in their `place` alone are equal."""

    place: Place = field(default=Place(), compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Expression(Node):
    type: Type


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """`value`: bool, int, float or str; None is `null` (type object)."""

    value: Any


@dataclass(frozen=True, slots=True)
class Variable(Expression):
    """A variable of the script, one of an instance."""

    name: str


@dataclass(frozen=True, slots=True)
class Local(Expression):
    """The name of a `for`. Each of two nested loops with the same name has its own."""

    name: str


@dataclass(frozen=True, slots=True)
class Raw(Expression):
    """In `case` and `group`: the value of the input as it arrives."""


@dataclass(frozen=True, slots=True)
class Key(Expression):
    """`group[n]`: the n-th column of the key, from 0 on."""

    number: int


@dataclass(frozen=True, slots=True)
class Index(Expression):
    array: Expression
    index: Expression  # a long


@dataclass(frozen=True, slots=True)
class Field(Expression):
    structure: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Unary(Expression):
    """`!` of a boolean; `-` of a long, a double or a duration."""

    op: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Expression):
    """`|| && == != < <= > >= + - * / %`; both operands are of one type. Of longs, `/` truncates and
    `%` has the sign of the dividend; `+` of strings joins them. With times and durations, which are
    microseconds: `time - time` is a duration, `time + duration`, `duration + time` and `time -
    duration` are a time, `duration / duration` is a long, `duration * long` and `long * duration`
    are a duration."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Choice(Expression):
    """`condition ? then : other`, as a value."""

    condition: Expression
    then: Expression
    other: Expression


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A built-in function, or one that a `function` declares."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Build(Expression):
    """`{name: value, ..}`: a structure, every field once, in the order of its type."""

    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class New(Expression):
    """`new type [count]`: an array of so many defaults of its type."""

    count: Expression


# Statements -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Statement(Node):
    pass


@dataclass(frozen=True, slots=True)
class Block(Statement):
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Assign(Statement):
    """`target` is a Variable, or an Index or Field of one, to any depth."""

    target: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Emit(Statement):
    """`!> output(value)`; None: the output carries nothing."""

    output: str
    value: Expression | None


@dataclass(frozen=True, slots=True)
class If(Statement):
    condition: Expression
    then: Statement
    other: Statement | None


@dataclass(frozen=True, slots=True)
class Count(Statement):
    """`for (name: low, high)`: from low up to high; both are taken once, before the first round."""

    name: str
    low: Expression
    high: Expression
    body: Statement


@dataclass(frozen=True, slots=True)
class Each(Statement):
    """`for (name: array)`: the elements of the array as it was before the first round."""

    name: str
    array: Expression
    body: Statement


@dataclass(frozen=True, slots=True)
class While(Statement):
    condition: Expression
    body: Statement


# Regular expressions --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Regex(Node):
    pass


@dataclass(frozen=True, slots=True)
class Named(Regex):
    """A marker `event(variable)`. `event` None: `.`, any named event. `variable` None: the value is
    not stored. A long is widened if the variable is a double."""

    event: str | None
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Elapse(Regex):
    """A marker `elapse[amount unit](variable)`: it waits `amount` times `unit_micros`. The amount
    is a long or a double; or a duration, with `unit_micros` 1."""

    amount: Expression
    unit_micros: int
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Within(Elapse):
    """A marker `within[amount unit](variable)`: an `elapse` that counts on through other events, as
    long as a path stands before it."""


@dataclass(frozen=True, slots=True)
class Arrive(Regex):
    """A marker `arrive[..](variable)`. `instant`: one expression of type time. Without it, the six
    components year, month, day, hour, minute, second, each a long or None (`.`, any)."""

    instant: Expression | None
    components: tuple[Expression | None, ...] = ()
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Act(Regex):
    """A block that stands in the regular expression."""

    block: Block


@dataclass(frozen=True, slots=True)
class Sequence(Regex):
    items: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Either(Regex):
    """`R | S`"""

    items: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Both(Regex):
    """`R & S`"""

    left: Regex
    right: Regex


@dataclass(frozen=True, slots=True)
class Without(Regex):
    """`R - S`; a leading `-R` is `Without(Named(None), R)`."""

    left: Regex
    right: Regex


@dataclass(frozen=True, slots=True)
class Repeat(Regex):
    """`R{low,high}`; `high` None is any number: `*` is (0, None), `+` (1, None), `?` (0, 1)."""

    item: Regex
    low: int
    high: int | None


# Programs -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """`case`: the first condition that is true names the event. If none is, it is `otherwise`; if
    that is None, the value is no event."""

    branches: tuple[tuple[Expression, str], ...]
    otherwise: str | None


@dataclass(frozen=True, slots=True)
class Input:
    """An input stream `name` of values of `type`. `events`: the event names that its values can
    get; without a `case` its own name. `group`: the columns of its key; without any, a value goes
    to all instances."""

    name: str
    type: Type
    place: Place
    case: Case | None = None
    group: tuple[Expression, ...] = ()

    @property
    def events(self) -> tuple[str, ...]:
        if self.case is None:
            return (self.name,)
        names = [name for _, name in self.case.branches]
        return tuple(dict.fromkeys([*names, *filter(None, [self.case.otherwise])]))


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function that the script calls (`function type name(types)`)."""

    name: str
    result: Type
    arguments: tuple[Type, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Program:
    """A whole script. `key_names` and `key_types`: the columns of an instance's key; () if no input
    has a `group`. `variables`: the type of each variable."""

    text: str
    inputs: tuple[Input, ...]
    outputs: Mapping[str, Type]
    functions: Mapping[str, Function]
    variables: Mapping[str, Type]
    key_names: tuple[str, ...]
    key_types: tuple[Type, ...]
    regex: Regex


def nodes(node: object) -> Iterator[Node]:
    """A node and all nodes in it, in the order of their fields."""
    if isinstance(node, Node):
        yield node
    if is_dataclass(node):
        for each in fields(node):
            yield from nodes(getattr(node, each.name))
    elif isinstance(node, tuple):
        for part in node:
            yield from nodes(part)
