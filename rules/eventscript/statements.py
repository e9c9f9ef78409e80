"""Blocks of a script: from the parse tree to typed statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lark import Token, Tree

from tidegate.rules.errors import did_you_mean
from tidegate.rules.eventscript import tree as t
from tidegate.rules.eventscript.expressions import Expressions
from tidegate.rules.eventscript.names import BlockNames
from tidegate.rules.eventscript.parser import Mistakes, Parsed
from tidegate.rules.eventscript.types import NOTHING, Array, Basic, Type


@dataclass
class Statements:
    """Reads statements. A wrong one is left out, and its mistakes are in `mistakes`."""

    expressions: Expressions
    names: BlockNames
    outputs: Mapping[str, Type]
    untyped: set[str] = field(default_factory=set)  # variables that are refused already

    @property
    def mistakes(self) -> Mistakes:
        return self.expressions.mistakes

    def block(self, tree: Parsed) -> t.Block:
        read = [self.read(each) for each in tree.children if isinstance(each, Tree)]
        known = tuple(each for each in read if each is not None)
        return t.Block(known, place=self.mistakes.place(tree))

    def read(self, tree: Parsed) -> t.Statement | None:
        """The node of a statement."""
        if tree.data == "block":
            return self.block(tree)
        node: t.Statement | None = getattr(self, f"_{tree.data.rstrip('_')}")(tree)
        return node and replace(node, place=self.mistakes.place(tree))

    def _assign(self, tree: Parsed) -> t.Statement | None:
        left, right = tree.children
        base = left
        while base.data in ("index", "field"):
            base = base.children[0]
        name = base.children[0] if base.data == "name" else None
        if not isinstance(name, Token):
            hint = "write variable = value, variable[i] = value or variable.field = value"
            self.mistakes.add("type", "this cannot be assigned", left, hint)
            return None
        if name in self.names.locals:
            hint = "use a variable of another name"
            message = f"{str(name)!r} is of the loop and cannot be assigned"
            self.mistakes.add("type", message, name, hint)
            return None
        if name not in self.names.variables and base is not left:
            hint = f"give it a value first, as in {name} = new long[10];"
            message = f"nothing assigns the variable {str(name)!r} as a whole"
            self.mistakes.add("unknown-variable", message, name, hint)
            return None
        if base is left and self.names.variables.get(str(name)) is None:
            self._untyped(name, right)
            return None
        target = self.expressions.read(left)
        value = self.expressions.read(right, target.type if target else None)
        return t.Assign(target, value) if target and value else None

    def _untyped(self, name: Token, value: Parsed) -> None:
        """Refuse a variable without a type, unless its value is wrong itself."""
        before = len(self.mistakes.problems)
        if value.data != "null":
            self.expressions.read(value)
        if len(self.mistakes.problems) == before and name not in self.untyped:
            message = f"nothing says of what type {str(name)!r} is"
            hint = "every value it is given is null, or is made of itself"
            self.mistakes.add("type", message, name, hint)
            self.untyped.add(str(name))

    def _emit(self, tree: Parsed) -> t.Statement | None:
        name, *values = tree.children
        value = values[0] if values else None
        kind = self.outputs.get(str(name))
        if kind is None:
            hint = did_you_mean(name, self.outputs) or "declare it: out type NAME"
            self.mistakes.add("unknown-output", f"unknown output {str(name)!r}", name, hint)
        if isinstance(value, Tree):
            node = self.expressions.read(value, kind)
            return t.Emit(str(name), node) if kind is not None and node is not None else None
        if kind is not None and kind != NOTHING:
            hint = f"write !> {name}(value);"
            self.mistakes.add("type", f"{str(name)!r} carries {kind}", tree, hint)
            return None
        return t.Emit(str(name), None)

    def _if(self, tree: Parsed) -> t.Statement | None:
        condition = self.expressions.read(tree.children[0], Basic.BOOLEAN)
        then, *other = (self.read(each) for each in tree.children[1:])
        return t.If(condition, then, other[0] if other else None) if condition and then else None

    def _while(self, tree: Parsed) -> t.Statement | None:
        condition = self.expressions.read(tree.children[0], Basic.BOOLEAN)
        body = self.read(tree.children[1])
        return t.While(condition, body) if condition and body else None

    def _count(self, tree: Parsed) -> t.Statement | None:
        low, high = (self.expressions.read(each, Basic.LONG) for each in tree.children[1:3])
        name, body = self._loop(tree, Basic.LONG)
        return t.Count(name, low, high, body) if low and high and body else None

    def _each(self, tree: Parsed) -> t.Statement | None:
        array = self.expressions.read(tree.children[1])
        if array is not None and not isinstance(array.type, Array):
            hint = "for (i: low, high) counts; for (x: array) takes the elements"
            message = f"expected an array, found {array.type}"
            self.mistakes.add("type", message, tree.children[1], hint)
            array = None
        of = array.type.of if array is not None and isinstance(array.type, Array) else None
        name, body = self._loop(tree, of)
        return t.Each(name, array, body) if array and body else None

    def _loop(self, tree: Parsed, kind: Type | None) -> tuple[str, t.Statement | None]:
        """The name of a loop, which is of type `kind`, and its body."""
        name, around = str(tree.children[0]), self.names.locals
        self.names.locals = {**around, name: kind}
        read = self.read(tree.children[-1])
        self.names.locals = around
        return name, read
