"""Context `chronicle`: the one of D with the oldest `times`, then again, until D is empty."""

from __future__ import annotations

from collections.abc import Iterator

from engine.detector.contexts.history import Found, History, oldest


def choose(history: History) -> Iterator[Found]:
    """Used up are its occurrences."""
    values = history.choosing(latest=False)
    while ending := history.ending(values):
        start, entries = oldest(
            [(start, best) for start, bests in ending.items() for best in bests.values()]
        )
        yield start, entries
        history.use_up(row for _, row in entries)
