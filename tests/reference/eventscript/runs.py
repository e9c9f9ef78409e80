"""Expressions and statements of a block, on the variables of one instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.reference.eventscript.values import (
    BUILT_IN,
    COMPARISONS,
    Fault,
    arithmetic,
    default,
    string,
    wrap,
)
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.types import Array, Basic

ERROR = "$error"
BYTES_MAX = 64 * 1024  # a longer string or array is within no instance's bytes
Functions = Mapping[str, Callable[..., Any]]


class RunawayError(Exception):
    """A transition that is over a limit."""


@dataclass
class Run:
    """What the blocks of one transition read and leave behind.

    `now` in microseconds; `cause` is the event's name; `emitted` holds (output, value) in order of
    emission, with `$error`s; `steps` counts statements."""

    variables: dict[str, Any]
    key: tuple[Any, ...]
    now: int
    event: str
    functions: Functions
    steps_max: int
    raw: Any = None
    emitted: list[tuple[str, Any]] = field(default_factory=list)
    steps: int = 0

    def fail(self, kind: str, node: tree.Node) -> None:
        self.emitted.append((ERROR, error(kind, self.event, self.now, node)))

    # Expressions ------------------------------------------------------------------------------

    def value(self, node: tree.Expression, local: Mapping[str, Any]) -> Any:
        """The value of an expression; where it fails its type's default, after a `$error`."""
        try:
            value = self._value(node, local)
        except Fault as fault:
            self.fail(fault.kind, node)
            return default(node.type)
        if isinstance(value, str) and len(value) > BYTES_MAX:
            raise RunawayError
        return value

    def given(self, node: tree.Expression, local: Mapping[str, Any]) -> Any:
        """The value of an operand, which may not be null."""
        value = self.value(node, local)
        if value is None:
            raise Fault("null")
        return value

    def _value(self, node: tree.Expression, local: Mapping[str, Any]) -> Any:
        match node:
            case tree.Literal():
                return node.value
            case tree.Variable():
                return self.variables[node.name]
            case tree.Local():
                return local[node.name]
            case tree.Raw():
                return self.raw
            case tree.Key():
                return self.key[node.number]
            case tree.Index():
                array = self.given(node.array, local)
                return array[self.position(self.given(node.index, local), array)]
            case tree.Field():
                return self.given(node.structure, local)[node.name]
            case tree.Unary():
                operand = self.given(node.operand, local)
                if node.op == "!":
                    return not operand
                return wrap(-operand) if isinstance(operand, int) else -operand
            case tree.Binary():
                return self._binary(node, local)
            case tree.Choice():
                chosen = node.then if self.given(node.condition, local) else node.other
                return self.value(chosen, local)
            case tree.Call():
                return self._call(node, local)
            case tree.Build():
                return {name: self.value(each, local) for name, each in node.fields}
            case tree.New():
                assert isinstance(node.type, Array)
                count = self.given(node.count, local)
                if count < 0:
                    raise Fault("index")
                if count * 8 > BYTES_MAX:
                    raise RunawayError
                return tuple(default(node.type.of) for _ in range(count))
        raise TypeError(node)

    def _binary(self, node: tree.Binary, local: Mapping[str, Any]) -> Any:
        if node.op in ("&&", "||"):
            left = self.given(node.left, local)
            return self.given(node.right, local) if left == (node.op == "&&") else left
        left, right = self.value(node.left, local), self.value(node.right, local)
        opaque = Basic.OBJECT in (node.left.type, node.right.type)
        if (left is None or right is None) and not opaque:
            raise Fault("null")
        if node.op in COMPARISONS:
            return COMPARISONS[node.op](left, right)
        return arithmetic(node.op, left, right)

    def _call(self, node: tree.Call, local: Mapping[str, Any]) -> Any:
        values = [self.value(each, local) for each in node.arguments]
        if node.function in self.functions:
            try:
                return self.functions[node.function](*values)
            except Exception:
                raise Fault("function") from None
        if node.function == "isNull":
            return values[0] is None
        if node.function == "now":
            return self.now
        if node.function in ("double", "long") and values[0] is None:
            return None
        if None in values:
            raise Fault("null")
        if node.function == "string":
            return string(values[0], node.arguments[0].type)
        return BUILT_IN[node.function](*values)

    def position(self, index: int, array: tuple[Any, ...]) -> int:
        if not 0 <= index < len(array):
            raise Fault("index")
        return index

    # Statements -------------------------------------------------------------------------------

    def run(self, node: tree.Statement, local: Mapping[str, Any]) -> None:
        """Runs one statement. Raises `RunawayError` past `steps_max`."""
        self.steps += 1
        if self.steps > self.steps_max:
            raise RunawayError
        match node:
            case tree.Block():
                for each in node.statements:
                    self.run(each, local)
            case tree.Assign():
                self.assign(node, local)
            case tree.Emit():
                value = {} if node.value is None else self.value(node.value, local)
                self.emitted.append((node.output, value))
            case tree.If():
                if self.condition(node.condition, local):
                    self.run(node.then, local)
                elif node.other is not None:
                    self.run(node.other, local)
            case tree.Count():
                low, high = self.operand(node.low, local), self.operand(node.high, local)
                number = low
                while number <= high:
                    self.run(node.body, {**local, node.name: number})
                    number += 1
            case tree.Each():
                for element in self.operand(node.array, local):
                    self.run(node.body, {**local, node.name: element})
            case tree.While():
                while self.condition(node.condition, local):
                    self.run(node.body, local)

    def operand(self, node: tree.Expression, local: Mapping[str, Any]) -> Any:
        """An operand of a statement or marker; of a null its type's default, after a `$error`."""
        try:
            return self.given(node, local)
        except Fault as fault:
            self.fail(fault.kind, node)
            return default(node.type)

    def condition(self, node: tree.Expression, local: Mapping[str, Any]) -> bool:
        return bool(self.operand(node, local))

    def assign(self, node: tree.Assign, local: Mapping[str, Any]) -> None:
        """The value first, then the target's indices from left to right. Where an index is outside
        its array, or what it is in is null, nothing is stored, after a `$error`."""
        value = self.value(node.value, local)
        try:
            name, whole = self.stored(node.target, lambda _: value, local)
        except Fault as fault:
            self.fail(fault.kind, node.target)
        else:
            self.variables[name] = whole

    def stored(
        self, target: tree.Expression, change: Callable[[Any], Any], local: Mapping[str, Any]
    ) -> tuple[str, Any]:
        """The variable that `target` stands in, and its whole value with the part changed."""
        match target:
            case tree.Variable():
                return target.name, change(self.variables[target.name])
            case tree.Index():

                def element(array: Any) -> Any:
                    index = self.given(target.index, local)
                    if array is None:
                        raise Fault("null")
                    index = self.position(index, array)
                    return (*array[:index], change(array[index]), *array[index + 1 :])

                return self.stored(target.array, element, local)
            case tree.Field():

                def member(structure: Any) -> Any:
                    if structure is None:
                        raise Fault("null")
                    return {**structure, target.name: change(structure[target.name])}

                return self.stored(target.structure, member, local)
        raise TypeError(target)


def error(kind: str, event: str, now: int, node: tree.Node | None = None) -> dict[str, Any]:
    """The value of a `$error`: `message` is left out, and `place` is empty without a node."""
    place = str(node.place) if node is not None else ""
    return {"kind": kind, "event": event, "place": place, "at": now}
