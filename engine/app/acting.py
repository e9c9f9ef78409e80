"""What entries are run with: an executor for each kind, and threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack

from tidegate.connectors.http.webhooks import WebhookPoster
from tidegate.engine.act.kinds.condition import Decisions
from tidegate.engine.act.kinds.signal import Signals
from tidegate.engine.act.kinds.sql import Statements
from tidegate.engine.act.kinds.switch import Switches
from tidegate.engine.act.kinds.unmarked_sql import Unmarked
from tidegate.engine.act.kinds.webhook import Webhooks
from tidegate.engine.act.run import Runner
from tidegate.engine.act.threads import Crew
from tidegate.engine.capture.now import Now
from tidegate.engine.core.entries import Outcome
from tidegate.engine.core.ports import Sink
from tidegate.engine.store import LeaseKeeper, Ledger, SqlStore
from tidegate.rules.model import Rulebook


def open_runner(
    book: Rulebook,
    store: SqlStore,
    lease: LeaseKeeper,
    sink: Sink,
    poster: WebhookPoster,
    now: Now,
    wake: Callable[[], None],
    stack: ExitStack,
) -> Runner:
    """The runner of a rulebook's entries; its threads end with the stack."""
    settings = book.settings
    size = settings.actions_in_parallel_max or os.cpu_count() or 1
    crew: Crew[Outcome] = Crew("tidegate-act", size)
    aside: Crew[Outcome] = Crew("tidegate-detached", size)
    beside: Crew[Outcome] = Crew("tidegate-webhook", settings.webhooks_in_flight_max)
    for opened in (crew, aside, beside, poster):
        stack.callback(opened.close)
    return Runner(
        book,
        {
            "sql": Statements(sink),
            "unmarked": Unmarked(sink),
            "signal": Signals(sink, now),
            "webhook": Webhooks(sink, poster, os.environ),
            "switch": Switches(),
            "condition": Decisions(),
        },
        Ledger(store, book.name, lease.epoch),
        lease.check,
        now,
        crew,
        beside,
        aside,
        wake,
    )
