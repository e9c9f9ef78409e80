"""What an engine has for one text of its rulebook: all of it is replaced when the text changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tidegate.connectors.clock import SystemClock
from tidegate.connectors.delta.analyst import DeltaAnalyst
from tidegate.connectors.delta.conditions import DeltaConditions
from tidegate.connectors.delta.feed import DeltaFeed
from tidegate.connectors.delta.jobs import Jobs
from tidegate.connectors.delta.markers import DeltaMarkers
from tidegate.connectors.delta.sink import DeltaSink
from tidegate.connectors.webhook import WebhookPoster
from tidegate.engine.act.targets import Targets
from tidegate.engine.actionevents import with_action_events
from tidegate.engine.adopt import check_store
from tidegate.engine.app.acting import open_runner
from tidegate.engine.app.starting import check_cursors
from tidegate.engine.app.tables import arrow_schemas, open_catalog, preparing, schemas_now
from tidegate.engine.basis import detects, make_basis
from tidegate.engine.capture.instants import Instants
from tidegate.engine.capture.now import Now
from tidegate.engine.loop import Loop
from tidegate.engine.policy import Policy
from tidegate.engine.proven import only_written, proven_rules
from tidegate.engine.store import LeaseKeeper, SqlStore
from tidegate.rules.model import Rulebook


@dataclass(frozen=True, slots=True)
class Parts:
    """The loop, and what it works with. `version`: of the rulebook's text."""

    loop: Loop
    version: int
    _jobs: Jobs
    _poster: WebhookPoster
    _stack: ExitStack

    def cancel(self) -> None:
        """Nothing that runs may land any more. May be called from any thread."""
        self._poster.close()
        self._jobs.cancel()

    def close(self) -> None:
        self._stack.close()


def open_parts(
    book: Rulebook,
    store: SqlStore,
    spark: SparkSession,
    lease: LeaseKeeper,
    policy: Policy,
    wake: Callable[[], None],
    stopped: Callable[[], bool],
) -> Parts:
    """Everything there and checked, and the rulebook registered: nothing can fail after that.
    Raises InputError and EngineError."""
    with ExitStack() as stack:
        loop, jobs, poster = _opened(book, store, spark, lease, policy, wake, stopped, stack)
        version = store.register(book.name, book.text, absolute(book.file), book.added)
        return Parts(loop, version, jobs, poster, stack.pop_all())


def _opened(
    given: Rulebook,
    store: SqlStore,
    spark: SparkSession,
    lease: LeaseKeeper,
    policy: Policy,
    wake: Callable[[], None],
    stopped: Callable[[], bool],
    stack: ExitStack,
) -> tuple[Loop, Jobs, WebhookPoster]:
    settings = given.settings
    poster = WebhookPoster(
        policy.webhook_hosts, settings.webhooks_in_flight_max, settings.webhook_seconds_max
    )
    state = store.load(given.name)
    check_cursors(given, store, spark, state)
    kept = store.rulebooks().get(given.name) if state.bucket else None
    spared = only_written(given) if kept is not None else ()
    catalog = stack.enter_context(
        open_catalog(spark, given, store.id, lease.epoch, policy.functions, spared)
    )
    schemas = schemas_now(catalog)
    book = with_action_events(given, arrow_schemas(schemas))
    analyst = DeltaAnalyst(catalog, book, policy.functions, policy.at_least_once)
    now = Now(SystemClock(), state.now)
    digests = {rule.name: detects(rule) for rule in book.rules.values() if rule.enabled}
    prepare = preparing(book, analyst)
    sink = DeltaSink(catalog, book, analyst)
    proven = proven_rules(given, kept)
    basis = make_basis(book, digests, schemas, state.activations, prepare, proven)
    targets = basis.targets | {e.target for e in store.open_entries(book.name) if e.target}
    markers = DeltaMarkers(spark, catalog.locations)
    check_store(book, store, markers, targets & catalog.locations.keys())
    loop = Loop(
        basis=basis,
        prepare=prepare,
        store=store,
        epoch=lease.epoch,
        check_lease=lease.raise_lost,
        feed=DeltaFeed(
            spark,
            catalog.locations,
            own_stores={store.id, *store.known_stores(book.name)},
            jobs=catalog.jobs,
            seconds_max=settings.statement_seconds_max,
        ),
        conditions=DeltaConditions(catalog, settings.statement_seconds_max),
        asked_later=DeltaConditions(catalog, settings.statement_seconds_max),
        targets=Targets(sink),
        runner=open_runner(book, store, lease, sink, poster, now, wake, stack),
        now=now,
        instants=Instants(settings.skew_max_seconds * 1_000_000),
        state=state,
        stopped=stopped,
    )
    stack.callback(loop.close)
    return loop, catalog.jobs, poster


def absolute(file: str | None) -> str | None:
    """Commands that need the store only are called from other folders."""
    return file and os.path.abspath(file)
