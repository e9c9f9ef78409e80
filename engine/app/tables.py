"""A rulebook and its tables together, as `run`, `validate --tables` and `adopt` need them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate import rules
from tidegate.connectors.delta.analyst import DeltaAnalyst
from tidegate.connectors.delta.catalog import Catalog
from tidegate.connectors.delta.events import check_events
from tidegate.connectors.delta.feed import DeltaFeed
from tidegate.connectors.delta.keeping import keepings
from tidegate.connectors.delta.markers import DeltaMarkers
from tidegate.connectors.delta.session import start_session
from tidegate.engine.app.adopt import adopt
from tidegate.engine.capture.read import Capture
from tidegate.engine.capture.sources import sources
from tidegate.engine.control.retention import short
from tidegate.engine.core.keeping import Keeping
from tidegate.engine.core.policy import Policy, load_policy, webhook_problems
from tidegate.engine.core.types.spark import arrow_schema
from tidegate.engine.evaluate.action_events import with_action_events
from tidegate.engine.evaluate.requirements import Prepared, prepare
from tidegate.engine.loop.compiled_rulebook import Prepare
from tidegate.engine.store import LeaseKeeper, open_store
from tidegate.rules.analysis.graph import reached, table_events, used_in
from tidegate.rules.errors import EngineError, InputError, Problem, in_order
from tidegate.rules.model import Rule, Rulebook, Sql, TableEvent
from tidegate.rules.sql.tokens import sql_words


@contextmanager
def open_catalog(
    spark: SparkSession,
    book: Rulebook,
    name: str,
    epoch: int | None = None,
    functions: Collection[str] = (),
    spared: Collection[str] = (),
) -> Iterator[Catalog]:
    """The rulebook's database in Spark, with its tables and event types checked. `functions`: those
    that the policy adds. `spared`: tables that may be missing. Raises InputError."""
    with closing(Catalog(spark, book, name, epoch)) as catalog:
        catalog.open(spared)
        check_events(spark, book, catalog.locations, functions)
        yield catalog


def schemas_now(catalog: Catalog) -> dict[str, str]:
    """The schemas of the rulebook's tables as they are now, as JSON."""
    read = catalog.spark.read.format("delta")
    return {table: read.load(at).schema.json() for table, at in catalog.locations.items()}


def arrow_schemas(schemas: Mapping[str, str]) -> dict[str, pa.Schema]:
    """Spark's schemas in JSON as Arrow's."""
    return {name: arrow_schema(schema) for name, schema in schemas.items()}


def preparing(book: Rulebook, analyst: DeltaAnalyst) -> Prepare:
    """A function from the tables' schemas to what the rules read and write."""

    def prepared(schemas: Mapping[str, str], proven: Collection[str]) -> Prepared:
        return prepare(book, arrow_schemas(schemas), analyst, proven)

    return prepared


class CheckedTables(NamedTuple):
    """What only the tables show: warnings, and for how long each keeps its past."""

    warnings: tuple[Problem, ...]
    keepings: Sequence[Keeping]


def check_tables(
    book: Rulebook,
    *,
    spark_conf: Mapping[str, str],
    policy: str | os.PathLike[str] | None = None,
) -> CheckedTables:
    """`validate --tables`: checks the rulebook, its feeds and its SQL against the tables. Raises
    InputError with all problems. What needs a missing table is not checked."""
    allowed = load_policy(policy)
    spark = start_session("tidegate validate", spark_conf)
    with closing(Catalog(spark, book, "validate")) as catalog:
        missing = catalog.create()
        problems = [*webhook_problems(book, allowed), *missing.values()]
        problems += _wrong(_without(book, missing), catalog, allowed)
        doubtful = [*_null_keys(book, schemas_now(catalog))]
        kept = keepings(catalog, book.tables)
        doubtful += short(book, kept)
    if problems:
        raise InputError(in_order(problems), in_order(doubtful))
    return CheckedTables(in_order(doubtful), kept)


