"""`tidegate listen`: the firings of a rule, or the occurrences of a signal, as they come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from tidegate.engine.control.rulebooks import opened
from tidegate.engine.control.signals import heard
from tidegate.engine.core.outage import Outages
from tidegate.engine.store.tail import Item, Tail

ITEMS = 1_000  # at a time


def listening(
    url: str,
    rulebook: str | None,
    name: str,
    since: str | None,
    poll_seconds: float,
    *,
    once: bool,
) -> Iterator[Item]:
    """(position, item) for each firing of a rule, or each occurrence of a signal, after a position.
    With `once` it ends after those that are there. Raises InputError for a name that no store keeps
    items of, EngineError for a position that is not valid any more."""
    with opened(url, rulebook) as (store, book):
        tail = Tail(store, heard({book.name: book}, name, "RULE|SIGNAL"), since)
        seconds_max = book.settings.outage_max_seconds
        through = Outages(seconds_max, time.sleep, lambda: None, lambda: False).through
        while True:
            items = through(partial(tail.take, ITEMS))
            yield from items
            if not items and once:
                return
            if not items:
                time.sleep(poll_seconds)
