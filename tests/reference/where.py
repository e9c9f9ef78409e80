"""The `where` of a rule: which instances it keeps, assignment by assignment.

An instance says which occurrence fills which leaf (its roles). A name stands for leaves: those that
bear the label, or those of the event type; of these an instance fills one at most, and where it
fills none the value is null. Numbers are exact, but where a double takes part. Null is not true.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from tests.reference.values import Instance, Role
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import predicates as p

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


def true_of(where: p.Predicate, on: x.Expression, instance: Instance) -> bool:
    """Whether a condition over an expression is true of this instance of it."""
    filled = dict(instance.parameters)
    leaves = list(_leaves(on, (), frozenset()))

    def value(column: p.Column) -> Any:
        labelled = [role for role, _, labels in leaves if column.part in labels]
        named = [role for role, name, _ in leaves if column.part == name]
        held = [filled[role] for role in labelled or named if role in filled]
        if not held:
            return None
        (occurrence,) = held
        fields = occurrence.fields.get("old") or {} if column.old else occurrence.fields
        return fields.get(column.column)

    return value_of(where, value) is True


def _leaves(
    e: x.Expression, role: Role, labels: frozenset[str]
) -> Iterator[tuple[Role, str, frozenset[str]]]:
    """Each event type that can be named: the role that it fills in an instance, numbered as the
    meaning does, its name and the labels around it."""
    if isinstance(e, x.Name):
        yield role, e.name, labels
    elif isinstance(e, x.Labelled):
        yield from _leaves(e.part, role, labels | {e.label})
    elif isinstance(e, x.Minus | x.Within | x.Aperiodic | x.Nth):
        yield from _leaves(e.part, role, labels)
    elif isinstance(e, x.Or | x.And | x.AnyOf):
        for number, part in enumerate(e.parts):
            yield from _leaves(part, (*role, number), labels)
    elif isinstance(e, x.Seq):
        yield from _leaves(e.first, (*role, 0), labels)
        yield from _leaves(e.then, (*role, 1), labels)
    elif isinstance(e, x.Not):
        yield from _leaves(e.opener, (*role, 0), labels)
        yield from _leaves(e.closer, (*role, 1), labels)


def value_of(node: p.Predicate, value: Callable[[p.Column], Any]) -> Any:
    """The value of a condition, given those of its columns."""
    match node:
        case p.Column():
            return _exact(value(node))
        case p.Literal():
            return _exact(node.value)
        case p.Unary(operator="is null", part=part):
            return value_of(part, value) is None
        case p.Unary(operator="is not null", part=part):
            return value_of(part, value) is not None
        case p.Unary(operator=sign, part=part):
            found = value_of(part, value)
            if found is None:
                return None
            return {"not": operator.not_, "-": operator.neg, "abs": abs}[sign](found)
        case p.Chain(operator=word, members=members):
            return _chained(word, [value_of(member, value) for member in members])
        case p.Arithmetic() | p.Comparison():
            left, right = value_of(node.left, value), value_of(node.right, value)
            if left is None or right is None:
                return None
            if isinstance(left, float) or isinstance(right, float):
                left, right = float(left), float(right)
            if isinstance(node, p.Arithmetic):
                return _ARITHMETIC[node.operator](left, right)
            return _COMPARE[node.operator](_ordered(left), _ordered(right))
    raise TypeError(node)


def _exact(value: Any) -> Any:
    """Whole numbers and decimals without any rounding."""
    if isinstance(value, bool | float | str) or value is None or hasattr(value, "year"):
        return value
    return Fraction(value)


def _ordered(value: Any) -> Any:
    """NaN equals NaN, and is above every number."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def _chained(word: str, found: list[Any]) -> bool | None:
    decisive = word == "or"
    if decisive in found:
        return decisive
    return None if None in found else not decisive
