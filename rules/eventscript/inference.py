"""Type inference: the one type of every variable of a script.

Each marker and each assignment gives a type. The type of the variable is their join: `x = 1;
x = 2.5;` makes x a double (`functions.join`). If two types do not join, the first in the text
stays, markers before assignments, and the other is refused when it is read. A type that depends on
another variable waits for that one. A variable that depends on itself alone, as in `n = n + 1`,
gets the type of the other operand. Assignments to an element or a field give no type.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lark import Token, Tree

from tidegate.rules.eventscript.declarations import Declarations
from tidegate.rules.eventscript.expressions import Expressions
from tidegate.rules.eventscript.functions import join, storable
from tidegate.rules.eventscript.names import BlockNames
from tidegate.rules.eventscript.parser import Parsed, Silent
from tidegate.rules.eventscript.types import Array, Basic, Type

_ANY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_Slot = str | int  # a variable by its name, the name of a `for` by the number of the loop
_Scope = Mapping[str, int]
_Join = Callable[[Type, Type], Type | None]


def infer(regex: Parsed, found: Declarations) -> dict[str, Type | None]:
    """The type of every variable that is assigned; None if nothing gives one."""
    inference = _Inference(found)
    inference.collect(regex, {})
    inference.settle(guessing=False)
    inference.settle(guessing=True)
    return inference.variables


def event_type(tree: Parsed, found: Declarations) -> Type | None:
    """The type of the events that a marker takes; None where it names no event."""
    if tree.data in ("elapse", "within", "arrive"):
        return Basic.TIME
    if tree.data == "marker":
        read = found.events.get(str(tree.children[0]))
        return None if read is None else read.type
    kinds = [found.inputs[each.name].type for each in found.events.values()]
    together: Type | None = kinds[0] if kinds else Basic.OBJECT
    for kind in kinds:
        together = together and storable(together, kind)
    return together or Basic.OBJECT


def stored_in(tree: Parsed) -> Token | None:
    """The variable in which a marker stores the value, or the instant, of its event."""
    if tree.data == "any":
        token = tree.children[0]
        name = _ANY_NAME.search(token)
        if name is None:
            return None
        begin = (token.start_pos or 0) + name.start()
        return Token("NAME", name[0], start_pos=begin, end_pos=begin + len(name[0]))
    last = tree.children[-1]
    named = isinstance(last, Token) and last.type == "NAME" and len(tree.children) > 1
    return last if named and isinstance(last, Token) else None


@dataclass(frozen=True)
class _Source:
    """An assignment, or a `for` over an array: it puts the value of `value` into `slot`."""

    slot: _Slot
    value: Parsed
    scope: _Scope


class _Inference:
    def __init__(self, found: Declarations) -> None:
        self.found = found
        self.variables: dict[str, Type | None] = {}
        self.loops: list[Type | None] = []
        self.sources: list[_Source] = []

    def collect(self, tree: Parsed, scope: _Scope) -> None:
        """Collect the sources of a regular expression or a statement. The type of a marker is
        known, and taken in at once."""
        if tree.data in ("marker", "any", "elapse", "within", "arrive"):
            name, kind = stored_in(tree), event_type(tree, self.found)
            if name is not None:
                self.variables.setdefault(str(name), None)
            if name is not None and kind is not None:
                self.say(str(name), kind, storable)
            return
        if tree.data == "assign":
            target, value = tree.children
            name = target.children[0] if target.data == "name" else None
            if isinstance(name, Token) and name not in scope:
                self.variables.setdefault(str(name), None)
                self.sources.append(_Source(str(name), value, scope))
        elif tree.data in ("count", "each"):
            name, first, *_ = tree.children
            number = len(self.loops)
            self.loops.append(Basic.LONG if tree.data == "count" else None)
            if tree.data == "each":
                self.sources.append(_Source(number, first, scope))
            scope = {**scope, str(name): number}
        for child in tree.children:
            if isinstance(child, Tree):
                self.collect(child, scope)

    def say(self, slot: _Slot, kind: Type, joined: _Join = join) -> bool:
        """Take in that a slot gets values of this type; whether that changes the slot's type."""
        known = self.variables[slot] if isinstance(slot, str) else self.loops[slot]
        both = kind if known is None else joined(known, kind)
        if both is None or both == known:
            return False
        if isinstance(slot, str):
            self.variables[slot] = both
        else:
            self.loops[slot] = both
        return True

    def settle(self, guessing: bool) -> None:
        """Take in the sources until none changes a type."""
        readers: dict[_Slot, list[_Source]] = {}
        for source in self.sources:
            for slot in _slots(source):
                readers.setdefault(slot, []).append(source)
        waiting = deque(self.sources)
        queued = set(map(id, waiting))
        while waiting:
            source = waiting.popleft()
            queued.discard(id(source))
            kind = self._type(source, guessing)
            if kind is None or not self.say(source.slot, kind):
                continue
            for reader in readers.get(source.slot, ()):
                if id(reader) not in queued:
                    queued.add(id(reader))
                    waiting.append(reader)

    def _type(self, source: _Source, guessing: bool) -> Type | None:
        loops = {name: self.loops[number] for name, number in source.scope.items()}
        names = BlockNames(self.variables, loops, self.found.key)
        read = Expressions(Silent(), names, self.found.types, self.found.functions, guessing)
        node = read.read(source.value)
        if node is None or isinstance(source.slot, str):
            return None if node is None else node.type
        return node.type.of if isinstance(node.type, Array) else None


def _slots(source: _Source) -> set[_Slot]:
    """The slots that the value of a source reads."""
    names = (str(each.children[0]) for each in source.value.find_data("name"))
    return {source.scope.get(name, name) for name in names}
