"""Variables, values and keys as words of 64 bits, an integer or a double each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidegate.engine.detect.scripts.compiled.kernel import HEAD
from tidegate.engine.detect.scripts.places import Marker
from tidegate.engine.detect.scripts.program import Compiled, reads_key
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.tree import nodes
from tidegate.rules.eventscript.types import Array, Basic, Structure, Type

WORD_BYTES = 8


class UncompiledError(Exception):
    """A script has something that is interpreted only."""


class Word(NamedTuple):
    """A word of a value: its basic type, and its place in a row, or the number of its column."""

    kind: Basic
    place: int

    @property
    def double(self) -> bool:
        return self.kind == Basic.DOUBLE


class Items(NamedTuple):
    """An array of a script: the type of its elements, the words of its length and of its first
    element, its most elements."""

    kind: Basic
    length: int
    first: int
    most: int

    @property
    def double(self) -> bool:
        return self.kind == Basic.DOUBLE


def kinds_of(type_: Type) -> Iterator[Basic]:
    """The basic types that a value consists of, in order. Raises `UncompiledError`."""
    if isinstance(type_, Structure):
        for _, kind in type_.fields:
            yield from kinds_of(kind)
    elif isinstance(type_, Array) or type_ == Basic.OBJECT:
        raise UncompiledError(str(type_))
    else:
        yield type_


class Counter:
    """Gives out words from a first one on."""

    def __init__(self, count: int = 0) -> None:
        self.count = count

    def words(self, kinds: Sequence[Basic]) -> tuple[Word, ...]:
        return tuple(Word(kind, self._next()) for kind in kinds)

    def _next(self, count: int = 1) -> int:
        self.count += count
        return self.count - count

    def items(self, kind: Basic, most: int) -> Items:
        return Items(kind, self._next(), self._next(most), most)


class Layout:
    """The places of a script's words: those of variables in an instance of `width` words; those of
    outputs, inputs and keys in their columns, how many of which there are say `out` and `arriving`.
    `raw`: the words of an input's value, in an expression of its `case` or `group`. `texts`: the
    strings of the script, by code. `timed`: the places of timed markers, in the order in which an
    instance has their timers; `clocks`: those of clocks without variables. Raises
    `UncompiledError`."""

    raw: tuple[Word, ...] = ()

    def __init__(self, compiled: Compiled) -> None:
        program = compiled.script.program
        own, arriving = Counter(HEAD), Counter()
        self.variables: dict[str, tuple[Word, ...]] = {}
        self.arrays: dict[str, Items] = {}
        longest = _longest(program.regex)
        if sum(longest.values()) > compiled.script.limits.state_bytes // WORD_BYTES:
            raise UncompiledError("arrays that no instance may have")
        for name, kind in compiled.variables:
            if isinstance(kind, Array):
                self.arrays[name] = own.items(_number(kind.of), longest.get(name, 0))
            else:
                self.variables[name] = own.words([*kinds_of(kind)])
        emitted = {each.output for each in nodes(program.regex) if isinstance(each, tree.Emit)}
        self.outputs = [
            Counter().words([*kinds_of(kind)]) if name in emitted else ()
            for name, kind in program.outputs.items()
        ]
        self.stored = _stored(program)
        self.inputs = [
            arriving.words([*kinds_of(each.type)]) if n in self.stored else ()
            for n, each in enumerate(program.inputs)
        ]
        keys = program.key_types if reads_key(program) else ()
        self.keys = Counter().words([kind for each in keys for kind in kinds_of(each)])
        self.width, self.arriving = own.count, arriving.count
        self.out = max(map(len, self.outputs), default=0)
        self.texts = texts_of(program.regex)
        markers = [(p.number, p.tree) for p in compiled.places.places if isinstance(p, Marker)]
        self.timed = [number for number, node in markers if not isinstance(node, tree.Named)]
        self.clocks = [number for number, node in markers if _is_constant(node)]


def texts_of(node: tree.Node) -> list[str]:
    """The strings in a script, the empty one first: that of code n is texts[n]."""
    literals = (each for each in nodes(node) if isinstance(each, tree.Literal))
    return [*dict.fromkeys(["", *(n.value for n in literals if isinstance(n.value, str))])]


def _is_constant(marker: tree.Regex) -> bool:
    """Whether a marker is a clock without variables."""
    return (
        isinstance(marker, tree.Arrive)
        and marker.instant is None
        and all(part is None or isinstance(part, tree.Literal) for part in marker.components)
    )


def _number(type_: Type) -> Basic:
    """The type of an array's elements. Raises `UncompiledError`."""
    if isinstance(type_, Basic) and type_ not in (Basic.STRING, Basic.OBJECT):
        return type_
    raise UncompiledError(f"{type_}[]")


def _longest(regex: tree.Regex) -> dict[str, int]:
    """The most elements that each array of a script may have. Raises `UncompiledError` unless every
    array is either new and of constant length, or a copy of a whole array."""
    lengths: dict[str, int] = {}
    copies: list[tuple[str, str]] = []
    for node in nodes(regex):
        if isinstance(node, tree.Assign) and isinstance(node.target.type, Array):
            target, value = node.target, node.value
            if not isinstance(target, tree.Variable):
                raise UncompiledError("an array in a value")
            if isinstance(value, tree.New) and isinstance(value.count, tree.Literal):
                lengths[target.name] = max(lengths.get(target.name, 0), value.count.value)
            elif isinstance(value, tree.Variable):
                copies.append((target.name, value.name))
            else:
                raise UncompiledError("an array of any length")
    for _ in copies:
        for to, of in copies:
            lengths[to] = max(lengths.get(to, 0), lengths.get(of, 0))
    return lengths


def _stored(program: tree.Program) -> frozenset[int]:
    """The inputs whose values some marker stores."""
    events = {
        marker.event
        for marker in nodes(program.regex)
        if isinstance(marker, tree.Named) and marker.variable is not None
    }
    return frozenset(
        n
        for n, each in enumerate(program.inputs)
        if None in events or events.intersection(each.events)
    )