def _null_keys(book: Rulebook, schemas: Mapping[str, str]) -> Iterator[Problem]:
    """Warnings of key columns that may be null: to a rule all nulls are one key (S7)."""
    nullable = {
        table: {
            field["name"].lower() for field in json.loads(schema)["fields"] if field["nullable"]
        }
        for table, schema in schemas.items()
    }
    used = {
        (event, column)
        for rule in book.rules.values()
        for event, columns in rule.pattern.per.items()
        for column in columns
    }
    for name, parameter in sorted(used):
        event = book.events.get(name)
        if not isinstance(event, TableEvent):
            continue
        column = event.columns.get(parameter, parameter)
        known = rf"(?i)(?<![\w.]){re.escape(column)}`?\s+IS\s+NOT\s+NULL\b"
        kept = re.search(known, event.where or "")
        if kept is None and column.lower() in nullable.get(event.table, ()):
            message = f"{column} may be null, and rows where it is are all of one key"
            hint = f"leave them out, where: {column} IS NOT NULL, or declare the column NOT NULL"
            yield Problem("null-key", message, event.place, hint)


def _wrong(book: Rulebook, catalog: Catalog, allowed: Policy) -> Iterator[Problem]:
    """The problems of event types, SQL and feeds of a rulebook whose tables are all there."""
    said: set[tuple[str, int]] = set()
    try:
        check_events(catalog.spark, book, catalog.locations, allowed.functions)
    except InputError as error:
        said = {(problem.code, problem.place.line) for problem in error.problems}
        yield from error.problems
    capture, schemas = None, schemas_now(catalog)
    try:
        book = with_action_events(book, arrow_schemas(schemas))
        analyst = DeltaAnalyst(catalog, book, allowed.functions, allowed.at_least_once)
        prepared = preparing(book, analyst)(schemas, ())
        capture = None if said else Capture(book, prepared.needs)
    except InputError as error:
        for problem in error.problems:
            if problem.code != "unknown-column" or (problem.code, problem.place.line) not in said:
                yield problem
    feed = DeltaFeed(catalog.spark, catalog.locations)
    for name in sources(book).tables:
        table = book.tables[name]
        try:
            head = feed.head(table, None)
            if capture is not None:
                capture.used(name, head.cursor.schema)
        except EngineError as error:
            yield Problem(error.code, error.message, table.place, error.hint)


def _without(book: Rulebook, missing: Collection[str]) -> Rulebook:
    """A rulebook without the tables in `missing`, and without all that needs any of them."""
    lost = {event.name for event in table_events(book) if event.table in missing}
    named = {name: used_in(rule.pattern.on, ()) for name, rule in book.rules.items()}
    gone = reached(lost, lambda name: (rule for rule, names in named.items() if name in names))
    names = {name.lower() for name in missing}
    return replace(
        book,
        tables={name: table for name, table in book.tables.items() if name not in missing},
        events={name: event for name, event in book.events.items() if name not in lost},
        rules={n: _without_texts(r, names) for n, r in book.rules.items() if n not in gone},
    )


def _without_texts(rule: Rule, tables: Collection[str]) -> Rule:
    """A rule without the SQL that names one of these tables (in small letters)."""
    condition = rule.condition
    if condition is not None and condition.query and _mentions(condition.text, tables):
        condition = None
    actions = tuple(
        action
        for action in rule.reaction.actions
        if not (isinstance(action, Sql) and _mentions(action.text, tables))
    )
    reaction = replace(rule.reaction, actions=actions)
    return replace(rule, condition=condition, reaction=reaction)


def _mentions(text: str, tables: Collection[str]) -> bool:
    return any(word.name.lower() in tables for word in sql_words(text))


def adopt_store(
    rulebook: str | os.PathLike[str],
    *,
    store: str,
    repeat: bool,
    settings: Mapping[str, str] | None = None,
    spark_conf: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """`tidegate adopt`: see `engine.app.adopt.adopt`. Raises InputError, and EngineError
    `no-store`, `lease-held`, `table-unreadable`, nothing being changed then."""
    book = rules.load(rulebook, settings=settings or {})
    with open_store(store, create=False) as opened, ExitStack() as stack:
        keeper = LeaseKeeper(opened, book.name, book.settings.lease_seconds)
        lease = stack.enter_context(keeper)
        spark = start_session("tidegate adopt", spark_conf)
        catalog = stack.enter_context(open_catalog(spark, book, f"{opened.id}_adopt"))
        markers = DeltaMarkers(spark, catalog.locations)
        return adopt(book, opened, lease.epoch, markers, repeat=repeat)
