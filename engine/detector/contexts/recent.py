"""Context `recent`: the greatest of D (S1)."""

from __future__ import annotations

from collections.abc import Iterator

from engine.detector.contexts.history import Found, History
from engine.detector.contexts.values import greatest


def choose(history: History) -> Iterator[Found]:
    """Used up are its occurrences and every older or simultaneous one of the same event types."""
    ending = history.ending(history.choosing(latest=True))
    if not ending:
        return
    start = max(ending)
    entries = greatest(ending[start]).entries
    yield start, entries
    chosen = {row for _, row in entries}
    older = set(chosen)
    for stream in history.unused.events:
        newest = max((i.end for i in stream if chosen & {row for _, row in i.entries}), default=-1)
        older |= {row for item in stream if item.end <= newest for _, row in item.entries}
    history.use_up(older)
