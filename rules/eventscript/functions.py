"""The functions that every script has, by `FORMS`, and the types that they take and give.

`substring` counts from 0, and `end` is no part of it. `round` gives the nearest long, a half
upwards. `long` truncates a double, and gives the microseconds of a time. `now()` is the instant of
the event. Where a `long` meets a `double`, it is widened: the one implicit conversion.
Source: EventScript, section 2.2; `eventscript.md` 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidegate.rules.eventscript.tree import (
    Build,
    Call,
    Choice,
    Expression,
    Field,
    Function,
    Literal,
)
from tidegate.rules.eventscript.types import Array, Basic, Structure, Type, holds_duration

Signature = tuple[Sequence[Type], Type]  # of each operand, and of the result
_B = Basic
_ONE_OF: dict[str, list[Signature]] = {
    "abs": [((each,), each) for each in (_B.LONG, _B.DOUBLE, _B.DURATION)],
    "microseconds": [((_B.DURATION,), _B.LONG)],
    "floor": [((_B.DOUBLE,), _B.DOUBLE)],
    "ceil": [((_B.DOUBLE,), _B.DOUBLE)],
    "sqrt": [((_B.DOUBLE,), _B.DOUBLE)],
    "round": [((_B.DOUBLE,), _B.LONG)],
    "long": [((each,), _B.LONG) for each in (_B.LONG, _B.DOUBLE, _B.STRING, _B.TIME)],
    "double": [((each,), _B.DOUBLE) for each in (_B.DOUBLE, _B.STRING)],
    "string": [
        ((each,), _B.STRING) for each in (_B.STRING, _B.LONG, _B.DOUBLE, _B.BOOLEAN, _B.TIME)
    ],
    "substring": [((_B.STRING, *[_B.LONG] * count), _B.STRING) for count in (1, 2)],
    "now": [((), _B.TIME)],
}
FORMS = {
    "length": "length(string), length(array)",
    "concat": "concat(string, string, ..)",
    "substring": "substring(string, begin), substring(string, begin, end)",
    "abs": "abs(number or duration)",
    "min": "min(a, b, ..) of numbers, times or durations",
    "max": "max(a, b, ..) of numbers, times or durations",
    "floor": "floor(number)",
    "ceil": "ceil(number)",
    "round": "round(number)",
    "sqrt": "sqrt(number)",
    "long": "long(number, string or time)",
    "double": "double(number or string)",
    "microseconds": "microseconds(duration)",
    "string": "string(boolean, number, time or string)",
    "isNull": "isNull(value)",
    "now": "now()",
}


def signature(name: str, operands: Sequence[Type], declared: Function | None) -> Signature | None:
    """The types that the function takes, to which operands are widened, and the type that it gives.
    None if it does not take such operands."""
    known = [(declared.arguments, declared.result)] if declared else _ONE_OF.get(name, [])
    for takes, gives in known:
        if _takes(takes, operands):
            return takes, gives
    if declared:
        return None
    if name == "isNull" and len(operands) == 1:
        return operands, _B.BOOLEAN
    if name == "length" and len(operands) == 1:
        long = operands[0] == _B.STRING or isinstance(operands[0], Array)
        return (operands, _B.LONG) if long else None
    if len(operands) < 2 or name not in ("concat", "min", "max"):
        return None
    together: Type | None = operands[0]
    for operand in operands[1:]:
        together = together and join(together, operand)
    of = {_B.STRING} if name == "concat" else {_B.LONG, _B.DOUBLE, _B.TIME, _B.DURATION}
    return ([together] * len(operands), together) if together in of and together else None


def _takes(wanted: Sequence[Type], operands: Sequence[Type]) -> bool:
    if len(wanted) != len(operands):
        return False
    pairs = zip(wanted, operands, strict=True)
    return all(
        not holds_duration(gives) if takes == _B.OBJECT else join(takes, gives) == takes
        for takes, gives in pairs
    )


def join(one: Type, two: Type) -> Type | None:
    """The type that takes values of both types, longs widened to doubles; None if there is none.
    Structures join field by field, in the order of the first."""
    if one == two:
        return one
    if {one, two} == {Basic.LONG, Basic.DOUBLE}:
        return Basic.DOUBLE
    if not isinstance(one, Structure) or not isinstance(two, Structure):
        return None
    theirs = dict(two.fields)
    if theirs.keys() != dict(one.fields).keys():
        return None
    fields: list[tuple[str, Type]] = []
    for name, kind in one.fields:
        both = join(kind, theirs[name])
        if both is None:
            return None
        fields.append((name, both))
    return Structure(tuple(fields))


def storable(one: Type, two: Type) -> Type | None:
    """The type of a variable that stores events of both types. It is their `join`, but structures
    must be equal, for they are stored unchanged."""
    return None if one != two and isinstance(one, Structure) else join(one, two)


def widened(node: Expression, wanted: Type) -> Expression | None:
    """`node` as a value of type `wanted`, with longs widened and fields reordered if necessary.
    Every value but a duration is an object, too. None if the types do not fit."""
    if node.type == wanted:
        return node
    if wanted == Basic.OBJECT:
        return None if holds_duration(node.type) else node
    if isinstance(node, Literal) and node.value is None:
        return replace(node, type=wanted)
    if node.type == Basic.LONG and wanted == Basic.DOUBLE:
        if isinstance(node, Literal):
            return replace(node, type=wanted, value=float(node.value))
        return Call(wanted, "double", (node,), place=node.place)
    if isinstance(node, Choice):
        then, other = widened(node.then, wanted), widened(node.other, wanted)
        return then and other and replace(node, type=wanted, then=then, other=other)
    if isinstance(wanted, Structure) and isinstance(node.type, Structure):
        return _fields(node, node.type, wanted)
    return None


def _fields(node: Expression, given: Structure, wanted: Structure) -> Expression | None:
    theirs = dict(given.fields)
    if theirs.keys() != dict(wanted.fields).keys():
        return None
    parts = dict(node.fields) if isinstance(node, Build) else {}
    fields: list[tuple[str, Expression]] = []
    for name, kind in wanted.fields:
        part = parts.get(name) or Field(theirs[name], node, name, place=node.place)
        fitting = widened(part, kind)
        if fitting is None:
            return None
        fields.append((name, fitting))
    return Build(wanted, tuple(fields), place=node.place)
