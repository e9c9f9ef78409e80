"""A firing's query, asked again of the table versions that it saw (`tidegate why --spark`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace

from pyspark.sql import SparkSession

from tidegate.connectors.delta.analyst import DeltaAnalyst
from tidegate.connectors.delta.catalog import Catalog
from tidegate.connectors.delta.conditions import DeltaConditions
from tidegate.connectors.delta.session import start_session
from tidegate.engine.app.tables import arrow_schemas, preparing, schemas_now
from tidegate.engine.core.policy import load_policy
from tidegate.engine.evaluate.action_events import with_action_events
from tidegate.engine.evaluate.stage import questions_of
from tidegate.engine.store.traces import Trace
from tidegate.rules.errors import InputError, TidegateError
from tidegate.rules.model import Rule, Rulebook


def asked_again(
    trace: Trace,
    rule: Rule,
    book: Rulebook,
    versions: Mapping[str, int],
    *,
    spark: SparkSession | None = None,
    spark_conf: Mapping[str, str] | None = None,
    policy: str | os.PathLike[str] | None = None,
) -> str:
    """A sentence on what the query of a firing says now. `versions`: those that it saw, by table.
    `spark`: by default a session is started, with `spark_conf`. The query goes through the same
    gate as in `run`, with what `policy` allows. Raises InputError for a policy that cannot be
    read."""
    allowed = load_policy(policy)
    if not versions:
        return "Asked again: nothing, for the versions that it saw are not known."
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
            question = replace(question, versions=dict(versions))
            seconds = book.settings.statement_seconds_max
            answers = DeltaConditions(catalog, seconds).hold([question])
    except InputError as error:
        return f"Asked again: it cannot be asked any more: {error.problems[0].message}."
    except TidegateError as error:
        return f"Asked again: {error}."
    if question.asked in answers.failed:
        return f"Asked again: {answers.failed[question.asked].error}."
    holds = trace.place.firing_id in answers.held
    return f"Asked again of the same versions, it {'holds' if holds else 'does not hold'}."
