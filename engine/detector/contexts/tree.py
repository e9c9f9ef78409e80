"""A rule's expression as the exact search reads it: which streams its operators look at.

A stream is a node of the event graph. Leaves are the event types, every row of them; each has an
offset that tells its occurrences' roles from those of the same type elsewhere in the expression.
What is only looked at (the b of `a - b`) is a stream of intervals: what `restricted` keeps of it
decides as all of it does, for an instance with a later start ends inside wherever another one does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rules import expression as x
from rules.errors import EngineError
from rules.expression import Duration


@dataclass(frozen=True, slots=True)
class Tree:
    """Base of all nodes."""

    def parts(self) -> tuple[Tree, ...]:
        """The operands whose instances make up this one's."""
        return ()

    def leaves(self) -> Iterator[Leaf]:
        for part in self.parts():
            yield from part.leaves()

    def lasting(self) -> Iterator[Leaf]:
        """The leaves whose occurrences may be in an instance that ends after them."""
        for part in self.parts():
            yield from part.lasting()


@dataclass(frozen=True, slots=True)
class Leaf(Tree):
    """An event type: the occurrences of `stream`, their roles moved up by `shift`."""

    stream: int
    shift: int

    def leaves(self) -> Iterator[Leaf]:
        yield self

    def lasting(self) -> Iterator[Leaf]:
        return iter(())


@dataclass(frozen=True, slots=True)
class Counted(Leaf):
    """`every(n, a)`, `a[i]`: counted whatever is used up; `stream` is theirs."""


@dataclass(frozen=True, slots=True)
class Either(Tree):
    """`a or b ..`"""

    operands: tuple[Tree, ...]

    def parts(self) -> tuple[Tree, ...]:
        return self.operands


@dataclass(frozen=True, slots=True)
class Conjunction(Tree):
    """`a and b ..`, `any(m, a, b, ..)`: one instance each of `count` operands."""

    count: int
    operands: tuple[Tree, ...]

    def parts(self) -> tuple[Tree, ...]:
        return self.operands

    def lasting(self) -> Iterator[Leaf]:
        for part in self.operands:
            yield from part.leaves() if self.count > 1 else part.lasting()


@dataclass(frozen=True, slots=True)
class Sequence(Tree):
    """`a ; b`"""

    first: Tree
    then: Tree

    def parts(self) -> tuple[Tree, ...]:
        return self.first, self.then

    def lasting(self) -> Iterator[Leaf]:
        yield from self.first.leaves()
        yield from self.then.lasting()


@dataclass(frozen=True, slots=True)
class Minus(Tree):
    """`a - b`; `absent` is the stream of b."""

    part: Tree
    absent: int

    def parts(self) -> tuple[Tree, ...]:
        return (self.part,)


@dataclass(frozen=True, slots=True)
class Within(Tree):
    """`a within d`; months count in `zone`."""

    part: Tree
    duration: Duration
    zone: str

    def parts(self) -> tuple[Tree, ...]:
        return (self.part,)


@dataclass(frozen=True, slots=True)
class Not(Tree):
    """`not(b)[a, c]`; `absent` is the stream of b."""

    opener: Tree
    closer: Tree
    absent: int

    def parts(self) -> tuple[Tree, ...]:
        return self.opener, self.closer

    def lasting(self) -> Iterator[Leaf]:
        yield from self.opener.leaves()
        yield from self.closer.lasting()


@dataclass(frozen=True, slots=True)
class Aperiodic(Tree):
    """`A(a, b, c)`; a and c are streams."""

    opener: int
    part: Tree
    closer: int

    def parts(self) -> tuple[Tree, ...]:
        return (self.part,)


@dataclass(frozen=True, slots=True)
class AperiodicStar(Tree):
    """`A*(a, b, c)`"""

    opener: Tree
    part: Tree
    closer: Tree

    def parts(self) -> tuple[Tree, ...]:
        return self.opener, self.part, self.closer

    def lasting(self) -> Iterator[Leaf]:
        return self.leaves()


