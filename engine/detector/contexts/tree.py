"""A rule's expression as the exact search reads it: a node for each operator.

A stream is a node of the event graph. Leaves read streams of occurrences, every row of them; each
has an offset that tells its occurrences' roles from those of the same type elsewhere in the
expression. What is only looked at (the b of `a - b`) is a stream of intervals: what `restricted`
keeps of it decides as all of it does, for an instance with a later start ends inside wherever
another one does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.engine.detector import calendar
from tidegate.rules.expression import Duration


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
class After:
    """An own terminator: the point `duration` after an instant; months count in `zone`."""

    duration: Duration
    zone: str

    def of(self, instant: int) -> int:
        return calendar.add(instant, self.duration, self.zone)


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
class Given(Leaf):
    """`every(n, a)`, `a[i]`, `a + [d]`, `P(a, [d], c)`: the same whatever is used up; `stream` is
    theirs. `ticks`: its ticks are constituents here."""

    ticks: bool


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
class Until(Tree):
    """`a ; [d]`, and `not(b)[a, [d]]` if there is a stream `absent`."""

    opener: Tree
    after: After
    absent: int | None

    def parts(self) -> tuple[Tree, ...]:
        return (self.opener,)

    def lasting(self) -> Iterator[Leaf]:
        return self.leaves()


@dataclass(frozen=True, slots=True)
class Aperiodic(Tree):
    """`A(a, b, c)`; a is a stream, c is one or an own terminator."""

    opener: int
    part: Tree
    closer: int | After

    def parts(self) -> tuple[Tree, ...]:
        return (self.part,)


@dataclass(frozen=True, slots=True)
class Window(Tree):
    """`A*(a, b, c)` or `P*(a, [d], c)`: the b's are `part`, the ticks `period` apart."""

    opener: Tree
    closer: Tree | After
    part: Tree | None = None
    period: Period | None = None

    def parts(self) -> tuple[Tree, ...]:
        parts = (self.opener, self.part, self.closer)
        return tuple(part for part in parts if isinstance(part, Tree))

    def lasting(self) -> Iterator[Leaf]:
        return self.leaves()


@dataclass(frozen=True, slots=True)
class Period:
    """The ticks of a `P*`: e(a) + k * duration, k >= 1; `source` is the type of the
    ticks, `role` theirs."""

    duration: Duration
    zone: str
    source: str
    role: int


@dataclass(frozen=True, slots=True)
class AnyRepeat(Tree):
    """`any(m, a*)`"""

    count: int
    part: Tree

    def parts(self) -> tuple[Tree, ...]:
        return (self.part,)

    def lasting(self) -> Iterator[Leaf]:
        return self.leaves() if self.count > 1 else self.part.lasting()


def plain(tree: Tree) -> list[Leaf]:
    """The event types of a plain tree, from the left; none if it is composite (S9)."""
    if type(tree) is Leaf:
        return [tree]
    parts = [plain(part) for part in tree.parts()] if isinstance(tree, Either) else []
    return [leaf for part in parts for leaf in part] if all(parts) else []


def walk(tree: Tree) -> Iterator[Tree]:
    yield tree
    for part in tree.parts():
        yield from walk(part)


def ends(tree: Tree) -> Iterator[tuple[Leaf, tuple[After, ...]]]:
    """Where instances can end, whatever is used up: so long after the end of an instance of these
    leaves, the terminators to be added one after the other."""
    match tree:
        case Leaf():
            yield tree, ()
        case Until(opener=opener, after=after) | Window(opener=opener, closer=After() as after):
            for leaf, path in ends(opener):
                yield leaf, (*path, after)
        case Sequence(then=last) | Not(closer=last) | Window(closer=Tree() as last):
            yield from ends(last)
        case _:
            for part in tree.parts():
                yield from ends(part)
