"""`tidegate backtest`: a rulebook over the past of its real tables. Nothing is written anywhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta

from pyspark.sql import SparkSession

from tidegate import rules
from tidegate.connectors.clock import SystemClock
from tidegate.connectors.delta.watchdog import DeltaHealth
from tidegate.engine.app.parts import Lake, lake_feed, lake_ports, lake_sink, open_lake
from tidegate.engine.app.sessions import Sessions
from tidegate.engine.app.tables import arrow_schemas
from tidegate.engine.core.policy import UNMARKED, Policy, load_policy
from tidegate.engine.core.ports import Feed
from tidegate.engine.core.text.logs import hushed
from tidegate.engine.detect.scripts.doubts import check_machines
from tidegate.engine.loop.ports import Ports
from tidegate.engine.quarantine.quarantine import Quarantine
from tidegate.engine.quarantine.turns import GATE
from tidegate.engine.replay.backtest.chosen import chosen
from tidegate.engine.replay.backtest.conditions import Skipping
from tidegate.engine.replay.backtest.ledger import PastLedger
from tidegate.engine.replay.backtest.model import Backtest
from tidegate.engine.replay.backtest.span import ends_of
from tidegate.engine.replay.backtest.trial import Asked, Progress, Tables, tried
from tidegate.engine.replay.memory.clock import VirtualClock
from tidegate.engine.store import Ledger, SqlStore, open_store
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place
from tidegate.rules.expressions.durations import duration_micros
from tidegate.rules.model import Rulebook

STORE = "store"
"""As `against`: the rulebook's registered version in the store."""
Given = str | os.PathLike[str] | Rulebook


class Everybody(frozenset[str]):
    """The stores whose notes are believed where none is named: any may be the one that ran."""

    def __contains__(self, store: object) -> bool:
        return True


def backtest(
    rulebook: Given,
    begin: str | datetime,
    end: str | datetime | None = None,
    *,
    rule: str | None = None,
    context: str | None = None,
    warm_up: str | timedelta | None = None,
    store: str | None = None,
    against: Given | None = None,
    conditions: str = "as-of",
    spark: SparkSession | None = None,
    spark_conf: Mapping[str, str] | None = None,
    settings: Mapping[str, str | float] | None = None,
    policy: str | os.PathLike[str] | None = None,
    progress: Progress = lambda _, __: None,
) -> Backtest:
    """What a rulebook would have done from `begin` to `end`, by default until now.

    `begin`, `end`: a time, ISO 8601 in the rulebook's zone or how long ago (`7 d`), or a version of
    a table (`orders@80`, `80` where only one table raises events); both are in the span. `rule`:
    the only one that is shown. `context`: in place of the rules' own. `warm_up`: how long before
    `begin` it looks already; by default as long as the rules remember. `store`: a database URL; its
    signals, the instants that it gave to commits, and what switched rules are used, and nothing is
    written to it. `against`: another rulebook over the same past, or `store` for the registered
    one; the result's `against` is what that found. `conditions`: `as-of`, or `skip` for not asking
    queries.

        found = tidegate.backtest("bank.yaml", "2026-03-01", "2026-04-01", spark=spark)
        found.firings.group_by("rule").aggregate([([], "count_all")])

    Raises InputError: the rulebook, the span, or the tables' history is not as it must be.
    """
    if conditions not in ("as-of", "skip"):
        message, hint = f"unknown conditions {conditions!r}", "as-of, skip"
        raise InputError([Problem("conditions", message, word_place("--conditions"), hint)])
    asked = Asked(begin, end, rule, _micros(warm_up), conditions == "skip")
    allowed = replace(load_policy(policy), at_least_once=frozenset(UNMARKED))
    texts = rules.setting_texts(settings)
    books = [_loaded(rulebook, texts, allowed, rule, context)]
    now = SystemClock().wall()
    ends_of(begin, end, books[0][1], now)  # wrong ones are refused before Spark starts
    with ExitStack() as stack:
        opened = None if store is None else stack.enter_context(open_store(store, create=False))
        past = None if opened is None else _past(opened, books[0][1].name)
        if against is not None:
            books.append(_other(against, books[0][1], opened, texts, allowed, rule))
        sessions = Sessions(spark, spark_conf or {})
        stack.callback(sessions.close)
        session = sessions.get()
        tables: list[Tables] = []
        own: Mapping[str, str] = {}  # the locations of the tables that the store knows
        for number, (label, book) in enumerate(books):
            whose = (f"backtest{number}", None)
            lake = open_lake(book, None, session, whose, allowed, stack)
            own = lake.catalog.locations if not tables else own
            names = called(lake.catalog.locations, own)
            tables.append(_tables(label, book, lake, past, names, skip=asked.skip))
        with hushed():
            return tried(tables, asked, now, progress)


