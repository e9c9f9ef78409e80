"""Hinze & Voisard's parameters in place of a context, over `a ; b` and `a and b` (semantics 6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from engine.detector.contexts import tree as t
from engine.detector.contexts.history import Found, History
from engine.detector.contexts.items import Interval
from engine.detector.contexts.values import All, Entries
from rules.model import Selection

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Member:
    """An instance of one of the two operands; `side` 0 is the first."""

    end: int
    side: int
    ranks: tuple[tuple[int, ...], ...]
    entries: Entries


def choose(history: History, how: Selection) -> Iterator[Found]:
    """Runs of one operand uninterrupted by the other (duplicate lists) are paired, each with the
    next one only or with every later one; of a run the first, the last or all are taken that have a
    partner, then of their partners. Only with `repeat` what is detected is used up.

    A pair must be an instance of the whole expression: filters act first.
    """
    while True:
        known = {
            frozenset(entries): interval
            for interval, instances in history.upto(history.tree, All()).items()
            for entries in instances
        }
        chosen: dict[tuple[int, frozenset[int]], Found] = {}
        for pair in _pairs(history, how, known):
            start, end = known[frozenset(pair)]
            if end == history.now:
                chosen.setdefault((start, frozenset(row for _, row in pair)), (start, pair))
        yield from chosen.values()
        if not how.repeat or not chosen:
            return
        history.use_up(row for _, entries in chosen.values() for _, row in entries)


def _pairs(
    history: History, how: Selection, known: Mapping[frozenset[tuple[int, int]], Interval]
) -> Iterator[Entries]:
    """The chosen pairs up to now; `known` are all instances."""
    runs, ordered = _runs(history)
    for x, run in enumerate(runs):
        if ordered and run[0].side == 1:
            continue
        later = [other for other in runs[x + 1 :] if other[0].side != run[0].side]
        for partners in later[:1] if how.pairs == "unique" else later:
            fitting = [
                [pair for b in partners if frozenset(pair := a.entries + b.entries) in known]
                for a in run
            ]
            for chosen in _pick(how.first, [found for found in fitting if found]):
                yield from _pick(how.then, chosen)


def _runs(history: History) -> tuple[list[list[Member]], bool]:
    """Maximal runs of one operand, and whether they must be in sequence: then of one instant the
    second operand comes first, as it is never after the first."""
    node = pairs(history.tree)
    ordered = isinstance(node, t.Sequence)
    operands = node.parts() if node else ()
    members = [
        Member(end, side, tuple(sorted(history.rank[row] for _, row in entries)), entries)
        for side, operand in enumerate(operands)
        for (_, end), instances in history.upto(operand, All()).items()
        for entries in instances
    ]
    members.sort(key=lambda m: (m.end, 1 - m.side if ordered else m.side, m.ranks))
    runs: list[list[Member]] = []
    for member in members:
        if not runs or runs[-1][0].side != member.side:
            runs.append([])
        runs[-1].append(member)
    return runs, ordered


def pairs(tree: t.Tree) -> t.Sequence | t.Conjunction | None:
    """The `a ; b` or `a and b` below filters; None if there is none."""
    while isinstance(tree, t.Within | t.Minus):
        tree = tree.part
    if isinstance(tree, t.Conjunction):
        return tree if tree.count == len(tree.operands) == 2 else None
    return tree if isinstance(tree, t.Sequence) else None


def _pick(which: str, candidates: Sequence[T]) -> Sequence[T]:
    return {"first": candidates[:1], "last": candidates[-1:], "all": candidates}[which]
