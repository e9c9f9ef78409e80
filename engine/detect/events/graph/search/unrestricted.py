"""Context `unrestricted`: all of D, nothing is consumed."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.engine.detect.events.graph.search.comparison import Entries
from tidegate.engine.detect.events.graph.search.history import Found, History
from tidegate.engine.detect.events.graph.search.interval_choice import All


def choose(history: History) -> Iterator[Found]:
    """D is a set: of instances that differ in roles or ticks alone, one (S5)."""
    order = history.order

    def occurrences(entries: Entries) -> tuple[frozenset[int], frozenset[int]]:
        shown = [entry for entry in entries if entry[0] not in order.silent]
        return frozenset(order.occurrences(shown)), frozenset(order.occurrences(entries))

    for start, instances in history.ending(All()).items():
        alike: dict[object, Entries] = {}
        for entries in instances:
            key = occurrences(entries)
            known = alike.get(key)
            alike[key] = entries if known is None else max(known, entries, key=order.tie)
        for entries in alike.values():
            yield start, entries
