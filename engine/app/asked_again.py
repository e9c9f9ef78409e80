"""A firing's query, asked again of the table versions that it saw (`tidegate why --spark`)."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.connectors.delta.analyst import DeltaAnalyst
from tidegate.connectors.delta.catalog import Catalog
from tidegate.connectors.delta.conditions import DeltaConditions
from tidegate.connectors.delta.feed import DeltaFeed
from tidegate.connectors.delta.session import start_session
from tidegate.engine.app.tables import arrow_schemas, preparing, schemas_now
from tidegate.engine.core.policy import load_policy
from tidegate.engine.core.ports import Feed
from tidegate.engine.evaluate.action_events import with_action_events
from tidegate.engine.evaluate.samples import AsOf
from tidegate.engine.evaluate.stage import questions_of
from tidegate.engine.replay.why.model import AskedAgain
from tidegate.engine.store.traces import Trace
from tidegate.rules.errors import InputError, TidegateError
from tidegate.rules.model import Coupling, Rule, Rulebook


def asked_again(
    trace: Trace,
    rule: Rule,
    book: Rulebook,
    versions: Mapping[str, int],
    *,
    spark: SparkSession | None = None,
    spark_conf: Mapping[str, str] | None = None,
    policy: str | os.PathLike[str] | None = None,
) -> AskedAgain:
    """What the query of a firing says now. `versions`: those that the store has of what it saw, by
    table. Of the other tables of an immediate query the log tells, as it did for the engine.
    `spark`: by default a session is started, with `spark_conf`. The query goes through the same
    gate as in `run`, with what `policy` allows. Raises InputError for a policy that cannot be
    read."""
    allowed = load_policy(policy)
    immediate = rule.condition_coupling is Coupling.IMMEDIATE
    if not versions and not immediate:
        said = "Asked again: nothing, for the versions that it saw are not known."
        return AskedAgain(said, versions)
    try:
        session = spark or start_session("tidegate why", spark_conf)
        with closing(Catalog(session, book, "why")) as catalog:
            catalog.open()
            schemas = schemas_now(catalog)
            whole = with_action_events(book, arrow_schemas(schemas))
            analyst = DeltaAnalyst(catalog, whole, allowed.functions, allowed.at_least_once)
            prepared = preparing(whole, analyst)(schemas, ())
            asks = questions_of(prepared.rules[rule.name], trace.one.relation)
            question = next(one for one in asks if one.asks == "if")
            if immediate:
                feed = DeltaFeed(session, catalog.locations)
                versions = seen(trace, book, question.tables, versions, feed)
            question = replace(question, versions=dict(versions))
            seconds = book.settings.statement_seconds_max
            answers = DeltaConditions(catalog, seconds).hold([question])
    except InputError as error:
        said = f"Asked again: it cannot be asked any more: {error.problems[0].message}."
        return AskedAgain(said, versions)
    except TidegateError as error:
        return AskedAgain(f"Asked again: {error}.", versions)
    if question.asked in answers.failed:
        return AskedAgain(f"Asked again: {answers.failed[question.asked].error}.", versions)
    holds = "holds" if trace.place.firing_id in answers.held else "does not hold"
    return AskedAgain(f"Asked again of the same versions, it {holds}.", versions)


def seen(
    trace: Trace, book: Rulebook, tables: Collection[str], stored: Mapping[str, int], feed: Feed
) -> dict[str, int]:
    """The versions of `tables` at the end of a firing: those that are stored, else by their log. A
    table that was not there then is left out. Raises EngineError `table-missing`."""
    end = trace.one.firings["detected_at"].cast(pa.int64())[0].as_py()
    as_of = AsOf(book.tables, feed, lambda table, _: stored.get(table))
    found = {table: as_of.version(table, end) for table in sorted(tables)}
    return {table: version for table, version in found.items() if version is not None}
