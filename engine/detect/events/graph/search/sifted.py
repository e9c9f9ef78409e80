"""A part of an expression of which a rule's `where` keeps the instances for which it is true."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tidegate.engine.core.event_names import as_written
from tidegate.engine.detect.events.graph.roles import roles
from tidegate.rules.algebra.named_parts import Path, asked_of, named_parts, parts_of
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions.parser import unlabelled


@dataclass(frozen=True, slots=True)
class Named:
    """A column of a condition: the occurrence that fills one of these roles has its value. The
    roles are counted from the first one of the part; `events`: their event types, in the order of
    their names: a node is named by what it says, in each process alike."""

    column: p.Column
    roles: tuple[int, ...]
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sifted(x.Expression):
    """The instances of `part` of which `condition` is true. `named`: its columns.

    Example: `a.v < b.v` over `(a ; b) within 5 s` names the roles 0 and 1.
    """

    part: x.Expression
    condition: p.Predicate
    named: tuple[Named, ...]

    def moved(self, part: x.Expression, shift: int) -> Sifted:
        """Over `part`, whose roles begin at `shift`."""
        named = tuple(replace(n, roles=tuple(r + shift for r in n.roles)) for n in self.named)
        return replace(self, part=part, named=named)


def sifted(on: x.Expression, where: p.Predicate, rules: Collection[str]) -> x.Expression:
    """An expression without its labels, with each part of a condition asked where it belongs.
    `rules`: the rules that are used as events."""
    e, on = unlabelled(on), as_written(on)
    asked: dict[Path, list[p.Predicate]] = {}
    for condition in p.conjuncts(where):
        path = asked_of(on, condition, frozenset(rules))
        if path is None:
            raise EngineError(
                "not-detectable",
                "what a where names lies in no part of bounded length",
                "validate the rulebook: it says where it stands",
            )
        asked.setdefault(path, []).append(condition)
    parts = named_parts(on)
    named = {
        column: tuple(_role(e, part.path) for part in parts_of(column, parts))
        for conditions in asked.values()
        for condition in conditions
        for column in p.columns(condition)
    }
    return _built(e, (), 0, asked, named)


def in_one(e: x.Expression) -> Sifted:
    """The conditions of all parts as one of the whole: an instance of it holds one instance of each
    of these parts. `e`: an expression with a condition."""
    asked = [*_conditions(e, 0)]
    conditions = tuple(condition for condition, _ in asked)
    condition = conditions[0] if len(conditions) == 1 else p.Chain("and", conditions)
    named = dict.fromkeys(each for _, several in asked for each in several)
    return Sifted(without(e), condition, tuple(named))


def _conditions(e: x.Expression, first: int) -> Iterator[tuple[p.Predicate, tuple[Named, ...]]]:
    """All conditions; their roles are counted from the first one of the whole."""
    if isinstance(e, Sifted):
        yield e.condition, e.moved(e.part, first).named
        yield from _conditions(e.part, first)
        return
    for operand in e.operands():
        yield from _conditions(operand, first)
        first += len(roles(operand))


def without(e: x.Expression) -> x.Expression:
    """The expression without the conditions."""
    if isinstance(e, Sifted):
        return without(e.part)
    return x.with_operands(e, [without(operand) for operand in e.operands()])


def _built(
    e: x.Expression,
    path: Path,
    role: int,
    asked: Mapping[Path, Sequence[p.Predicate]],
    named: Mapping[p.Column, tuple[int, ...]],
) -> x.Expression:
    """A node at a path, whose first role is `role`, with all that is asked of it and below it."""
    operands, first = [], role
    for number, operand in enumerate(e.operands()):
        operands.append(_built(operand, (*path, number), first, asked, named))
        first += len(roles(operand))
    found = x.with_operands(e, operands)
    if path not in asked:
        return found
    several = asked[path]
    condition = several[0] if len(several) == 1 else p.Chain("and", tuple(several))
    columns = p.columns(condition)
    return Sifted(found, condition, tuple(_named(c, named[c], role, e) for c in columns))


def _named(column: p.Column, filled: tuple[int, ...], first: int, e: x.Expression) -> Named:
    own = tuple(role - first for role in filled)
    return Named(column, own, tuple(sorted({roles(e)[role].event for role in own})))


def _role(e: x.Expression, path: Path) -> int:
    """The role of the event type at a path."""
    role = 0
    for number in path:
        before = e.operands()[:number]
        role += sum(len(roles(operand)) for operand in before)
        e = e.operands()[number]
    return role
