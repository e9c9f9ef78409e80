"""The parts of an engine for one text of its rulebook. A new text gets new parts.

A rule whose texts have not changed since it ran is not checked again, and a table that rules only
write may be missing. Entries are run by an executor for each kind, in threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import SparkSession

from tidegate.connectors.clock import SystemClock
from tidegate.connectors.delta.analyst import DeltaAnalyst
from tidegate.connectors.delta.catalog import Catalog
from tidegate.connectors.delta.conditions import DeltaConditions
from tidegate.connectors.delta.events import check_events
from tidegate.connectors.delta.executors import SparkExecutors
from tidegate.connectors.delta.feed import DeltaFeed
from tidegate.connectors.delta.markers import DeltaMarkers
from tidegate.connectors.delta.sink import DeltaSink
from tidegate.connectors.delta.slots import Slots
from tidegate.connectors.http.webhooks import WebhookPoster
from tidegate.engine.act.executors import Executor
from tidegate.engine.act.kinds.condition import Decisions
from tidegate.engine.act.kinds.signal import Signals
from tidegate.engine.act.kinds.sql import Statements
from tidegate.engine.act.kinds.switch import Switches
from tidegate.engine.act.kinds.unmarked_sql import Unmarked
from tidegate.engine.act.kinds.webhook import Webhooks
from tidegate.engine.act.run import Runner
from tidegate.engine.act.shared import SharedCommits
from tidegate.engine.act.targets import Targets
from tidegate.engine.act.threads import Crew
from tidegate.engine.app.adopt import check_store
from tidegate.engine.app.preconditions import check_cursors
from tidegate.engine.app.reload import absolute
from tidegate.engine.app.tables import arrow_schemas, open_catalog, preparing, schemas_now
from tidegate.engine.app.unread import Unread
from tidegate.engine.capture.commit_instants import Instants, Now
from tidegate.engine.capture.sources import sources
from tidegate.engine.core.entries import Effect, Entry
from tidegate.engine.core.ledger import Ledger
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.core.policy import Policy, Poster
from tidegate.engine.core.ports import AppIds, Feed, Sink
from tidegate.engine.core.state import State
from tidegate.engine.detect.events.step import component_task
from tidegate.engine.detect.stage import BucketDetector
from tidegate.engine.evaluate.action_events import with_action_events
from tidegate.engine.evaluate.conditions import LocalConditions
from tidegate.engine.loop.compiled_rulebook import CompiledRulebook, digests_of, first_compiled
from tidegate.engine.loop.loop import Loop
from tidegate.engine.loop.planner import Planner
from tidegate.engine.loop.ports import Ports
from tidegate.engine.quarantine.conditions import WatchedConditions
from tidegate.engine.quarantine.feed import WatchedFeed
from tidegate.engine.quarantine.quarantine import Quarantine
from tidegate.engine.quarantine.sink import WatchedSink
from tidegate.engine.store import KeptRulebook, LeaseKeeper, SqlStore
from tidegate.rules.errors import InputError, Place
from tidegate.rules.model import Rule, Rulebook


@dataclass(frozen=True, slots=True)
class Lake:
    """A rulebook's tables in Spark, and the verdicts on its SQL. It serves all texts of the
    rulebook over the same tables. `stack` closes it."""

    book: Rulebook
    catalog: Catalog
    analyst: DeltaAnalyst
    schemas: Mapping[str, str]
    stack: ExitStack

    def serves(self, given: Rulebook) -> bool:
        """Whether it can serve another text: the tables are the same, with the same schemas."""
        limits = (given.settings.statement_seconds_max, self.book.settings.statement_seconds_max)
        same = (given.tables, given.reads) == (self.book.tables, self.book.reads)
        return same and limits[0] == limits[1] and schemas_now(self.catalog) == self.schemas


@dataclass(frozen=True, slots=True)
class EngineParts:
    """The loop and what it works with. `version`: number of the rulebook's text."""

    loop: Loop
    version: int
    lake: Lake
    poster: WebhookPoster
    stack: ExitStack

    def cancel(self) -> None:
        """Cancel all actions: none of them commits after that. May be called from any thread."""
        self.poster.close()
        self.lake.catalog.jobs.cancel()

    def close(self, successor: EngineParts | None = None) -> None:
        """Close everything, except a lake that the successor also uses."""
        self.stack.close()
        if successor is None or successor.lake.stack is not self.lake.stack:
            self.lake.stack.close()


