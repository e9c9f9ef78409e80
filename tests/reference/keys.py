"""Keys: semantics 1 and S7. Which occurrences each key sees, and which rules need no key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.reference.meaning import leaf_type
from tests.reference.values import Occurrence, value_order
from tidegate.rules.expressions.nodes import (
    And,
    AnyOf,
    AnyRepeat,
    Aperiodic,
    AperiodicStar,
    Every,
    Expression,
    Instant,
    Labelled,
    Minus,
    Not,
    Nth,
    Or,
    Periodic,
    PeriodicStar,
    Plus,
    Seq,
    Within,
)
from tidegate.rules.model import Rule

Key = tuple[tuple[Any, ...], ...]  # the order of each key column's value, which tells 1 from true


def needs_keyed(expression: Expression, keyed: Iterable[str]) -> bool:
    """Whether every instance needs a keyed occurrence (else the rule is refused, section 1)."""
    names = frozenset(keyed)

    def needs(e: Expression) -> bool:
        if leaf_type(e) is not None:
            return type_name(leaf_type(e)) in names
        if isinstance(e, Or):
            return all(map(needs, e.parts))
        if isinstance(e, And):
            return any(map(needs, e.parts))
        if isinstance(e, AnyOf):
            missable = len(e.parts) - min(e.count, len(e.parts))
            return sum(map(needs, e.parts)) > missable
        if isinstance(e, Seq):
            return needs(e.first) or needs(e.then)
        if isinstance(e, Not | AperiodicStar | PeriodicStar):
            return needs(e.opener) or needs(e.closer)
        if isinstance(e, Aperiodic):
            return needs(e.opener) or needs(e.part)
        if isinstance(e, Periodic):
            return needs(e.opener)
        if isinstance(e, Plus):
            return needs(e.base)
        if isinstance(e, Minus | Within | AnyRepeat | Every | Nth | Instant | Labelled):
            return needs(e.part)
        return False  # an own terminator

    return needs(expression)


def type_name(type_: Any) -> str:
    """The name of an event type; `begin_of` and `end_of` of it are keyed as it is (S7)."""
    return type_ if isinstance(type_, str) else getattr(type_, "name", "")


def key_of(occurrence: Occurrence, rule: Rule) -> Key | None:
    """The key of an occurrence for this rule; None if its type broadcasts."""
    columns = rule.pattern.per.get(type_name(occurrence.type))
    if columns is None:
        return None
    return tuple(value_order(occurrence.fields.get(column)) for column in columns)


def key_values(occurrence: Occurrence, rule: Rule) -> tuple[Any, ...]:
    return tuple(
        occurrence.fields.get(column) for column in rule.pattern.per[type_name(occurrence.type)]
    )


def views(
    rule: Rule, occurrences: Mapping[Any, Sequence[Occurrence]]
) -> Iterable[tuple[tuple[Any, ...], int | None, dict[Any, list[Occurrence]]]]:
    """For each key: its values, the instant of its first keyed occurrence, and what it sees: the
    occurrences of the key plus all broadcasts, no matter when the key was first seen.

    A rule without `per:` has the one key () and no first instant. Only what the expression names
    is seen.
    """
    named = {leaf_type(node) for node in rule.pattern.on.walk()} - {None}
    seen = {type_: list(occurrences.get(type_, ())) for type_ in named}
    if not rule.pattern.per:
        yield (), None, seen
        return
    everything = {id(o): o for group in seen.values() for o in group}.values()
    keyed = [o for o in everything if key_of(o, rule) is not None]
    for key in {key_of(o, rule) for o in keyed}:
        own = [o for o in keyed if key_of(o, rule) == key]
        first = min(own, key=lambda o: (o.end, o.number))
        view = {
            type_: [o for o in group if key_of(o, rule) in (None, key)]
            for type_, group in seen.items()
        }
        yield key_values(first, rule), first.end, view
