"""From the text of a script to a checked program, and its warnings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import reduce
from typing import NamedTuple

from lark import Tree

from tidegate.rules.errors import InputError, Place, Problem, in_order, places
from tidegate.rules.eventscript import tree as t
from tidegate.rules.eventscript.declarations import Declarations, declarations
from tidegate.rules.eventscript.expressions import Expressions
from tidegate.rules.eventscript.inference import infer
from tidegate.rules.eventscript.names import BlockNames
from tidegate.rules.eventscript.parser import Mistakes, Parsed, parse
from tidegate.rules.eventscript.regexes import Regexes, below, walk
from tidegate.rules.eventscript.statements import Statements
from tidegate.rules.eventscript.tree import Program, nodes
from tidegate.rules.expressions.parser import Locate

FOLLOWERS_MAX = 1_000_000
"""Pairs of markers and blocks that follow each other: a script that runs keeps them in memory."""
_Names = frozenset[str]


def read(
    text: str,
    place: Place | None = None,
    locate: Locate | None = None,
    markers_max: int = 100_000,
) -> tuple[Program, tuple[Problem, ...]]:
    """Read one event script. Returns the program and its warnings.

    `place`: where the first character of the text stands. `locate` maps an offset in `text` to its
    place, and is used instead of `place` if given. `markers_max`: how many markers and blocks there
    may be, counts expanded. Raises `InputError` with every mistake, sorted by place; if the grammar
    refuses the text, with the first one.
    """
    mistakes = Mistakes(text, locate or places(text, place or Place()))
    tree = parse(text, mistakes)
    *heads, regex = (each for each in tree.children if isinstance(each, Tree))
    found = declarations(heads, mistakes)
    program = _program(text, regex, found, mistakes)
    if mistakes.problems:
        raise InputError(in_order(mistakes.problems))
    count = size(program.regex)
    if count > markers_max:
        message = f"{count} markers and blocks, counts expanded; at most {markers_max}"
        hint = "raise script_markers_max, or repeat less often"
        mistakes.add("script-markers", message, regex, hint)
    elif (ways := followers(program.regex)) > FOLLOWERS_MAX:
        message = f"markers and blocks follow each other in {ways} ways; at most {FOLLOWERS_MAX}"
        mistakes.add("script-markers", message, regex, "repeat less often what may be left out")
    else:
        mistakes.problems += endless(program.regex)
    if mistakes.problems:
        raise InputError(in_order(mistakes.problems))
    declared = {name: mistakes.place(at) for name, at in found.output_names.items()}
    return program, in_order(doubts(program, declared))


def _program(text: str, regex: Parsed, found: Declarations, mistakes: Mistakes) -> Program:
    variables = infer(regex, found)
    names = BlockNames(variables, {}, found.key)
    expressions = Expressions(mistakes, names, found.types, found.functions)
    read = Regexes(found, Statements(expressions, names, found.outputs)).read(regex)
    return Program(
        text,
        tuple(found.inputs.values()),
        found.outputs,
        found.functions,
        {name: kind for name, kind in variables.items() if kind is not None},
        found.key_names,
        found.key,
        read,
    )


def size(node: t.Regex) -> int:
    """How many markers and blocks there are, each as often as counts repeat it (`eventscript.md` 3:
    `R{i,}` is i - 1 copies and `R+`)."""
    if isinstance(node, t.Repeat):
        copies = max(1, node.low) if node.high is None else node.high
        return copies * size(node.item)
    return sum(map(size, below(node))) or int(not below(node))


class _Ends(NamedTuple):
    """Counts of one part of a regular expression, where places are its markers and blocks. `ways`:
    pairs of places that follow each other; `first`, `last`: places that can be the first or the
    last one; `empty`: the part can be left out."""

    ways: int
    first: int
    last: int
    empty: bool


def followers(node: t.Regex) -> int:
    """How many pairs of markers and blocks can follow each other directly, counts expanded.
    Example: `((A())?){n}` has n * (n - 1) / 2."""
    return _ends(node).ways


def _ends(node: t.Regex) -> _Ends:
    parts = [_ends(each) for each in below(node)]
    if isinstance(node, t.Repeat):
        return _repeated(parts[0], node.low, node.high) if parts else _Ends(0, 0, 0, True)
    if isinstance(node, t.Sequence):
        return reduce(_joined, parts)
    if not parts:
        return _Ends(0, 1, 1, isinstance(node, t.Act))
    ways, first, last = (sum(each[n] for each in parts) for n in range(3))
    return _Ends(ways, first, last, any(each.empty for each in parts))


def _joined(one: _Ends, other: _Ends) -> _Ends:
    return _Ends(
        one.ways + other.ways + one.last * other.first,
        one.first + (other.first if one.empty else 0),
        other.last + (one.last if other.empty else 0),
        one.empty and other.empty,
    )


def _repeated(item: _Ends, low: int, high: int | None) -> _Ends:
    count = max(1, low) if high is None else high
    pairs = count * (count - 1) // 2 if item.empty else count - 1
    ways = count * item.ways + (pairs + (high is None)) * item.first * item.last
    ends = count if item.empty or high is not None else 1
    return _Ends(
        ways,
        item.first * (count if item.empty else 1),
        item.last * (ends if item.empty else min(ends, count - low + 1)),
        item.empty or low == 0,
    )


def endless(node: t.Regex) -> list[Problem]:
    """Problems of blocks that can repeat without an event (the cyclic check of section 4.2)."""
    found: list[Problem] = []
    _silent(node, found)
    return list(dict.fromkeys(found))


def _silent(node: t.Regex, found: list[Problem]) -> tuple[t.Act, ...] | None:
    """The blocks on ways through `node` that take no event; None if every way takes one. `&` and
    `-` are read as `|`."""
    if isinstance(node, t.Act):
        return (node,)
    parts = [_silent(each, found) for each in below(node)]
    known = [each for each in parts if each is not None]
    together = tuple(act for each in known for act in each)
    if isinstance(node, t.Repeat):
        if node.high is None:
            found.extend(_problem(act, node) for act in together)
        return together if known or node.low == 0 else None
    if isinstance(node, t.Sequence):
        return together if len(known) == len(parts) else None
    return together if known else None


def _problem(act: t.Act, repeat: t.Repeat) -> Problem:
    place = repeat.place
    message = (
        "this block leads to itself without an event,"
        f" by what repeats at {place.line}:{place.column}"
    )
    hint = "let every round take an event: (A() { .. })*"
    return Problem("endless", message, act.place, hint)


def doubts(program: t.Program, outputs: dict[str, Place]) -> list[Problem]:
    """Warnings of variables that are read too early, unused inputs, and outputs that nothing emits.
    `outputs`: the place of each declaration."""
    found = _early(program.regex)
    named = [each.event for each in walk(program.regex) if isinstance(each, t.Named)]
    for declared in program.inputs if None not in named else ():
        if not set(declared.events) & set(named):
            message = f"no marker takes the input {declared.name!r}"
            hint = "every value of it is unexpected; leave it out, or write ."
            found.append(Problem("unused", message, declared.place, hint))
    emitted = {node.output for node in nodes(program.regex) if isinstance(node, t.Emit)}
    for name in program.outputs:
        if name not in emitted:
            message = f"nothing emits the output {name!r}"
            found.append(Problem("unused", message, outputs[name], f"write !> {name}(..);"))
    return found


def _early(regex: t.Regex) -> list[Problem]:
    reads = _Reads()
    reads.regex(regex, frozenset())
    return [
        Problem(
            "unassigned",
            f"{name!r} may be read before anything assigns it",
            place,
            "it is then 0, 0.0, false, the empty string, the epoch or null, as its type is",
        )
        for name, place in reads.early.items()
    ]


class _Reads:
    """Finds variables that are read before they are assigned, on any way through a script. A loop
    of statements may run no round; the values of conditions are not considered."""

    def __init__(self) -> None:
        self.early: dict[str, Place] = {}

    def regex(self, node: t.Regex, known: _Names) -> _Names:
        """The variables that are assigned after `node` on every way. `known`: those before it."""
        if isinstance(node, t.Named | t.Elapse | t.Arrive):
            for part in _operands(node):
                self.expression(part, known)
            return known | {node.variable} if node.variable else known
        if isinstance(node, t.Act):
            return self.statement(node.block, known)
        if isinstance(node, t.Sequence):
            for item in node.items:
                known = self.regex(item, known)
            return known
        if isinstance(node, t.Either):
            return frozenset.intersection(*(self.regex(item, known) for item in node.items))
        if isinstance(node, t.Both):
            return self.regex(node.left, known) | self.regex(node.right, known)
        if isinstance(node, t.Without):
            self.regex(node.right, known)
            return self.regex(node.left, known)
        behind = known
        for item in below(node):
            behind = self.regex(item, known)
        return behind if isinstance(node, t.Repeat) and node.low else known

    def statement(self, node: t.Statement, known: _Names) -> _Names:
        """As `regex`."""
        if isinstance(node, t.Block):
            for each in node.statements:
                known = self.statement(each, known)
        elif isinstance(node, t.Assign):
            self.expression(node.value, known)
            if isinstance(node.target, t.Variable):
                return known | {node.target.name}
            self.expression(node.target, known)
        else:
            for part in _operands(node):
                self.expression(part, known)
        if isinstance(node, t.If):
            then = self.statement(node.then, known)
            return then & self.statement(node.other, known) if node.other else known
        if isinstance(node, t.Count | t.Each | t.While):
            self.statement(node.body, known)
        return known

    def expression(self, node: t.Expression, known: _Names) -> None:
        for part in nodes(node):
            if isinstance(part, t.Variable) and part.name not in known:
                self.early.setdefault(part.name, part.place)


def _operands(node: t.Node) -> Iterator[t.Expression]:
    """The expressions of a marker or a statement, without those of the statements in it."""
    for each in fields(node):
        value = getattr(node, each.name)
        found = value if isinstance(value, tuple) else (value,)
        yield from (part for part in found if isinstance(part, t.Expression))