def open_parts(
    given: Rulebook,
    store: SqlStore,
    spark: SparkSession,
    lease: LeaseKeeper,
    policy: Policy,
    wake: Callable[[], None],
    stopped: Callable[[], bool],
    before: EngineParts | None = None,
    *,
    quarantined: Callable[[Slots, int], Quarantine],
) -> EngineParts:
    """Opens and checks all parts, then registers the rulebook; nothing can fail after that.

    `before`: the parts of the text that ran until now. `quarantined`: from the slots of the Spark
    session and `strikes_max` to the engine's quarantine. Raises InputError and EngineError.
    """
    settings = given.settings
    with ExitStack() as stack, ExitStack() as fresh:
        ledger = store.of(given.name, lease.epoch)
        state = ledger.buckets.load(apart=settings.detect != "driver")
        check_cursors(given, store, spark, state)
        if before is not None and before.lake.serves(given):
            ran = before.lake.book.rules
            lake = _same_lake(before.lake, given, policy)
        else:
            kept = store.rulebooks().get(given.name) if state.bucket else None
            ran = ran_before(kept)
            lake = open_lake(given, kept, spark, (store.id, lease.epoch), policy, fresh)
        book, catalog = lake.book, lake.catalog
        now = Now(SystemClock(), state.now)
        quarantine = quarantined(catalog.jobs.slots, settings.strikes_max)
        feed = lake_feed(lake, {store.id, *ledger.histories.stores()})
        ports = lake_ports(
            lake, ledger, store.id, feed, quarantine, now, lease.raise_lost, stopped, lease.say
        )
        spread = executors_beside(lake, feed)
        ports = replace(ports, executors=spread)
        # the same condition and actions, word for word, as when they ran before
        same = (r.name for r in given.rules.values() if _texts(r) == _texts(ran.get(r.name)))
        compiled = first_compiled(
            book,
            digests_of(book),
            lake.schemas,
            state.activations,
            ports.prepare,
            frozenset(same),
            partial(BucketDetector, executors=spread),
        )
        written = compiled.targets | {e.target for e in ledger.outbox.open_entries() if e.target}
        markers = DeltaMarkers(spark, catalog.locations)
        check_store(book, store, markers, written & catalog.locations.keys())
        poster = WebhookPoster(
            policy.webhook_hosts,
            settings.webhooks_in_flight_max,
            settings.webhook_seconds_max,
            stopped=stopped,
        )
        delta = lake_sink(lake, store.app_ids)
        sink = WatchedSink(delta, quarantine)
        made = executors(sink, poster, now)
        shared = SharedCommits(sink, Unread(store, book), settings.entries_per_commit_max)
        runner = open_runner(book, made, ledger, lease, now, wake, delta.effect, shared, stack)
        stack.callback(poster.close)
        loop = open_loop(compiled, state, ports, runner, sink, stack)
        version = ledger.versions.register(
            given.text, absolute(given.file), given.added, given.files
        )
        fresh.pop_all()
        return EngineParts(loop, version, lake, poster, stack.pop_all())


def open_lake(
    given: Rulebook,
    kept: KeptRulebook | None,
    spark: SparkSession,
    whose: tuple[str, int | None],
    policy: Policy,
    opened: ExitStack,
) -> Lake:
    """Opens the lake: its tables are there and checked. Raises InputError. `opened` closes it.

    `kept`: the rulebook that ran before. If there is one, tables that are only written may be
    missing. `whose`: store id and epoch in the name of its database, see `Catalog`.
    """
    spared = set() if kept is None else given.tables.keys() - {*sources(given).tables}
    stack = opened.enter_context(ExitStack())
    catalog = stack.enter_context(open_catalog(spark, given, *whose, policy.functions, spared))
    schemas = schemas_now(catalog)
    book = with_action_events(given, arrow_schemas(schemas))
    analyst = DeltaAnalyst(catalog, book, policy.functions, policy.at_least_once)
    return Lake(book, catalog, analyst, schemas, stack)


def _same_lake(lake: Lake, given: Rulebook, policy: Policy) -> Lake:
    """The same lake for another text, whose event types are checked."""
    check_events(lake.catalog.spark, given, lake.catalog.locations, policy.functions)
    book = with_action_events(given, arrow_schemas(lake.schemas))
    analyst = lake.analyst.of(book)
    return replace(lake, book=book, analyst=analyst)


_NOWHERE = Place()


def ran_before(kept: KeptRulebook | None) -> Mapping[str, Rule]:
    """The rules of the rulebook that ran last on the store. `kept`: None if none has."""
    try:
        return kept.known().rules if kept is not None else {}
    except InputError:  # it was of another version of the language
        return {}


