"""Forgetting what is past its retention."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tidegate.engine.app.adopt import MICROS_PER_DAY
from tidegate.engine.store import SqlStore
from tidegate.rules.model import Rulebook

PURGE_EVERY_BUCKETS = 1_000
PURGED_ROWS = 1_000  # in one transaction
PURGES_MAX = 100  # transactions one after the other


def purge(
    store: SqlStore, book: Rulebook, epoch: int, now: int, stopped: Callable[[], bool]
) -> None:
    """Forget what is past its retention, in short transactions; much of it not all at once."""
    firings = now - book.settings.firings_retention_days * MICROS_PER_DAY
    history = now - book.settings.history_retention_days * MICROS_PER_DAY
    forget = partial(store.purge, book.name, epoch)
    for _ in range(PURGES_MAX):
        if stopped() or forget(firings, history, PURGED_ROWS) < PURGED_ROWS:
            return
