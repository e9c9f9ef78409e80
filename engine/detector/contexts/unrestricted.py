"""Context `unrestricted`: all of D, nothing is used up."""

from __future__ import annotations

from collections.abc import Iterator

from engine.detector.contexts.history import Found, History
from engine.detector.contexts.values import All


def choose(history: History) -> Iterator[Found]:
    """D is a set: of instances that differ in roles alone, one (S5)."""
    for start, instances in history.ending(All()).items():
        distinct = {frozenset(item for _, item in entries): entries for entries in instances}
        for entries in distinct.values():
            yield start, entries