def _texts(rule: Rule | None) -> object:
    if rule is None:
        return None
    condition = rule.condition
    levels = rule.levels
    return (
        (condition.text, condition.query) if condition is not None else (),
        (levels.fire.text, levels.rearm.text) if levels is not None else (),
        [replace(action, place=_NOWHERE) for action in rule.reaction.actions],
    )


def executors_beside(lake: Lake, feed: DeltaFeed | None = None) -> SparkExecutors:
    """The executors of a lake's Spark. They are looked at if buckets are theirs; under `auto` when
    the first one is. Raises EngineError `executors-differ`."""
    settings, catalog = lake.book.settings, lake.catalog
    read = feed.rows_apart if feed is not None else None
    found = SparkExecutors(catalog.spark, catalog.jobs, settings.statement_seconds_max, read)
    if settings.detect == "spark":
        found.check(component_task.run)
    return found


def lake_feed(lake: Lake, own_stores: Collection[str]) -> DeltaFeed:
    """The feed of a lake's tables. `own_stores`: whose notes are believed."""
    return DeltaFeed(
        lake.catalog.spark,
        lake.catalog.locations,
        own_stores=own_stores,
        jobs=lake.catalog.jobs,
        seconds_max=lake.book.settings.statement_seconds_max,
    )


def lake_ports(
    lake: Lake,
    ledger: Ledger,
    store_id: str,
    feed: Feed,
    quarantine: Quarantine,
    now: Callable[[], int],
    check_lease: Callable[[], None],
    stopped: Callable[[], bool] = lambda: False,
    say: Callable[[Activity], None] = lambda _: None,
) -> Ports:
    """The ports of a loop over a lake. The text of a rule that ends Spark is found by them."""
    book = lake.book

    def conditions(ends: Callable[[], bool]) -> LocalConditions:
        asked = DeltaConditions(lake.catalog, book.settings.statement_seconds_max, ends)
        return LocalConditions(WatchedConditions(asked, quarantine, ends))

    return Ports(
        ledger=ledger,
        store_id=store_id,
        check_lease=check_lease,
        prepare=preparing(book, lake.analyst),
        feed=WatchedFeed(feed, quarantine, book, stopped),
        conditions=conditions(stopped),
        asked_later=conditions(lambda: False),  # by entries: a stop lets them finish
        quarantine=quarantine,
        now=now,
        stopped=stopped,
        say=say,
    )


def lake_sink(lake: Lake, app_ids: AppIds) -> DeltaSink:
    """The sink of a lake's tables. `app_ids`: asks the store."""
    return DeltaSink(lake.catalog, lake.book, lake.analyst, app_ids)


def executors(sink: Sink, poster: Poster, now: Callable[[], int]) -> Mapping[str, Executor]:
    """By kind of entry, who runs it."""
    return {
        "sql": Statements(sink),
        "unmarked": Unmarked(sink),
        "signal": Signals(sink, now),
        "webhook": Webhooks(sink, poster, os.environ),
        "switch": Switches(),
        "condition": Decisions(),
    }


def open_runner(
    book: Rulebook,
    executors: Mapping[str, Executor],
    ledger: Ledger,
    lease: LeaseKeeper,
    now: Now,
    wake: Callable[[], None],
    effect: Callable[[Entry], Effect | None],
    shared: SharedCommits,
    stack: ExitStack,
) -> Runner:
    """The runner of a rulebook's entries. Its threads end with the stack."""
    settings = book.settings
    size = settings.actions_in_parallel_max or os.cpu_count() or 1
    crew = Crew("tidegate-act", size)
    aside = Crew("tidegate-detached", size)
    beside = Crew("tidegate-webhook", settings.webhooks_in_flight_max)
    for opened in (crew, aside, beside):
        stack.callback(opened.close)
    check = lease.check
    return Runner(book, executors, ledger, check, now, crew, beside, aside, wake, effect, shared)


def open_loop(
    compiled: CompiledRulebook,
    state: State,
    ports: Ports,
    runner: Runner,
    sink: Sink,
    stack: ExitStack,
) -> Loop:
    """A loop that goes on from a state."""
    book = compiled.rulebook
    instants = Instants(book.settings.skew_max_seconds * 1_000_000)
    targets = Targets(sink)
    stack.callback(targets.close)
    planner = Planner(book, ports, instants)
    return Loop(compiled, state, ports, planner=planner, runner=runner, targets=targets)
