"""Statements as closures over an instance's variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidegate.engine.detect.scripts.context import Context, Variables
from tidegate.engine.detect.scripts.expressions import (
    Expressions,
    Value,
    array_of,
    check_index,
    field_number,
)
from tidegate.engine.detect.scripts.numbers import FailedError
from tidegate.engine.detect.scripts.value_types import copied, grows, holds_arrays, size
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.types import Type

EMITTED_AS_ONE = 128
"""Bytes of an emission that count as a statement: else a loop of large ones fills the memory."""
Run = Callable[..., None]
"""Of the variables; the block of a place is also given the value of the event, which it leaves."""
Store = Callable[[Variables, Any], None]
_Change = Callable[[Any, Variables, Any], Any]
"""Of what stands in a place, the variables, and the value to put into it or a part of it: what
stands there then."""


class Statements:
    """Compiles statements. `outputs`: the outputs, by name, with their types."""

    def __init__(self, expressions: Expressions, outputs: Mapping[str, Type]) -> None:
        self._expressions = expressions
        self._context: Context = expressions.context
        self._outputs = outputs

    def block(self, node: tree.Statement) -> Run:
        """A block, or a statement as a block of one. Each statement is counted, a block too."""
        whole = isinstance(node, tree.Block)
        inner = node.statements if isinstance(node, tree.Block) else (node,)
        runs = [self._run(statement) for statement in inner]
        context = self._context
        count = whole + sum(not isinstance(each, tree.Block) for each in inner)
        if len(runs) == 1:
            (only,) = runs

            def single(variables: Variables, _: Any = None) -> None:
                context.count(count)
                only(variables)

            return single

        def several(variables: Variables, _: Any = None) -> None:
            context.count(count)
            for run in runs:
                run(variables)

        return several

    def _run(self, node: tree.Statement) -> Run:
        match node:
            case tree.Block():
                return self.block(node)
            case tree.Assign(target, value):
                return self._assign(target, self._expressions.owned(value, target.type))
            case tree.Emit():
                return self._emit(node)
            case tree.If(condition, then, other):
                return self._if(condition, then, other)
            case tree.Count() | tree.Each():
                return self._for(node)
            case tree.While():
                return self._while(node)
        raise TypeError(node)

    def _assign(self, target: tree.Expression, value: Value) -> Run:
        if isinstance(target, tree.Variable) and not grows(target.type):
            slot = self._expressions.slot(target)

            def assign(variables: Variables) -> None:
                variables[slot] = value(variables)

            return assign
        store = self.store(target)
        return lambda variables: store(variables, value(variables))

    def store(self, target: tree.Expression) -> Store:
        """A function that puts a value, which is its own, into a variable or a part of one. It is
        measured where values of its type grow."""
        put, context, place = self._put(target), self._context, target.place
        growing = grows(target.type)

        def store(variables: Variables, value: Any) -> None:
            try:
                put(variables, value)
            except FailedError as error:
                context.fail(error.kind, str(error), place)
            except TypeError:
                context.fail("null", "null has no parts", place)
            if growing:
                context.stored(value, variables)

        return store

    def _put(self, target: tree.Expression) -> Store:
        """A function that puts a value where the target is: its indices are asked for once, from
        left to right."""
        change: _Change = _whole
        while not isinstance(target, tree.Variable):
            if isinstance(target, tree.Index):
                change, target = self._element(target, change), target.array
            elif isinstance(target, tree.Field):
                change, target = _member(target, change), target.structure
            else:
                raise TypeError(target)
        slot = self._expressions.slot(target)

        def put(variables: Variables, value: Any) -> None:
            variables[slot] = change(variables[slot], variables, value)

        return put

    def _element(self, target: tree.Index, inner: _Change) -> _Change:
        index, undo = self._expressions.value(target.index), self._context.undo

        def change(array: Any, variables: Variables, value: Any) -> Any:
            at = index(variables)
            check_index(array, at)
            before = array[at]
            after = inner(before, variables, value)
            undo.append((array, at, before))
            array[at] = after
            return array

        return change

    def _emit(self, node: tree.Emit) -> Run:
        found, output = self._context.found, [*self._outputs].index(node.output)
        if node.value is None:
            return lambda _: found.append((output, ()))
        kind = self._outputs[node.output]
        value = self._expressions.owned(node.value, kind)
        if not grows(kind):
            return lambda variables: found.append((output, value(variables)))
        context = self._context

        def emit(variables: Variables) -> None:
            emitted = value(variables)
            context.count(size(emitted) // EMITTED_AS_ONE)
            found.append((output, emitted))

        return emit

    def _if(
        self, condition: tree.Expression, then: tree.Statement, other: tree.Statement | None
    ) -> Run:
        holds, run = self._expressions.operand(condition), self.block(then)
        otherwise = self.block(other) if other is not None else None

        def chosen(variables: Variables) -> None:
            if holds(variables):
                run(variables)
            elif otherwise is not None:
                otherwise(variables)

        return chosen

    def _for(self, node: tree.Count | tree.Each) -> Run:
        operand = self._expressions.operand
        if isinstance(node, tree.Count):
            kind, low, high = node.low.type, operand(node.low), operand(node.high)

            def elements(variables: Variables) -> Any:
                return range(low(variables), high(variables) + 1)

        else:
            kind, array = array_of(node.array).of, operand(node.array)
            own: Callable[[Any], Any] = copied if holds_arrays(kind) else list.copy

            def elements(variables: Variables) -> Any:
                return own(array(variables))

        slot, body = self._expressions.slot(tree.Local(kind, node.name)), self.block(node.body)

        def loop(variables: Variables) -> None:
            found = elements(variables)
            before = variables[slot]
            for element in found:
                variables[slot] = element
                body(variables)
            variables[slot] = before

        return loop

    def _while(self, node: tree.While) -> Run:
        holds, body = self._expressions.operand(node.condition), self.block(node.body)

        def loop(variables: Variables) -> None:
            while holds(variables):
                body(variables)

        return loop


def _whole(_: Any, __: Variables, value: Any) -> Any:
    return value


def _member(target: tree.Field, inner: _Change) -> _Change:
    number = field_number(target)

    def change(structure: Any, variables: Variables, value: Any) -> Any:
        found = [*structure]
        found[number] = inner(found[number], variables, value)
        return tuple(found)

    return change
