"""What an engine needs before its loop: a rulebook, a session, and tables that go on where they
were left."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from tidegate import rules
from tidegate.connectors.delta.feed import DeltaFeed
from tidegate.engine.capture.resets import with_resets
from tidegate.engine.core.policy import Policy
from tidegate.engine.core.state import State
from tidegate.engine.core.webhooks import webhook_problems
from tidegate.engine.detect.scripts.doubts import check_machines
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import InputError
from tidegate.rules.model import Rulebook


def load_allowed(
    rulebook: str | os.PathLike[str] | Rulebook, settings: Mapping[str, str], policy: Policy
) -> Rulebook:
    """A rulebook, whose webhooks the policy lets through. Raises InputError."""
    book = rulebook if isinstance(rulebook, Rulebook) else rules.load(rulebook, settings=settings)
    return allowed(book, policy)


def allowed(book: Rulebook, policy: Policy) -> Rulebook:
    """The rulebook, with the Python functions that the policy lets its scripts call. The policy
    lets its webhooks through, their secrets are there, and no `machine: dfa` is too large. Raises
    InputError."""
    if refused := webhook_problems(book, policy, os.environ):
        raise InputError(refused)
    check_machines(book)
    return replace(book, python=policy.python)


def check_cursors(book: Rulebook, store: SqlStore, spark: SparkSession, state: State) -> None:
    """Whether every table goes on where its cursor stands (G10), before Spark is asked, to which a
    damaged log is only a table that cannot be read. Catalog tables: see the loop."""
    _, kept = with_resets(book, state, store.pending_controls(book.name))
    feed = DeltaFeed(spark)
    for name, cursor in kept.cursors.items():
        table = book.tables.get(name)
        if table is not None and table.path is not None:
            feed.head(table, cursor)
