"""Context `unrestricted`: all of D, nothing is used up."""

from __future__ import annotations

from collections.abc import Iterator

from engine.detector.contexts.history import Found, History
from engine.detector.contexts.values import All, Entries


def choose(history: History) -> Iterator[Found]:
    """D is a set: of instances that differ in roles alone, one (S5)."""

    def occurrences(entries: Entries) -> tuple[frozenset[int], frozenset[int]]:
        shown = frozenset(row for role, row in entries if role not in history.silent)
        return shown, frozenset(row for _, row in entries)

    for start, instances in history.ending(All()).items():
        for entries in {occurrences(entries): entries for entries in instances}.values():
            yield start, entries