@dataclass(frozen=True, slots=True)
class AnyRepeat(Tree):
    """`any(m, a*)`"""

    count: int
    part: Tree

    def parts(self) -> tuple[Tree, ...]:
        return (self.part,)

    def lasting(self) -> Iterator[Leaf]:
        return self.leaves() if self.count > 1 else self.part.lasting()


def walk(tree: Tree) -> Iterator[Tree]:
    yield tree
    for part in tree.parts():
        yield from walk(part)


def read(expression: x.Expression, zone: str) -> tuple[Tree, Streams]:
    """The tree of a whole expression, and the streams that it looks at."""
    streams = Streams(zone)
    return streams.read(expression, 0), streams


@dataclass
class Streams:
    """`events` are the event types of the leaves, `counted` what is counted since activation, with
    the first role of each; `looked` the expressions that are only looked at."""

    zone: str
    events: list[str] = field(default_factory=list)
    roles: list[int] = field(default_factory=list)
    counted: list[x.Expression] = field(default_factory=list)
    counted_roles: list[int] = field(default_factory=list)
    looked: list[x.Expression] = field(default_factory=list)

    def read(self, e: x.Expression, role: int) -> Tree:
        """The tree of a subexpression whose first role is `role`."""
        match e:
            case x.Name(name=name):
                if name not in self.events:
                    self.events.append(name)
                    self.roles.append(role)
                stream = self.events.index(name)
                return Leaf(stream, role - self.roles[stream])
            case x.Labelled(part=part):
                return self.read(part, role)
            case x.Or(parts=parts):
                return Either(self._each(parts, role))
            case x.And(parts=parts):
                return Conjunction(len(parts), self._each(parts, role))
            case x.AnyOf(count=count, parts=parts):
                return Conjunction(min(count, len(parts)), self._each(parts, role))
            case x.Seq(first=first, then=then):
                return Sequence(*self._each((first, then), role))
            case x.Minus(part=part, absent=absent):
                return Minus(self.read(part, role), self._look(absent))
            case x.Within(part=part, duration=duration):
                return Within(self.read(part, role), duration, self.zone)
            case x.Not(absent=absent, opener=opener, closer=closer):
                a, c = self._each((opener, closer), role + len(names(absent)))
                return Not(a, c, self._look(absent))
            case x.Aperiodic(opener=opener, part=part, closer=closer):
                inside = self.read(part, role + len(names(opener)))
                return Aperiodic(self._look(opener), inside, self._look(closer))
            case x.AperiodicStar(opener=opener, part=part, closer=closer):
                return AperiodicStar(*self._each((opener, part, closer), role))
            case x.AnyRepeat(count=count, part=part):
                return AnyRepeat(count, self.read(part, role))
            case x.Every() | x.Nth():
                return self._count(e, role)
        raise EngineError(
            "not-detectable",
            f"the operator {type(e).__name__} is not built in this context",
            "use restricted",
        )

    def _each(self, parts: tuple[x.Expression, ...], role: int) -> tuple[Tree, ...]:
        trees = []
        for part in parts:
            trees.append(self.read(part, role))
            role += len(names(part))
        return tuple(trees)

    def _count(self, e: x.Expression, role: int) -> Tree:
        if e not in self.counted:
            self.counted.append(e)
            self.counted_roles.append(role)
        number = self.counted.index(e)
        return Counted(number, role - self.counted_roles[number])

    def _look(self, e: x.Expression) -> int:
        if e not in self.looked:
            self.looked.append(e)
        return self.looked.index(e)


def names(e: x.Expression) -> list[str]:
    """The event types at the leaves, from the left: their places are the roles."""
    if isinstance(e, x.Name):
        return [e.name]
    return [name for operand in e.operands() for name in names(operand)]


def silent(e: x.Expression, role: int = 0) -> frozenset[int]:
    """The roles that are no parameters: a and c of `A*`."""
    found: set[int] = set()
    for operand in e.operands():
        roles = range(role, role + len(names(operand)))
        if isinstance(e, x.AperiodicStar) and operand is not e.part:
            found |= {*roles}
        found |= silent(operand, role)
        role = roles.stop
    return frozenset(found)
