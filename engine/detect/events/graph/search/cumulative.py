"""Context `cumulative`: the union of D."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.engine.detect.events.graph.search.comparison import Entry
from tidegate.engine.detect.events.graph.search.history import Found, History
from tidegate.engine.detect.events.graph.search.interval_choice import Union


def choose(history: History) -> Iterator[Found]:
    """Used up is all of it."""
    ending = history.ending(Union())
    if ending:
        entries = tuple(frozenset[Entry]().union(*ending.values()))
        yield min(ending), entries
        history.use_up(entries)