def _past(store: SqlStore, rulebook: str) -> tuple[str, Ledger]:
    """The store's id, and the past of the rulebook that is tried. Raises InputError: the store
    knows nothing of it."""
    kept = store.rulebooks()
    if rulebook not in kept:
        message = f"the store has no rulebook `{rulebook}`"
        hint = did_you_mean(rulebook, kept) or "leave --store out: the tables' logs are enough"
        raise InputError([Problem("no-rulebook", message, word_place("--store"), hint)])
    return store.id, store.of(rulebook)


def _micros(said: str | timedelta | None) -> int | None:
    if isinstance(said, timedelta):
        return said // timedelta(microseconds=1)
    try:
        return None if said is None else 0 if said == "0" else duration_micros(said)
    except ValueError as error:
        problem = Problem("duration", f"{said!r}: {error}", word_place("--warm-up"), "such as 2 d")
        raise InputError([problem]) from None


def _loaded(
    given: Given,
    settings: Mapping[str, str] | None,
    allowed: Policy,
    rule: str | None,
    context: str | None = None,
) -> tuple[str, Rulebook]:
    """A rulebook, and what a report calls it."""
    book = given if isinstance(given, Rulebook) else rules.load(given, settings=settings or {})
    check_machines(book)
    label = "<text>" if book.file is None else os.path.relpath(book.file)
    label += "" if context is None else f" in {context}"
    return label, replace(chosen(book, rule, context), python=allowed.python)


def _other(
    against: Given,
    book: Rulebook,
    store: SqlStore | None,
    settings: Mapping[str, str] | None,
    allowed: Policy,
    rule: str | None,
) -> tuple[str, Rulebook]:
    """The rulebook that the first one is compared with. It is tried in its place, under its name:
    so what both detect has the same ids, and causes the signals that the past has. Its firings are
    shown if it has the rule that is asked for."""
    if against != STORE:
        label, other = _loaded(against, settings, allowed, None)
        own = rule if rule in other.rules else None
        return label, replace(chosen(other, own, None), name=book.name)
    if store is None:
        message, hint = "no store is named", "--store URL, or TIDEGATE_STORE"
        raise InputError([Problem("no-store", message, word_place("--against"), hint)])
    kept = store.rulebooks()[book.name]
    _, other = _loaded(kept.load(settings), settings, allowed, None)
    own = rule if rule in other.rules else None
    return f"registered version {kept.version}", chosen(other, own, None)


def called(locations: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """By table at one of `locations`, what the store calls it, which has its `own` tables: of
    several at one location that of the same name, or the first one."""
    names: dict[str, str] = {}
    for name, at in own.items():
        names.setdefault(at, name)
    return {
        table: table if own.get(table) == at else names[at]
        for table, at in locations.items()
        if at in names
    }


def _tables(
    label: str,
    book: Rulebook,
    lake: Lake,
    past: tuple[str, Ledger] | None,
    names: Mapping[str, str],
    *,
    skip: bool,
) -> Tables:
    """A rulebook over its lake. `past`: the id of the store, and what that knows of the past.
    `names`: by table, what the store's rulebook calls it."""
    own = Everybody() if past is None else {past[0], *past[1].histories.stores()}

    def ports_of(feed: Feed, ledger: PastLedger, clock: VirtualClock) -> Ports:
        health = DeltaHealth(lake.catalog.spark, lake.catalog.jobs.slots, own=False)
        quarantine = Quarantine(ledger, GATE, health, book.settings.strikes_max)
        ports = lake_ports(lake, ledger, ledger.store.id, feed, quarantine, clock, ledger.check)
        if skip:
            ports.conditions = Skipping(ports.conditions)
        return ports

    return Tables(
        label,
        book,
        arrow_schemas(lake.schemas),
        lake.analyst,
        lake_feed(lake, own),
        lambda ledger: lake_sink(lake, ledger.store.app_ids),
        ports_of,
        None if past is None else past[1].placed,
        names,
    )
