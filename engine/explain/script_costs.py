"""The costs of a script: whether the time of a transition is bounded (paper 4.4), and the bytes of
its variables."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator

from tidegate.engine.detect.scripts.exploration import Explored
from tidegate.engine.detect.scripts.places import Action
from tidegate.engine.detect.scripts.value_types import default, grows, size
from tidegate.engine.explain.phrases import position
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.regexes import walk
from tidegate.rules.eventscript.tree import nodes
from tidegate.rules.eventscript.types import Array, Basic, Type

_CALCULATED = {"+": operator.add, "-": operator.sub, "*": operator.mul}
Sizes = dict[str, int | None]
"""The bytes of each variable; None: only the limit of the whole instance bounds them."""


def unbounded(program: tree.Program, sizes: Sizes) -> Iterator[str]:
    """Why a transition may take any time, in the order of the text; nothing if its time is bounded.
    `sizes`: from `bytes_of`."""
    for node in nodes(program.regex):
        at = position(node.place)
        match node:
            case tree.While():
                yield f"while at {at}"
            case tree.Count(low=low, high=high) if None in (_value(low), _value(high)):
                yield f"the count of the for at {at} is not constant"
            case tree.Each(array=array) if not _known(array, sizes):
                yield f"the for at {at} goes over an array of any length"
            case tree.New(count=count) if _value(count) is None:
                yield f"the array made at {at} has no constant length"
            case tree.Call(function=name) if name in program.functions:
                yield f"{name} at {at} is Python, and takes its own time"


def statements_max(explored: Explored, sizes: Sizes) -> int | None:
    """The most statements that one transition runs, counted as for `script_steps_max`; None where
    the automaton is too large to explore. The script's time must be bounded."""
    if explored.too_large:
        return None
    costs = {
        part.number: _cost(part.block, sizes)
        for part in explored.places.places
        if isinstance(part, Action)
    }
    reached = [explored.started, *(r for moves in explored.moves for _, r in moves.values())]
    return max(sum(costs.get(place, 0) for place in each.places) for each in reached)


def _cost(node: tree.Statement, sizes: Sizes) -> int:
    """How many statements a statement runs, itself included."""
    match node:
        case tree.Block(statements=statements):
            return 1 + sum(_cost(each, sizes) for each in statements)
        case tree.If(then=then, other=other):
            return 1 + max(_cost(then, sizes), _cost(other, sizes) if other else 0)
        case tree.Count(low=low, high=high, body=body):
            times = (_value(high) or 0) - (_value(low) or 0) + 1
            return 1 + max(0, times) * _cost(body, sizes)
        case tree.Each(array=array, body=body):
            return 1 + _length(array, sizes) * _cost(body, sizes)
    return 1


def _length(array: tree.Expression, sizes: Sizes) -> int:
    """The length of an array whose length is constant."""
    found = sizes[array.name] if isinstance(array, tree.Variable) else _constant_bytes(array)
    kind = array.type.of if isinstance(array.type, Array) else array.type
    return ((found or 0) - size([])) // size(default(kind))


def bytes_of(program: tree.Program) -> Sizes:
    """The bytes of each variable of a script."""
    assigned: dict[str, list[tree.Expression | None]] = {}
    for node in nodes(program.regex):
        if isinstance(node, tree.Assign):
            target = node.target
            while isinstance(target, tree.Index | tree.Field):
                target = target.array if isinstance(target, tree.Index) else target.structure
            whole = node.target is target
            if isinstance(target, tree.Variable) and (whole or grows(node.value.type)):
                assigned.setdefault(target.name, []).append(node.value if whole else None)
    for marker in walk(program.regex):
        if isinstance(marker, tree.Named | tree.Elapse | tree.Arrive) and marker.variable:
            assigned.setdefault(marker.variable, []).append(None)
    return {name: _bytes(kind, assigned.get(name, ())) for name, kind in program.variables.items()}


def _bytes(kind: Type, assigned: Iterable[tree.Expression | None]) -> int | None:
    least = size(default(kind))
    if not grows(kind):
        return least
    found = [None if each is None else _constant_bytes(each) for each in assigned]
    return None if None in found else max([least, *(each for each in found if each is not None)])


def _constant_bytes(value: tree.Expression) -> int | None:
    """The bytes of a text or array, where the script's text shows them; else None."""
    match value:
        case tree.Literal(value=str(text)):
            return size(text)
        case tree.New(type=Array(of=of), count=tree.Literal(value=count)) if not grows(of):
            return size([]) + int(count) * size(default(of))
        case tree.Choice(then=then, other=other):
            both = _constant_bytes(then), _constant_bytes(other)
            return None if both[0] is None or both[1] is None else max(both[0], both[1])
    return None


def _known(array: tree.Expression, sizes: Sizes) -> bool:
    """Whether an array has a constant length."""
    if isinstance(array, tree.Variable):
        return sizes.get(array.name) is not None
    return isinstance(array, tree.New) and _value(array.count) is not None


def _value(value: tree.Expression) -> int | None:
    """The value of a constant expression; None for another."""
    match value:
        case tree.Literal(type=Basic.LONG, value=number):
            return int(number)
        case tree.Unary(op="-", operand=operand):
            inner = _value(operand)
            return None if inner is None else -inner
        case tree.Binary(op=op, left=left, right=right) if op in _CALCULATED:
            one, two = _value(left), _value(right)
            return None if one is None or two is None else _CALCULATED[op](one, two)
    return None
