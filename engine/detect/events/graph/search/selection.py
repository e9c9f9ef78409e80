"""Hinze & Voisard's parameters in place of a context, over `a ; b` and `a and b` (semantics 6)."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidegate.engine.detect.events.graph.calendar import add
from tidegate.engine.detect.events.graph.search.comparison import Entries, Entry
from tidegate.engine.detect.events.graph.search.history import Found, History
from tidegate.engine.detect.events.graph.search.interval_choice import All, Interval
from tidegate.engine.detect.events.graph.search.relations import Search
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Selection

T = TypeVar("T")
Pair = tuple[Interval, Entries]


@dataclass(frozen=True, slots=True)
class Selecting:
    """A selection over a tree. `how`: as the rule wrote it. `at_end`: how long after its start a
    pair is detected, months in `zone`; None: it is detected at once. `longest`: the longest span of
    a pair and of an operand, microseconds; None: there is no bound."""

    how: Selection
    at_end: x.Duration | None
    zone: str
    longest: tuple[int, int] | None

    def instant(self, start: int, end: int) -> int:
        """When a pair is detected."""
        return end if self.at_end is None else add(start, self.at_end, self.zone)


@dataclass(frozen=True, slots=True)
class Member:
    """An instance of one of the two operands; `side` 0 is the first."""

    start: int
    end: int
    side: int
    rank: tuple[object, ...]
    entries: Entries

    def with_(self, other: Member) -> Pair:
        interval = min(self.start, other.start), max(self.end, other.end)
        return interval, self.entries + other.entries


def selecting(
    how: Selection, tree: x.Expression, zone: str, longest: tuple[int, int] | None
) -> Selecting:
    """A selection over a tree. Raises `EngineError('not-detectable')` where it cannot stand."""
    span = _span(tree)
    if pairs(tree) is None or (how.evaluate == "at_end" and span is None):
        raise EngineError(
            "not-detectable",
            "select stands for `a ; b` and `a and b`, at_end with a `within`",
            "give a context's name",
        )
    return Selecting(how, span if how.evaluate == "at_end" else None, zone, longest)


def choose(history: History, by: Selecting) -> Iterator[Found]:
    """Pairs the runs of the operands. A run is uninterrupted by the other operand (a duplicate
    list). It is paired with the next run, or with every later one. Of its members that have a
    partner the first, the last or all are taken; then the same of their partners. Detections are
    consumed only with `repeat`.

    A pair must be an instance of the whole expression: filters act first.
    """
    while True:
        found = Search(history, All()).of(history.sought.tree, whole=True)
        known = {(i, frozenset(entries)) for i, instances in found.items() for entries in instances}
        chosen: dict[object, Pair] = {}
        for pair in _pairs(history, by.how, known):
            (start, end), entries = pair
            if by.instant(start, end) == history.now:
                same = start, end, frozenset(history.order.occurrences(entries))
                chosen[same] = max(
                    chosen.get(same, pair), pair, key=lambda p: history.order.tie(p[1])
                )
        for (start, _), entries in chosen.values():
            yield start, entries
        if not by.how.repeat or not chosen:
            return
        for _, entries in chosen.values():
            history.use_up(entries)


def since(history: History, young: int) -> int:
    """The earliest start that may still matter, if nothing that starts before `young` can be in a
    pair any more, or have been a partner of what can: that of the first run with anything later.
    A point holds occurrences that are older."""
    runs, _ = _runs(history)
    first = next((n for n, run in enumerate(runs) if max(m.start for m in run) >= young), None)
    order = history.order
    left = [m for run in runs[first:] for m in run] if first is not None else []
    held = [order.start[row] for m in left for row in order.occurrences(m.entries)]
    return min([*held, *(m.start for m in left)], default=young)


def _pairs(
    history: History, how: Selection, known: Container[tuple[Interval, frozenset[Entry]]]
) -> Iterator[Pair]:
    """The chosen pairs up to now; `known` are all instances."""
    runs, ordered = _runs(history)
    for number, run in enumerate(runs):
        if ordered and run[0].side == 1:
            continue
        later = [other for other in runs[number + 1 :] if other[0].side != run[0].side]
        for partners in later[:1] if how.pairs == "unique" else later:
            fitting = [[pair for b in partners if _known(pair := a.with_(b), known)] for a in run]
            for chosen in _pick(how.first, [found for found in fitting if found]):
                yield from _pick(how.then, chosen)


def _known(pair: Pair, known: Container[tuple[Interval, frozenset[Entry]]]) -> bool:
    return (pair[0], frozenset(pair[1])) in known


def _runs(history: History) -> tuple[list[list[Member]], bool]:
    """Maximal runs of one operand, and whether they must be in sequence: then of one instant the
    second operand comes first, as it is never after the first."""
    node = pairs(history.sought.tree)
    order, ordered = history.order, isinstance(node, x.Seq)
    operands = node.operands() if node else ()
    members = [
        Member(start, end, side, (order.ranks(entries), *order.alike(entries)), entries)
        for side, operand in enumerate(operands)
        for (start, end), instances in Search(history, All()).of(operand, whole=True).items()
        for entries in instances
    ]
    members.sort(key=lambda m: (m.end, 1 - m.side if ordered else m.side, m.rank, m.start))
    runs: list[list[Member]] = []
    for member in members:
        if not runs or runs[-1][0].side != member.side:
            runs.append([])
        runs[-1].append(member)
    return runs, ordered


def pairs(tree: x.Expression) -> x.Seq | x.AnyOf | None:
    """The `a ; b` or `a and b` below filters; None if there is none."""
    while isinstance(tree, x.Within | x.Minus):
        tree = tree.part
    if isinstance(tree, x.AnyOf):
        return tree if tree.count == len(tree.parts) == 2 else None
    return tree if isinstance(tree, x.Seq) else None


def _span(tree: x.Expression) -> x.Duration | None:
    """The outermost `within` above the pair."""
    while isinstance(tree, x.Minus):
        tree = tree.part
    return tree.duration if isinstance(tree, x.Within) else None


def _pick(which: str, candidates: Sequence[T]) -> Sequence[T]:
    return {"first": candidates[:1], "last": candidates[-1:], "all": candidates}[which]
