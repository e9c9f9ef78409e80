"""`why-not` over a store and the real tables. The store answers first; Spark is started, and the
tables are opened, where only these can tell."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.engine.app.parts import lake_feed, open_lake
from tidegate.engine.app.sessions import Sessions
from tidegate.engine.control.rulebooks import the_rulebook
from tidegate.engine.core.policy import Policy, load_policy
from tidegate.engine.core.ports import Feed, ReadRequest, TableHead
from tidegate.engine.core.values import Cursor, TableRange
from tidegate.engine.replay.why_not.answer import WhyNot
from tidegate.engine.replay.why_not.asking import Question, asked
from tidegate.engine.store import SqlStore, open_store
from tidegate.rules.model import Rulebook, Table


def why_not(
    url: str,
    name: str | None,
    question: Question,
    *,
    spark_conf: Mapping[str, str] | None = None,
    policy: str | os.PathLike[str] | None = None,
) -> WhyNot:
    """`tidegate why-not`. Raises InputError for a rule that is not there or a wrong key, and
    EngineError where the store cannot be read."""
    allowed = load_policy(policy)
    with open_store(url, create=False) as store, ExitStack() as stack:
        sessions = Sessions(None, spark_conf or {})
        stack.callback(sessions.close)
        book = the_rulebook(store, name)
        return ask(store, book.name, question, sessions.get, allowed)


def ask(
    store: SqlStore,
    rulebook: str,
    question: Question,
    session: Callable[[], SparkSession],
    policy: Policy,
) -> WhyNot:
    """The answer of a store. `session` is asked for a Spark session where one is needed."""

    @contextmanager
    def opened(book: Rulebook) -> Iterator[Feed]:
        with ExitStack() as stack:
            yield LateFeed(lambda: _feed(store, book, session(), policy, stack))

    return asked(store.of(rulebook), question, opened, store.wall())


def _feed(
    store: SqlStore, book: Rulebook, spark: SparkSession, policy: Policy, stack: ExitStack
) -> Feed:
    """The feed of the tables that a rulebook's event types are of. Raises InputError."""
    whose = (f"{store.id}_why_not", None)
    lake = open_lake(book, None, spark, whose, policy, stack)
    return lake_feed(lake, {store.id, *store.of(book.name).histories.stores()})


class LateFeed:
    """A feed that is opened when it is first asked: many questions need none. Implements
    `engine.core.ports.Feed`; each method is that of the protocol."""

    def __init__(self, opened: Callable[[], Feed]) -> None:
        self._opened = opened
        self._known: Feed | None = None

    @property
    def _feed(self) -> Feed:
        if self._known is None:
            self._known = self._opened()
        return self._known

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        return self._feed.head(table, after)

    def version(self, table: Table) -> int:
        return self._feed.version(table)

    def earliest(self, table: Table, cursor: Cursor, column: str) -> int | None:
        return self._feed.earliest(table, cursor, column)

    def version_at(self, table: Table, instant: int) -> int | None:
        return self._feed.version_at(table, instant)

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        return self._feed.read(table, span, request)

    def history(self, table: Table, span: TableRange) -> pa.Table:
        return self._feed.history(table, span)

    def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
        return self._feed.decide(rows, where, source)
