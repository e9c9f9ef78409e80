"""A rulebook beside its tables: what `run`, `validate --tables` and `adopt` look at."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from pyspark.sql import SparkSession

from tidegate import rules
from tidegate.connectors.delta.analyst import DeltaAnalyst
from tidegate.connectors.delta.catalog import Catalog
from tidegate.connectors.delta.events import check_events
from tidegate.connectors.delta.feed import DeltaFeed
from tidegate.connectors.delta.markers import DeltaMarkers
from tidegate.connectors.delta.session import start_session
from tidegate.engine.adopt import adopt
from tidegate.engine.basis import Prepare
from tidegate.engine.capture.read import Capture
from tidegate.engine.capture.sources import sources
from tidegate.engine.detector.edges import with_edges
from tidegate.engine.evaluate.prepare import Prepared, prepare
from tidegate.engine.policy import load_policy
from tidegate.engine.sparktypes import arrow_schema
from tidegate.engine.store import LeaseKeeper, open_store
from tidegate.rules.errors import EngineError, InputError, Problem
from tidegate.rules.model import Change, EventType, Rulebook, TableEvent


@contextmanager
def open_catalog(
    spark: SparkSession,
    book: Rulebook,
    name: str,
    epoch: int | None = None,
    functions: Collection[str] = (),
    spared: Collection[str] = (),
) -> Iterator[Catalog]:
    """The rulebook's database in Spark, tables and event types checked; `functions` that the
    operator's policy adds. Tables in `spared` may be gone. Raises InputError."""
    catalog = Catalog(spark, book, name, epoch)
    catalog.open(spared)
    try:
        check_events(spark, book, catalog.locations, functions)
        yield catalog
    finally:
        catalog.close()


def schemas_now(catalog: Catalog) -> dict[str, str]:
    """The schemas of the rulebook's tables as they are now, as JSON."""
    read = catalog.spark.read.format("delta")
    return {table: read.load(at).schema.json() for table, at in catalog.locations.items()}


def preparing(book: Rulebook, analyst: DeltaAnalyst) -> Prepare:
    """What the rules read and write, for schemas to come."""

    def prepared(schemas: Mapping[str, str], proven: Collection[str]) -> Prepared:
        arrow = {table: arrow_schema(schema) for table, schema in schemas.items()}
        return prepare(book, arrow, analyst, proven)

    return prepared


def check_tables(
    book: Rulebook,
    *,
    spark_conf: Mapping[str, str],
    policy: str | os.PathLike[str] | None = None,
) -> None:
    """`validate --tables`: tables, feeds and SQL against what is there. Raises InputError, also for
    a transaction: which columns it would have is not known to `run` yet."""
    if lacking := [_not_live(e) for e in book.events.values() if _is_transaction(e)]:
        raise InputError(lacking)
    functions = load_policy(policy).functions
    spark = start_session("tidegate validate", spark_conf)
    problems: list[Problem] = []
    with open_catalog(spark, book, "validate", functions=functions) as catalog:
        book = with_edges(book, book.events)
        analyst = DeltaAnalyst(catalog, book, functions)
        prepared = preparing(book, analyst)(schemas_now(catalog), ())
        feed = DeltaFeed(spark, catalog.locations)
        capture = Capture(book, prepared.needs)
        for name in sources(book).tables:
            table = book.tables[name]
            try:
                capture.used(name, feed.head(table, None).cursor.schema)
            except EngineError as error:
                problems.append(Problem(error.code, error.message, table.place, error.hint))
    if problems:
        raise InputError(problems)


def adopt_store(
    rulebook: str | os.PathLike[str],
    *,
    store: str,
    repeat: bool,
    settings: Mapping[str, str] | None = None,
    spark_conf: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """`tidegate adopt`: see `engine.adopt.adopt`. Raises InputError, and EngineError `no-store`,
    `lease-held`, `table-unreadable`, nothing being changed then."""
    book = rules.load(rulebook, settings=settings or {})
    with open_store(store, create=False) as opened, ExitStack() as stack:
        lease = LeaseKeeper(opened, book.name, book.settings.lease_seconds)
        stack.enter_context(lease)
        spark = start_session("tidegate adopt", spark_conf)
        catalog = stack.enter_context(open_catalog(spark, book, f"{opened.id}_adopt"))
        markers = DeltaMarkers(spark, catalog.locations)
        return adopt(book, opened, lease.epoch, markers, repeat=repeat)


def _is_transaction(event: EventType) -> bool:
    return isinstance(event, TableEvent) and event.change is Change.TRANSACTION


def _not_live(event: EventType) -> Problem:
    message = f"event {event.name}: `run` has no transactions yet, so its SQL cannot be checked"
    return Problem("not-live", message, event.place, "validate without --tables, and simulate it")
