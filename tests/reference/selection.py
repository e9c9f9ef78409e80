"""Hinze and Voisard's parameters: semantics 6 and S12, over `a ; b` and `a and b`.

The page leaves open how runs meet filters and equal instants; here: a pair must be an instance of
the rule's expression (filters act first); of each run of the earlier operand one takes the first,
the last or all that have such a partner in the later run, then for each of these the first, the
last or all of its partners; for `;` the later operand of one instant stands before the earlier one
(they are never in sequence), for `and` in the order written. For `and` a run of either operand
is the earlier one of the run that follows it, so a run may be paired with both its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tests.reference.meaning import Meaning, World
from tests.reference.values import Instance, Occurrence, distinct, hull
from tidegate.rules.expressions.nodes import And, Duration, Expression, Labelled, Minus, Seq, Within
from tidegate.rules.model import Selection

Run = list[Instance]


def core(expression: Expression) -> Seq | And:
    """The `a ; b` or `a and b` below filters and labels."""
    node = expression
    while isinstance(node, Within | Minus | Labelled):
        node = node.part
    if isinstance(node, Seq) or (isinstance(node, And) and len(node.parts) == 2):
        return node
    raise ValueError("`select` needs `a ; b` or `a and b`")


def span(expression: Expression) -> Duration:
    """The duration of the `within`, which `evaluate: at_end` needs."""
    for node in expression.walk():
        if isinstance(node, Within):
            return node.duration
    raise ValueError("`evaluate: at_end` needs a `within`")


class Runs:
    """The pairs chosen from what is not used up, up to an instant."""

    def __init__(self, expression: Expression, how: Selection, meaning: Meaning) -> None:
        self.how = how
        node = core(expression)
        first, then = node.parts if isinstance(node, And) else (node.first, node.then)
        self.sequence = isinstance(node, Seq)
        self.operands = (meaning.at(0, first), meaning.at(1, then))
        self.instances = set(meaning.of(expression))

    def runs(self, now: int) -> list[tuple[int, Run]]:
        """Maximal runs of one operand uninterrupted by the other, as (operand, run)."""
        stream = [
            (i.end, (1 - side) if self.sequence else side, self._order(i), side, i)
            for side, operand in enumerate(self.operands)
            for i in operand
            if i.end <= now
        ]
        runs: list[tuple[int, Run]] = []
        for _, _, _, side, instance in sorted(stream, key=lambda entry: entry[:3]):
            if not runs or runs[-1][0] != side:
                runs.append((side, []))
            runs[-1][1].append(instance)
        return runs

    def _order(self, i: Instance) -> tuple[Any, ...]:
        """Of one end."""
        return i.ranks(), i.held(), i.places()

    def pairs(self, now: int) -> Iterator[tuple[Instance, Instance]]:
        """The chosen (earlier, later) of the runs up to `now`."""
        runs = self.runs(now)
        for x, (side, run) in enumerate(runs):
            if self.sequence and side == 1:
                continue
            later = [other for other_side, other in runs[x + 1 :] if other_side != side]
            for partners in later[:1] if self.how.pairs == "unique" else later:
                yield from self._chosen(run, partners)

    def _chosen(self, run: Run, partners: Run) -> Iterator[tuple[Instance, Instance]]:
        fitting = {a: [b for b in partners if hull([a, b]) in self.instances] for a in run}
        for a in pick(self.how.first, [a for a in run if fitting[a]]):
            for b in pick(self.how.then, fitting[a]):
                yield a, b


def pick(which: str, candidates: Sequence[Instance]) -> Sequence[Instance]:
    return {"first": candidates[:1], "last": candidates[-1:], "all": candidates}[which]


def select(
    expression: Expression, how: Selection, world: World, until: int | None = None
) -> list[Instance]:
    """What a rule with `select` detects, up to and including `until`.

    `early`: a pair at its own end. `at_end`: at its start + d, for the `within d`. With `repeat`
    the occurrences of a detection are used up and the choice is made again until nothing matches.
    """
    everything = Meaning(world)
    used: frozenset[Occurrence] = frozenset()
    found: list[Instance] = []

    def detected_at(instance: Instance) -> int:
        if how.evaluate == "early":
            return instance.end
        return everything.after(instance.start, span(expression))

    for now in sorted({detected_at(i) for i in everything.of(expression)}):
        if until is not None and now > until:
            break
        again = True
        while again:
            runs = Runs(expression, how, everything.without(used))
            chosen = distinct(
                hull(pair) for pair in runs.pairs(now) if detected_at(hull(pair)) == now
            )
            found += [replace(instance, end=now) for instance in chosen]
            used |= (
                {o for instance in chosen for o in instance.occurrences()} if how.repeat else set()
            )
            again = how.repeat and bool(chosen)
    return found
