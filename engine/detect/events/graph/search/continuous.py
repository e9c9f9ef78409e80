"""Context `continuous`: for each initiator the one of D with the oldest `times`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tidegate.engine.detect.events.graph.search.history import Found, History, Initiator
from tidegate.engine.detect.events.graph.search.interval_choice import Best


def choose(history: History) -> Iterator[Found]:
    """Used up is the initiator (S2), as initiator only."""
    choosing = history.choosing(latest=False, initiators=True)
    by_initiator: dict[Initiator, list[tuple[int, Best]]] = defaultdict(list)
    for start, bests in history.ending(choosing).items():
        for (row, _), best in bests.items():
            by_initiator[(start,) if row is None else row].append((start, best))
    for initiator, found in by_initiator.items():
        if initiator not in history.initiated:
            history.initiated.add(initiator)
            start, best = choosing.oldest(history.now, found)
            yield start, best.entries
