"""Statements as instructions of LLVM's."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidegate.engine.detect.scripts.compiled.expressions import Expressions, words_of
from tidegate.engine.detect.scripts.compiled.function import Function, integer
from tidegate.engine.detect.scripts.compiled.layout import Layout, UncompiledError, Word
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.tree import nodes
from tidegate.rules.eventscript.types import Array, Type


class Statements(Expressions):
    """Adds statements to a function. `outputs`: by name, with their types. Fails after `steps_max`
    statements; None: there are never so many. Raises `UncompiledError`."""

    def __init__(
        self,
        function: Function,
        layout: Layout,
        outputs: Mapping[str, Type],
        steps_max: int | None,
    ) -> None:
        super().__init__(function, layout)
        self._outputs, self._steps_max = outputs, steps_max
        self._steps = function.variable(integer(0))

    def block(self, node: tree.Statement) -> None:
        """A block, or a statement as a block of one."""
        whole = isinstance(node, tree.Block)
        inner = node.statements if isinstance(node, tree.Block) else (node,)
        if self._steps_max is not None:
            count = whole + sum(not isinstance(each, tree.Block) for each in inner)
            steps = self.function.added(self._steps, count)
            self.function.fail_if(
                self.function.b.icmp_signed(">", steps, integer(self._steps_max))
            )
        for statement in inner:
            self._statement(statement)

    def _statement(self, node: tree.Statement) -> None:
        match node:
            case tree.Block():
                self.block(node)
            case tree.Assign(target, value):
                self._assign(target, value)
            case tree.Emit():
                self._emit(node)
            case tree.If():
                self._if(node)
            case tree.Count(name, low, high, body):
                self._rounds(name, self.word(low), self.word(high), lambda index: index, body)
            case tree.Each():
                self._each(node)
            case tree.While(condition, body):
                with self.function.loop(lambda: self.holds(self.word(condition))):
                    self.block(body)
            case _:
                raise UncompiledError(type(node).__name__)

    def _assign(self, target: tree.Expression, value: tree.Expression) -> None:
        if isinstance(target.type, Array):
            self._assign_array(target, value)
        elif isinstance(target, tree.Index):
            given, items = self.word(value), self.items(target.array)
            self.function.put(items, self.word(target.index), given)
        else:
            self.function.assign(self._target(target), self.value(value))

    def _target(self, node: tree.Expression) -> Sequence[Word]:
        """The words of a variable, or of a field of one."""
        if isinstance(node, tree.Field):
            return self._target(node.structure)[words_of(node)]
        if isinstance(node, tree.Variable):
            return self.layout.variables[node.name]
        raise UncompiledError(type(node).__name__)

    def _assign_array(self, target: tree.Expression, value: tree.Expression) -> None:
        function, items = self.function, self.items(target)
        if isinstance(value, tree.New) and isinstance(value.count, tree.Literal):
            function.fill(items, integer(value.count.value), lambda _: integer(0))
        elif isinstance(value, tree.Variable):
            of = self.items(value)
            function.fill(items, function.length(of), lambda index: function.element(of, index))
        else:
            raise UncompiledError("an array of any length")

    def _emit(self, node: tree.Emit) -> None:
        output, value = [*self._outputs].index(node.output), node.value
        if value is None:
            self.function.emit(output)
            return
        if value.type != self._outputs[node.output]:
            raise UncompiledError(f"{value.type} as an output")
        self.function.emit(output, self.layout.outputs[output], self.value(value))

    def _if(self, node: tree.If) -> None:
        b, test = self.function.b, self.holds(self.word(node.condition))
        if node.other is None:
            with b.if_then(test):
                self.block(node.then)
            return
        with b.if_else(test) as branches:
            for branch, part in zip(branches, (node.then, node.other), strict=True):
                with branch:
                    self.block(part)

    def _each(self, node: tree.Each) -> None:
        function, items = self.function, self.items(node.array)
        changed = {_root(n.target) for n in nodes(node.body) if isinstance(n, tree.Assign)}
        if _root(node.array) in changed:
            raise UncompiledError("a loop that changes its array")
        last = function.b.sub(function.length(items), integer(1))
        self._rounds(
            node.name, integer(0), last, lambda index: function.element(items, index), node.body
        )

    def _rounds(
        self, name: str, low: Any, high: Any, of: Callable[[Any], Any], body: tree.Statement
    ) -> None:
        """A body for each index from low up to high; its name is a value `of` the index."""
        b, outer = self.function.b, self.locals
        index, more = (self.function.variable(integer(0)) for _ in range(2))
        b.store(low, index)
        b.store(b.zext(b.icmp_signed("<=", low, high), low.type), more)
        with self.function.loop(lambda: self.holds(b.load(more))):
            at = b.load(index)
            self.locals = {**outer, name: of(at)}
            self.block(body)
            b.store(b.zext(b.icmp_signed("<", at, high), low.type), more)
            self.function.added(index, 1)
        self.locals = outer


def _root(node: tree.Expression) -> str | None:
    """The variable that an expression is, or is a part of."""
    while isinstance(node, tree.Index | tree.Field):
        node = node.array if isinstance(node, tree.Index) else node.structure
    return node.name if isinstance(node, tree.Variable) else None
