"""Expressions as closures over an instance's variables.

Each tree is compiled once: `a[i] + 1` becomes a function of the variables that calls two others.
One that fails emits `$error` and gives its type's default.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from tidegate.engine.detect.scripts.builtins import built_in, of_python, to_object, to_python
from tidegate.engine.detect.scripts.context import Context, Variables
from tidegate.engine.detect.scripts.numbers import DOUBLES, LONGS, NULL, FailedError
from tidegate.engine.detect.scripts.value_types import copied, default, holds_arrays
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.types import Array, Basic, Structure, Type

Value = Callable[[Variables], Any]
CONVERSIONS = frozenset({"double", "long", "object"})  # of which null is null
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Expressions:
    """Compiles expressions. `slots` says where variables and the names of loops stand."""

    def __init__(self, context: Context, slots: Mapping[str, int]) -> None:
        self.context = context
        self._slots = slots

    def value(self, node: tree.Expression, wanted: Type | None = None) -> Value:
        """A function that gives the expression's value, as an object where that is `wanted`."""
        value = self._value(node)
        if wanted != Basic.OBJECT or node.type == Basic.OBJECT:
            return value
        return lambda v: to_object(value(v), node.type)

    def _value(self, node: tree.Expression) -> Value:
        match node:
            case tree.Literal(value=value):
                return lambda _: value
            case tree.Variable() | tree.Local():
                slot = self.slot(node)
                return lambda variables: variables[slot]
            case tree.Raw():
                context = self.context
                return lambda _: context.raw
            case tree.Key(number=number):
                context = self.context
                return lambda _: context.key[number]
            case tree.Index():
                return self._index(node)
            case tree.Field():
                return self._field(node)
            case tree.Unary(op=op):
                operand, minus = self.value(node.operand), LONGS["-"]
                if op == "!":
                    return self._guarded(node, lambda v: not _known(operand(v)))
                if node.type == Basic.DOUBLE:
                    return self._guarded(node, lambda v: -operand(v))
                return self._guarded(node, lambda v: minus(0, operand(v)))
            case tree.Binary():
                return self._binary(node)
            case tree.Choice():
                condition = self.value(node.condition)
                then, other = (self.value(part, node.type) for part in (node.then, node.other))
                return self._guarded(node, lambda v: (then if _known(condition(v)) else other)(v))
            case tree.Call():
                return self._call(node)
            case tree.Build(fields=fields):
                kinds = dict(structure_of(node).fields)
                parts = [self.owned(part, kinds[name]) for name, part in fields]
                return lambda v: tuple([part(v) for part in parts])
            case tree.New():
                return self._new(node)
        raise TypeError(node)

    def owned(self, node: tree.Expression, wanted: Type | None = None) -> Value:
        """As `value`, with arrays of its own: for what is stored or emitted."""
        value = self.value(node, wanted)
        if not holds_arrays(node.type) or isinstance(node, tree.New | tree.Build):
            return value
        return lambda v: copied(value(v))

    def operand(self, node: tree.Expression) -> Value:
        """As `value`, for a statement or a marker: null fails."""
        value = self.value(node)
        if isinstance(node, tree.Binary | tree.Unary | tree.New):
            return value  # never null
        return self._guarded(node, lambda v: _known(value(v)))

    def slot(self, node: tree.Variable | tree.Local) -> int:
        return self._slots[node.name if isinstance(node, tree.Variable) else " " + node.name]

    def _guarded(self, node: tree.Expression, value: Value) -> Value:
        """A value that may fail."""
        context, place, instead = self.context, node.place, default(node.type)
        fresh = holds_arrays(node.type)

        def guarded(variables: Variables) -> Any:
            try:
                return value(variables)
            except FailedError as error:
                context.fail(error.kind, str(error), place)
            except TypeError:
                context.fail("null", NULL, place)
            return copied(instead) if fresh else instead

        return guarded

    def _index(self, node: tree.Index) -> Value:
        array, index = self.value(node.array), self.value(node.index)

        def element(variables: Variables) -> Any:
            found, at = array(variables), index(variables)
            check_index(found, at)
            return found[at]

        return self._guarded(node, element)

    def _field(self, node: tree.Field) -> Value:
        structure, number = self.value(node.structure), field_number(node)
        return self._guarded(node, lambda v: structure(v)[number])

    def _binary(self, node: tree.Binary) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        kind, op = node.left.type, node.op
        if op == "&&":
            return self._guarded(node, lambda v: _known(left(v)) and _known(right(v)))
        if op == "||":
            return self._guarded(node, lambda v: _known(left(v)) or _known(right(v)))
        if op in _COMPARED:
            return self._compared(node, left, right)
        if kind == Basic.STRING:
            return self._joined(node, left, right)
        calculate = (DOUBLES if kind == Basic.DOUBLE else LONGS)[op]
        return self._guarded(node, lambda v: calculate(left(v), right(v)))

    def _compared(self, node: tree.Binary, left: Value, right: Value) -> Value:
        compare, kinds = _COMPARED[node.op], (node.left.type, node.right.type)
        if Basic.OBJECT in kinds:
            one, other = kinds
            return lambda v: compare(to_python(left(v), one), to_python(right(v), other))
        if node.op not in ("==", "!="):
            return self._guarded(node, lambda v: compare(left(v), right(v)))

        def compared(variables: Variables) -> bool:
            one, other = left(variables), right(variables)
            if one is None or other is None:
                raise FailedError("null", NULL)
            return compare(one, other)

        return self._guarded(node, compared)

    def _joined(self, node: tree.Binary, left: Value, right: Value) -> Value:
        context = self.context

        def joined(variables: Variables) -> Any:
            one, other = left(variables), right(variables)
            if one is None or other is None:
                raise FailedError("null", NULL)
            context.room(len(one) + len(other))
            return one + other

        return self._guarded(node, joined)

    def _call(self, node: tree.Call) -> Value:
        arguments = [self.value(each) for each in node.arguments]
        kinds = [each.type for each in node.arguments]
        context = self.context
        if node.function == "now":
            return lambda _: context.now
        if node.function == "isNull":
            (only,) = arguments
            return lambda v: only(v) is None
        if node.function in context.functions:
            function = context.functions[node.function]

            def called(variables: Variables) -> Any:
                given = [to_python(f(variables), k) for f, k in zip(arguments, kinds, strict=True)]
                try:
                    return of_python(function(*given), node.type)
                except Exception as error:
                    said = f"{node.function}: {type(error).__name__}: {error}"
                    raise FailedError("function", said) from None

            return self._guarded(node, called)
        function = built_in(node.function, kinds, node.type)

        def calculated(variables: Variables) -> Any:
            given = [argument(variables) for argument in arguments]
            if None in given:
                if node.function in CONVERSIONS:
                    return None
                raise FailedError("null", NULL)
            if node.function == "concat":
                context.room(sum(map(len, given)))
            return function(*given)

        return self._guarded(node, calculated)

    def _new(self, node: tree.New) -> Value:
        count, context = self.value(node.count), self.context
        kind = array_of(node).of
        element, shared = default(kind), not holds_arrays(kind)

        def new(variables: Variables) -> Any:
            wanted = count(variables)
            if wanted < 0:
                raise FailedError("index", f"an array of {wanted} elements")
            context.room(8 * wanted)
            return [element] * wanted if shared else [copied(element) for _ in range(wanted)]

        return self._guarded(node, new)


def check_index(array: list[Any] | None, index: int | None) -> None:
    """Raises `FailedError` where an array has no such element."""
    if array is None or index is None:
        raise FailedError("null", NULL)
    if not 0 <= index < len(array):
        raise FailedError("index", f"index {index} of an array of {len(array)}")


def field_number(node: tree.Field) -> int:
    """Where a field stands in its structure."""
    return [name for name, _ in structure_of(node.structure).fields].index(node.name)


def array_of(node: tree.Expression) -> Array:
    """The type of an array."""
    if isinstance(node.type, Array):
        return node.type
    raise TypeError(node)


def structure_of(node: tree.Expression) -> Structure:
    """The type of a structure."""
    if isinstance(node.type, Structure):
        return node.type
    raise TypeError(node)


def _known(value: Any) -> Any:
    if value is None:
        raise FailedError("null", NULL)
    return value
