"""The regular expression of a script: from the parse tree to typed nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partialmethod

from lark import Token, Tree

from tidegate.rules.eventscript import tree as t
from tidegate.rules.eventscript.declarations import Declarations
from tidegate.rules.eventscript.expressions import UNITS
from tidegate.rules.eventscript.functions import storable
from tidegate.rules.eventscript.inference import event_type, stored_in
from tidegate.rules.eventscript.parser import Mistakes, Parsed, Silent
from tidegate.rules.eventscript.statements import Statements
from tidegate.rules.eventscript.types import Basic

_COMPONENTS = ("year", "month", "day", "hour", "minute", "second")
_RANGES = ((1, 9999), (1, 12), (1, 31), (0, 23), (0, 59), (0, 59))
COUNT_MAX = 10**9
_CLOSED = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*\]", re.DOTALL)


@dataclass
class Regexes:
    """Reads regular expressions. A mistake is added to `mistakes`, and a stand-in takes its
    place in the tree."""

    found: Declarations
    statements: Statements

    @property
    def mistakes(self) -> Mistakes:
        return self.statements.mistakes

    def read(self, tree: Parsed) -> t.Regex:
        """The node of a regular expression, by the method of its rule in the grammar."""
        node: t.Regex = getattr(self, f"_{tree.data}")(tree)
        return replace(node, place=self.mistakes.place(tree))

    def _below(self, tree: Parsed) -> tuple[t.Regex, ...]:
        return tuple(self.read(each) for each in tree.children if isinstance(each, Tree))

    def _block(self, tree: Parsed) -> t.Regex:
        return t.Act(self.statements.block(tree))

    def _sequence(self, tree: Parsed) -> t.Regex:
        return t.Sequence(self._below(tree))

    def _either(self, tree: Parsed) -> t.Regex:
        return t.Either(self._below(tree))

    def _both(self, tree: Parsed) -> t.Regex:
        left, right = self._below(tree)
        self._marked(left, tree.children[0], "an operand of &")
        self._marked(right, tree.children[1], "an operand of &")
        return t.Both(left, right)

    def _without(self, tree: Parsed) -> t.Regex:
        left, right = self._below(tree)
        self._marked(left, tree.children[0], "what stands before -")
        return t.Without(left, right)

    def _marked(self, node: t.Regex, of: Parsed, what: str) -> None:
        if not any(isinstance(each, t.Named | t.Elapse | t.Arrive) for each in walk(node)):
            hint = "a block runs behind an event: A() { .. }"
            self.mistakes.add("no-event", f"{what} waits for no event", of, hint)

    def _lead(self, tree: Parsed) -> t.Regex:
        (right,) = self._below(tree)
        return t.Without(t.Named(None, place=self.mistakes.place(tree)), right)

    def _repeat(self, tree: Parsed, low: int, high: int | None) -> t.Regex:
        (item,) = self._below(tree)
        return t.Repeat(item, low, high)

    _star = partialmethod(_repeat, low=0, high=None)
    _plus = partialmethod(_repeat, low=1, high=None)
    _optional = partialmethod(_repeat, low=0, high=1)

    def _counted(self, tree: Parsed) -> t.Regex:
        count = tree.children[1]
        first, comma, last = (part.strip() for part in count.strip("{}").partition(","))
        low, high = _count(first), _count(last) if last else (None if comma else _count(first))
        if max(low, high or 0) > COUNT_MAX:
            self.mistakes.add("count", f"a count is at most {COUNT_MAX}", count)
            low, high = 1, 1
        elif high is not None and low > high:
            hint = f"write {{{high},{low}}}"
            self.mistakes.add("count", f"from {low} up to {high} is nothing", count, hint)
            low, high = 1, 1
        return self._repeat(tree, low, high)

    def _marker(self, tree: Parsed) -> t.Regex:
        event = tree.children[0]
        name = None if tree.data == "any" else str(event)
        if name is not None and name not in self.found.events and self.found.whole:
            message, hint = self.found.unknown_event(name)
            self.mistakes.add("unknown-event", message, event, hint)
        return t.Named(name, self._stored(tree))

    _any = _marker

    def _stored(self, tree: Parsed) -> str | None:
        """The variable of a marker, whose type takes what the marker gives."""
        variable = stored_in(tree)
        if variable is None:
            return None
        kind = event_type(tree, self.found)
        known = self.statements.names.variables.get(str(variable))
        taken = kind is None or known in (None, Basic.OBJECT)
        if not taken and (known and kind and storable(known, kind)) != known:
            message = f"{str(variable)!r} is {known}, and cannot take {kind}"
            hint = "a variable is of one type over the script; use another"
            self.mistakes.add("type", message, variable, hint)
        return str(variable)

    def _elapse(self, tree: Parsed) -> t.Regex:
        amount, unit = self._amount(tree)
        node = self.statements.expressions.read(amount)
        numbers = {Basic.LONG, Basic.DOUBLE}
        if node is not None and unit is None and node.type in numbers:
            said = node.value if isinstance(node, t.Literal) else "(n)"
            hint = f"write {tree.data}[{said} seconds], or the unit that is meant"
            self.mistakes.add("type", "a number without a unit is no length of time", amount, hint)
        elif node is not None and node.type not in (numbers if unit else {Basic.DURATION}):
            expected = "a number" if unit else "a duration"
            self.mistakes.add("type", f"expected {expected}, found {node.type}", amount)
        elif isinstance(node, t.Literal) and node.value <= 0:
            self.mistakes.add("value", "the length of time must be above 0", amount)
        micros = 1 if unit is None else UNITS[str(unit).removesuffix("s")]
        kind = t.Within if tree.data == "within" else t.Elapse
        return kind(node or t.Literal(Basic.LONG, 1), micros, self._stored(tree))

    _within = _elapse

    def _amount(self, tree: Parsed) -> tuple[Parsed, Token | None]:
        """The amount in `elapse[..]`, and its unit. The grammar reads `n + 1 seconds` as
        `n + (1 seconds)`. If that is a length of time, the unit is None; else the unit is taken
        for that of the whole: `(n + 1) seconds`."""
        amount, *more = tree.children
        if more and _is(more[0], "UNIT"):
            return amount, more[0]
        last = amount
        while last.data in ("binary", "unary"):
            last = last.children[-1]
        if last.data != "duration" or not _CLOSED.match(self.mistakes.text, last.meta.end_pos):
            return amount, None
        number, unit = last.children
        bare = Tree("long" if number.type == "INT" else "double", [number], last.meta)
        whole = _replaced(amount, last, bare)
        silent = replace(self.statements.expressions, mistakes=Silent())
        taken, read = silent.read(amount), silent.read(whole)
        if read is None and taken is not None and taken.type == Basic.DURATION:
            return amount, None
        return whole, unit

    def _arrive(self, tree: Parsed) -> t.Regex:
        when, stored = tree.children[0], self._stored(tree)
        if when.data == "instant":
            instant = self.statements.expressions.read(when.children[0], Basic.TIME)
            return t.Arrive(instant, (), stored)
        parts = list(when.children)
        hourly = any(_is(each, "HOURLY") for each in parts)
        parts = [each for each in parts if not _is(each, "HOURLY") and not _is(each, "MINUS")]
        date: list[t.Expression | None] = [None] * 3
        if len(parts) > 3:
            date = [self._component(parts[n], n) for n in range(3)]
            parts = parts[3:]
        if hourly:
            hour, second = self._component(parts[0], 3), self._component(parts[1], 5)
            clock = [hour, None, second]
        else:
            clock = [self._component(each, 3 + n) for n, each in enumerate(parts)]
            if len(clock) < 3:
                clock.append(t.Literal(Basic.LONG, 0, place=self.mistakes.place(tree)))
        return t.Arrive(None, (*date, *clock), stored)

    def _component(self, part: Parsed, number: int) -> t.Expression | None:
        """One part of a date or a time of day; None is `.`, any."""
        if isinstance(part, Tree):
            return self.statements.expressions.read(part, Basic.LONG)
        if part.type == "DOT":
            return None
        low, high = _RANGES[number]
        value = _count(part)
        if not low <= value <= high:
            message = f"{_COMPONENTS[number]} {part} is not from {low} to {high}"
            self.mistakes.add("value", message, part)
        return t.Literal(Basic.LONG, value, place=self.mistakes.place(part))


def _replaced(tree: Parsed, old: Parsed, new: Parsed) -> Parsed:
    """A tree with `new` in place of `old`, which is its last part, or the last of that, and so
    on."""
    if tree is old:
        return new
    *before, last = tree.children
    return Tree(tree.data, [*before, _replaced(last, old, new)], tree.meta)


def _is(part: Parsed, kind: str) -> bool:
    return isinstance(part, Token) and part.type == kind


def _count(digits: str) -> int:
    """A whole number. Of a longer one 12 digits are enough to see that it is too large."""
    return int((digits.lstrip("0") or "0")[:12])


def below(node: t.Regex) -> tuple[t.Regex, ...]:
    """The parts of a regular expression, in the order of the text; `R{0}` has none."""
    if isinstance(node, t.Sequence | t.Either):
        return node.items
    if isinstance(node, t.Both | t.Without):
        return node.left, node.right
    return (node.item,) if isinstance(node, t.Repeat) and node.high != 0 else ()


def walk(node: t.Regex) -> list[t.Regex]:
    """A regular expression and all in it, in the order of the text."""
    found, stack = [], [node]
    while stack:
        last = stack.pop()
        found.append(last)
        stack.extend(reversed(below(last)))
    return found
