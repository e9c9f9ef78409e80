"""The parts of an expression that a rule's `where` can name, and the part in which it is asked.

A nameable part is an event type in a parameter role that one occurrence fills. What a condition
names lies in a part of bounded length, in which the condition is asked: `a.v < b.v` over
`((a ; b) within 5) ; c` is asked of `(a ; b) within 5`. An instance of the whole holds exactly one
instance of that part, so the same instances are left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from tidegate.rules.algebra.transformation import transform
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import predicates as p

Path = tuple[int, ...]
"""The way from the root to a node: which operand, again and again, labels left out."""
_PASSED: dict[type[x.Expression], tuple[int, ...]] = {
    x.Minus: (0,),
    x.Within: (0,),
    x.Nth: (0,),
    x.Aperiodic: (1,),
    x.Seq: (0, 1),
    x.BoundedSeq: (0, 1),
    x.Not: (1, 2),
}
"""Which operands have parameter roles that one occurrence fills; of `or`, `and`, `any(m, ..)` all
of them, of other operators none."""
_MANY = x.Or | x.And | x.AnyOf


class Part(NamedTuple):
    """A nameable event type, and the labels around it."""

    event: str
    labels: frozenset[str]
    path: Path


def named_parts(on: x.Expression) -> tuple[Part, ...]:
    """What can be named, from the left."""
    return tuple(_parts(on, (), frozenset()))


def _parts(e: x.Expression, path: Path, labels: frozenset[str]) -> Iterator[Part]:
    if isinstance(e, x.Name):
        yield Part(e.name, labels, path)
    elif isinstance(e, x.Labelled):
        yield from _parts(e.part, path, labels | {e.label})
    else:
        passed = range(len(e.operands())) if isinstance(e, _MANY) else _PASSED.get(type(e), ())
        for number in passed:
            yield from _parts(e.operands()[number], (*path, number), labels)


def parts_of(column: p.Column, parts: Collection[Part]) -> list[Part]:
    """The parts that a column's first name stands for: those with the label, else those of the
    event type."""
    labelled = [part for part in parts if column.part in part.labels]
    return labelled or [part for part in parts if part.event == column.part]


def together(parts: Collection[Part], on: x.Expression) -> bool:
    """Whether one instance may have occurrences in two of these parts."""
    paths = [part.path for part in parts]
    return any(
        not isinstance(_at(on, _common([one, two])), x.Or)
        for number, one in enumerate(paths)
        for two in paths[:number]
    )


def in_one_row(one: Part, other: Part, on: x.Expression) -> bool:
    """Whether one occurrence may fill both: they are of one event type, and in no sequence."""
    return one.event == other.event and isinstance(_at(on, _common([one.path, other.path])), x.And)


@lru_cache(maxsize=10_000)
def asked_of(
    on: x.Expression, condition: p.Predicate, rules: frozenset[str] = frozenset()
) -> Path | None:
    """The path of the smallest part of bounded length that holds all that a condition names, and
    of which every instance holds one; None: there is no such part. `rules`: the rules that are used
    as events, whose detections may have any length."""
    parts = named_parts(on)
    named = [part.path for c in p.columns(condition) for part in parts_of(c, parts)]
    if not named:
        return ()
    least, bounded = _common(named), None
    path: Path = ()
    while True:
        node = _at(on, path)
        if transform(node, rules=rules).length_micros is not None:
            bounded = path
        if path == least or not _passes(node):
            return bounded
        path = least[: len(path) + 1]


def asked_parts(
    on: x.Expression, condition: p.Predicate, rules: frozenset[str]
) -> dict[x.Expression, int]:
    """The parts of which something is asked, and how long their instances can be, microseconds."""
    paths = [asked_of(on, each, rules) for each in p.conjuncts(condition)]
    parts = [_at(on, path) for path in dict.fromkeys(paths) if path is not None]
    return {part: transform(part, rules=rules).length_micros or 0 for part in parts}


def _passes(node: x.Expression) -> bool:
    """Whether each instance of a node holds one of each of its operands that can be named. What
    counts does so before any condition is asked."""
    if isinstance(node, x.AnyOf):
        return node.count >= len(node.parts)
    return not isinstance(node, x.Or | x.Nth)


def _common(paths: Collection[Path]) -> Path:
    found: list[int] = []
    for steps in zip(*paths, strict=False):
        if len({*steps}) > 1:
            break
        found.append(steps[0])
    return tuple(found)


def _at(on: x.Expression, path: Path) -> x.Expression:
    """The node at a path, without the labels around it."""
    for number in path:
        on = _plain(on).operands()[number]
    return _plain(on)


def _plain(node: x.Expression) -> x.Expression:
    while isinstance(node, x.Labelled):
        node = node.part
    return node
