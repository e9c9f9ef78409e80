"""Expressions as values of LLVM's."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from tidegate.engine.detect.scripts.compiled.arithmetic import DOUBLES, LONGS
from tidegate.engine.detect.scripts.compiled.function import Function, Value, integer, real
from tidegate.engine.detect.scripts.compiled.layout import Items, Layout, UncompiledError, kinds_of
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.types import Array, Basic, Structure


class Expressions:
    """Adds expressions to a function. `locals`: the values of the names of loops, in which a script
    is at the moment. Raises `UncompiledError`."""

    def __init__(self, function: Function, layout: Layout) -> None:
        self.function, self.layout = function, layout
        self.locals: dict[str, Any] = {}

    def value(self, node: tree.Expression) -> Value:
        match node:
            case tree.Literal():
                return (self._literal(node),)
            case tree.Variable(name=name):
                if isinstance(node.type, Array):
                    raise UncompiledError(str(node.type))
                return self.function.words(self.layout.variables[name])
            case tree.Local(name=name):
                return (self.locals[name],)
            case tree.Key(number=number):
                return (self.function.key(self.layout.keys[number]),)
            case tree.Raw():
                return tuple(map(self.function.event, self.layout.raw))
            case tree.Index(array=array, index=index):
                return (self.function.element(self.items(array), self.word(index)),)
            case tree.Field(structure=structure):
                return self.value(structure)[words_of(node)]
            case tree.Unary(op="!", operand=operand):
                return (self.function.b.sub(integer(1), self.word(operand)),)
            case tree.Unary(operand=operand):
                return (self._calculated("-x", operand),)
            case tree.Binary():
                return (self._binary(node),)
            case tree.Choice(condition=condition, then=then, other=other):
                if not {then.type, other.type} <= {node.type}:
                    raise UncompiledError("a choice of objects")
                return self._either(
                    self.word(condition), lambda: self.value(then), lambda: self.value(other)
                )
            case tree.Call():
                return (self._call(node),)
            case tree.Build(fields=fields):
                return tuple([word for _, part in fields for word in self.value(part)])
        raise UncompiledError(type(node).__name__)

    def word(self, node: tree.Expression) -> Any:
        """A value of one word."""
        (found,) = self.value(node)
        return found

    def holds(self, word: Any) -> Any:
        """A boolean as a condition."""
        return self.function.b.icmp_signed("!=", word, integer(0))

    def items(self, node: tree.Expression) -> Items:
        """The array that an expression is."""
        if isinstance(node, tree.Variable):
            return self.layout.arrays[node.name]
        raise UncompiledError("an array in a value")

    def _literal(self, node: tree.Literal) -> Any:
        value = node.value
        if value is None or not isinstance(node.type, Basic):
            raise UncompiledError("null")
        if node.type == Basic.DOUBLE:
            return real(value)
        return integer(self.layout.texts.index(value) if node.type == Basic.STRING else value)

    def _either(self, test: Any, then: Callable[[], Value], other: Callable[[], Value]) -> Value:
        """One of two values, of which the other is not calculated."""
        b, ends = self.function.b, []
        with b.if_else(self.holds(test)) as branches:
            for branch, value in zip(branches, (then, other), strict=True):
                with branch:
                    ends.append((value(), b.block))
        found = tuple([b.phi(word.type) for word in ends[0][0]])
        for words, block in ends:
            for phi, word in zip(found, words, strict=True):
                phi.add_incoming(word, block)
        return found

    def _calculated(self, name: str, *operands: tree.Expression) -> Any:
        """An operation on values of one word; one of two operands goes on over more of them."""
        calls = DOUBLES if operands[0].type == Basic.DOUBLE else LONGS
        if name not in calls:
            raise UncompiledError(name)
        calculate = partial(calls[name], self.function)
        first, *more = map(self.word, operands)
        return reduce(calculate, more, first) if more else calculate(first)

    def _binary(self, node: tree.Binary) -> Any:
        op, left, right = node.op, node.left, node.right
        if op in ("&&", "||"):
            ways = lambda: self.value(right), lambda: (integer(op == "||"),)
            (found,) = self._either(self.word(left), *(ways if op == "&&" else ways[::-1]))
            return found
        for kind in (left.type, right.type):
            if not isinstance(kind, Basic) or kind == Basic.OBJECT:
                raise UncompiledError(f"{op} of {kind}")
        if left.type == Basic.STRING and op not in ("==", "!="):
            raise UncompiledError(f"{op} of strings")
        return self._calculated(op, left, right)

    def _call(self, node: tree.Call) -> Any:
        name, given = node.function, node.arguments
        kinds = [each.type for each in given]
        if name == "now":
            return self.function.now
        if name == "isNull":
            self.value(given[0])
            return integer(False)
        if name == "length" and isinstance(kinds[0], Array):
            return self.function.length(self.items(given[0]))
        if not kinds or Basic.STRING in kinds or not all(isinstance(k, Basic) for k in kinds):
            raise UncompiledError(name)
        return self._calculated(name, *given)


def words_of(node: tree.Field) -> slice:
    """The words of a field in its structure."""
    first, outer = 0, node.structure.type
    if not isinstance(outer, Structure):
        raise UncompiledError(str(outer))
    for name, kind in outer.fields:
        count = len([*kinds_of(kind)])
        if name == node.name:
            return slice(first, first + count)
        first += count
    raise KeyError(node.name)
