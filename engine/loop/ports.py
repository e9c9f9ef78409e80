"""What the loop of a rulebook reaches the store, the tables and its engine by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.engine.core.ledger import Ledger
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.core.ports import Conditions, Executors, Feed
from tidegate.engine.loop.compiled_rulebook import Prepare
from tidegate.engine.quarantine.quarantine import Quarantine


@dataclass(slots=True)
class Ports:
    """Shared by the steps of a bucket and by the entries. `store_id` is part of every marker."""

    ledger: Ledger
    store_id: str
    check_lease: Callable[[], None]  # as far as is known here; `Signals.arrivals` asks the store
    prepare: Prepare
    feed: Feed
    conditions: Conditions
    asked_later: Conditions  # by entries, beside the bucket's
    quarantine: Quarantine
    now: Callable[[], int]  # the engine's clock, microseconds
    stopped: Callable[[], bool] = lambda: False  # looked at between entries
    say: Callable[[Activity], None] = lambda _: None  # called with what it does from then on
    executors: Executors | None = None  # who may detect beside the driver
