"""Context `chronicle`: the one of D with the oldest `times`, then again, until D is empty."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.engine.detect.events.graph.search.history import Found, History


def choose(history: History) -> Iterator[Found]:
    """Used up are its occurrences; an instance without any is detected once (S3)."""
    choosing = history.choosing(latest=False)
    without: set[int] = set()
    while True:
        left = [
            (start, best)
            for start, bests in history.ending(choosing).items()
            for best in bests.values()
            if best.times or start not in without
        ]
        if not left:
            return
        start, best = choosing.oldest(history.now, left)
        yield start, best.entries
        history.use_up(best.entries)
        if not best.times:
            without.add(start)
