"""The events of an action: its beginning, its end, its failure; with the key of a firing (G23)."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import ENGINE, Firings, Signal

BEGIN, END, FAILED = "begin_of", "end_of", "failed"


def edge_signals(
    edge: str, entry: Entry, firings: Firings, watched: Iterable[str], received_at: int
) -> tuple[Signal, ...]:
    """The signals of one edge of an entry's action, none where no rule watches it.

    Their ids are the firing's and the edge: an action of several statements begins once, and what
    is tried again begins no second time.
    """
    event = f"{edge} {entry.rule}"
    if event not in watched:
        return ()
    keys = python_rows(firings.firings.select(firings.key_names))
    ids, depths = firings.hex_ids().to_pylist(), firings.firings["depth"].to_pylist()
    return tuple(
        Signal(
            f"{one}-{edge}",
            event,
            keys[n] if keys else {},
            received_at,
            depths[n],
            namespace=ENGINE,
        )
        for n, one in enumerate(ids)
    )
