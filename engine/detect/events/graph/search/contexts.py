"""What each context detects among D at one instant of a key, and what is consumed (semantics 3).

A function yields starts and entries, and tells the history what is consumed. `restricted` is for
an expression with a `where`: else every node of the event graph makes that choice (Carlson &
Lisper, Theorem 4.6).

`a ; (b and c)` on a@1 a@2 b@3 c@4: D at 4 is (1,3,4) and (2,3,4). `recent` takes (2,3,4),
`chronicle` (1,3,4), `continuous` and `unrestricted` both, `cumulative` (1,2,3,4).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from tidegate.engine.detect.events.graph.search.comparison import Entries, Entry, Mark
from tidegate.engine.detect.events.graph.search.history import Found, History
from tidegate.engine.detect.events.graph.search.interval_choice import All, Best, Union
from tidegate.engine.detect.events.graph.search.relations import ending
from tidegate.rules.model import Context


def unrestricted(history: History) -> Iterator[Found]:
    """All of D, a set: of instances that differ in roles or ticks alone, one (S5). Nothing is
    consumed."""
    order = history.order

    def occurrences(entries: Entries) -> tuple[frozenset[int], frozenset[int]]:
        entries = order.expanded(entries)
        shown = tuple(entry for entry in entries if entry[0] not in order.silent)
        return frozenset(order.occurrences(shown)), frozenset(order.occurrences(entries))

    for start, instances in ending(history, All()).items():
        alike: dict[object, Entries] = {}
        for entries in instances:
            key = occurrences(entries)
            known = alike.get(key)
            alike[key] = entries if known is None else max(known, entries, key=order.tie)
        for entries in alike.values():
            yield start, entries


def restricted(history: History) -> Iterator[Found]:
    """The greatest of D (S1), of an expression with a `where`. Nothing is consumed."""
    choosing = history.choosing(latest=True)
    if found := ending(history, choosing):
        start = max(found)
        yield start, choosing.greatest(history.now, found[start]).entries


def recent(history: History) -> Iterator[Found]:
    """The greatest of D (S1). Consumed are its occurrences; the history takes every older or
    simultaneous one of the same event types along."""
    for start, entries in restricted(history):
        yield start, entries
        history.use_up(entries)


def chronicle(history: History) -> Iterator[Found]:
    """The one of D with the oldest `times`, which consumes its occurrences; then again, until D is
    empty. An instance without any occurrence is detected once (S3)."""
    choosing = history.choosing(latest=False)
    without: set[int] = set()
    while True:
        left = [
            (start, best)
            for start, bests in ending(history, choosing).items()
            for best in bests.values()
            if start not in without or history.order.occurrences(best.entries)
        ]
        if not left:
            return
        start, best = choosing.oldest(history.now, left)
        yield start, best.entries
        history.use_up(best.entries)
        if not history.order.occurrences(best.entries):
            without.add(start)


def continuous(history: History) -> Iterator[Found]:
    """For each initiator (S2) the one of D with the oldest `times`. Consumed is the initiator, as
    initiator only."""
    choosing = history.choosing(latest=False, initiators=True)
    by_initiator: dict[Mark, list[tuple[int, Best]]] = defaultdict(list)
    for start, bests in ending(history, choosing).items():
        for (row, *_), best in bests.items():
            by_initiator[(start,) if row is None else history.order.mark(row)].append((start, best))
    for initiator, found in by_initiator.items():
        if initiator not in history.marks:
            history.marks.add(initiator)
            start, best = choosing.oldest(history.now, found)
            yield start, best.entries


def cumulative(history: History) -> Iterator[Found]:
    """The union of D. Consumed is all of it."""
    if found := ending(history, Union()):
        entries = tuple(frozenset[Entry]().union(*found.values()))
        yield min(found), entries
        history.use_up(entries)


CONTEXTS: Mapping[Context, Callable[[History], Iterator[Found]]] = {
    Context.UNRESTRICTED: unrestricted,
    Context.RESTRICTED: restricted,
    Context.RECENT: recent,
    Context.CHRONICLE: chronicle,
    Context.CONTINUOUS: continuous,
    Context.CUMULATIVE: cumulative,
}
