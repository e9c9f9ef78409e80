"""Where a `long` meets a `double`: the one implicit conversion of scripts."""

from __future__ import annotations

from dataclasses import replace

from tidegate.rules.eventscript.tree import Build, Call, Choice, Expression, Field, Literal
from tidegate.rules.eventscript.types import Basic, Structure, Type, holds_duration


def join(one: Type, two: Type) -> Type | None:
    """The type that values of both have once longs are widened; None where there is none.
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
    """The type of a variable that takes events of both: as `join`, but a structure is stored as it
    comes, so that both are alike."""
    return None if one != two and isinstance(one, Structure) else join(one, two)


def widened(node: Expression, wanted: Type) -> Expression | None:
    """`node` as a value of type `wanted`: as it is, or with its longs widened and its fields in
    order. Everything but a duration is an object. None where that cannot be."""
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
