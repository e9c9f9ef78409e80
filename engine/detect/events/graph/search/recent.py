"""Context `recent`: the greatest of D (S1)."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.engine.detect.events.graph.search.history import Found, History


def choose(history: History) -> Iterator[Found]:
    """Used up are its occurrences and every older or simultaneous one of the same event types: the
    history is to take them along."""
    choosing = history.choosing(latest=True)
    ending = history.ending(choosing)
    if ending:
        start = max(ending)
        entries = choosing.greatest(history.now, ending[start]).entries
        yield start, entries
        history.use_up(entries)
