"""Evaluates conditions: expressions of many rules in one job; queries of pinned versions (G14)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.connectors.delta.analyst import group
from tidegate.connectors.delta.catalog import Catalog, active_session_kept, collected, show
from tidegate.connectors.delta.faults import SPARK_ERRORS, check_alive, fault
from tidegate.connectors.delta.jobs import OverrunError
from tidegate.connectors.delta.plans import expression
from tidegate.connectors.delta.stops import is_gone
from tidegate.engine.core.columns.transitions import transition_table
from tidegate.engine.core.ports import check_going_on
from tidegate.engine.core.relation_files import Relation, RelationFiles, in_memory
from tidegate.engine.core.text.logs import ASKING, go_on
from tidegate.engine.core.values import Answers, Failure, Question

EXPRESSIONS_PER_JOB = 50


class DeltaConditions:
    """The conditions of one rulebook, in a session of its own. Temporary views over the pinned
    versions hide the declared tables there.

    A job that takes longer than `seconds_max` is cancelled. Once the engine was asked to stop, no
    job begins: StoppedError.
    """

    def __init__(
        self, catalog: Catalog, seconds_max: int, stopped: Callable[[], bool] = lambda: False
    ) -> None:
        self._stopped = stopped
        self._jobs = catalog.jobs
        self._seconds_max = seconds_max
        with catalog.session() as session:
            self._session = session
        self._locations = catalog.locations
        self._shown: dict[str, int] = {}  # versions by table

    def hold(self, questions: Sequence[Question]) -> Answers:
        """See `engine.core.ports.Conditions`."""
        with active_session_kept(self._session):
            alike = _alike(q for q in questions if not q.condition.query)
            found = []
            for at in range(0, len(alike), EXPRESSIONS_PER_JOB):
                job = alike[at : at + EXPRESSIONS_PER_JOB]
                go_on(ASKING, sum(map(len, job)))
                found.append(self._expressions(job))
            for question in questions:
                if question.condition.query:
                    check_going_on(self._stopped)
                    go_on(ASKING)
                    found.append(self._query(question))
        return _together(found)

    def sample(self, text: str, pinned: Mapping[str, int]) -> pa.Scalar | Failure | None:
        """See `engine.core.ports.Conditions`."""
        with active_session_kept(self._session):
            try:
                for table, version in pinned.items():
                    self._pin(table, version)
                found = self._jobs.run(
                    self._seconds_max, lambda: collected(self._session.sql(text).limit(2))
                )
            except (*SPARK_ERRORS, OverrunError) as error:
                return self._failure("a sample failed:", error)
        if len(found) > 1:
            return Failure("a sample failed: its query has several rows", lasting=True)
        return found.column(0)[0] if len(found) else None

    def _expressions(self, asked: Sequence[Sequence[Question]]) -> Answers:
        """One job for all; where it fails, one for each question, to find the one that fails. After
        a missed deadline none is tried again: all of them fail, for each may be the cause."""
        check_going_on(self._stopped)
        try:
            return self._jobs.run(self._seconds_max, lambda: self._said(asked))
        except OverrunError as error:
            return _together(self._failed(q, error) for alike in asked for q in alike)
        except SPARK_ERRORS as error:
            if len(asked) == 1 and len(asked[0]) == 1:
                return self._failed(asked[0][0], error)
        return _together(self._expressions([[q]]) for alike in asked for q in alike)

    def _expression(self, alike: Sequence[Question]) -> DataFrame:
        """The firings for which an expression holds: SELECT firing_id .. GROUP BY .. HAVING."""
        first = alike[0]
        frame = self._rows([q.relation for q in alike])
        columns = dict.fromkeys(("firing_id", *first.group))
        grouped = group(frame, tuple(columns), expression(self._session, first.condition.text))
        return grouped.where("_0").select("firing_id", F.lit(first.asks).alias("asks"))

    def _rows(self, relations: Sequence[Relation]) -> DataFrame:
        """The rows of several relations with one schema."""
        in_files = [r for r in relations if isinstance(r, RelationFiles)]
        tables = [r for r in relations if not isinstance(r, RelationFiles)]
        some = [*in_files, *([pa.concat_tables(tables)] if tables else [])]
        return reduce(DataFrame.unionAll, [show(self._session, one) for one in some])

    def _query(self, question: Question) -> Answers:
        try:
            for table in sorted(question.tables):
                if table not in question.versions:
                    gone = f"the condition reads {table}, which is not there"
                    return Answers(failed={question.asked: Failure(gone)})
                self._pin(table, question.versions[table])
            show(self._session, question.relation, "event", f"p_{question.rule}")
            for name in sorted(question.transitions):
                table = transition_table(in_memory(question.relation), name)
                show(self._session, table, name)
            return Answers(self._jobs.run(self._seconds_max, lambda: self._held(question)))
        except (*SPARK_ERRORS, OverrunError) as error:
            past = is_gone(error) and _past(question, error)
            return past or self._failed(question, error)

    def _said(self, asked: Sequence[Sequence[Question]]) -> Answers:
        """The firings that hold, by what is asked of them: `if`, `fire` or `rearm`."""
        rows = collected(reduce(DataFrame.unionAll, map(self._expression, asked)))

        def ids(asks: str) -> frozenset[str]:
            return frozenset(rows.filter(pc.equal(rows["asks"], asks))["firing_id"].to_pylist())

        return Answers(ids("if"), {}, ids("fire"), ids("rearm"))

    def _held(self, question: Question) -> frozenset[str]:
        found = self._session.sql(question.condition.text).select("firing_id")
        ids = collected(found)["firing_id"]
        return frozenset(ids.drop_null().to_pylist())  # null names no firing

    def _failed(self, question: Question, error: BaseException) -> Answers:
        said = f"the condition at {question.condition.place} failed:"
        return Answers(failed={question.asked: self._failure(said, error)})

    def _failure(self, said: str, error: BaseException) -> Failure:
        check_alive(error)
        if isinstance(error, OverrunError):
            text = f"{said} {error} (statement_seconds_max = {self._seconds_max})"
            return Failure(text, overrun=True)
        found = fault(error)
        return Failure(f"{said} [{found.condition}] {found.message}", found.details)

    def _pin(self, table: str, version: int) -> None:
        if self._shown.get(table) != version:
            reader = self._session.read.format("delta").option("versionAsOf", version)
            reader.load(self._locations[table]).createOrReplaceTempView(table)
            self._shown[table] = version


def _alike(questions: Iterable[Question]) -> list[list[Question]]:
    """Questions grouped by text and schema: one plan serves a group."""
    found: dict[object, list[Question]] = {}
    for question in questions:
        text = question.condition.text
        key = (question.asks, text, question.group, question.relation.schema)
        found.setdefault(key, []).append(question)
    return list(found.values())


def _past(question: Question, error: BaseException) -> Answers:
    seen = ", ".join(f"{table} version {v}" for table, v in sorted(question.versions.items()))
    why = Failure(
        f"the condition at {question.condition.place} needs versions that are gone (VACUUM, or the "
        f"table's retention): {seen}; a redrive reads the tables as they are by then",
        fault(error).details,
        lasting=True,
    )
    return Answers(failed={question.asked: why})


def _together(found: Iterable[Answers]) -> Answers:
    answers = list(found)
    return Answers(
        frozenset[str]().union(*(a.held for a in answers)),
        {asked: why for a in answers for asked, why in a.failed.items()},
        frozenset[str]().union(*(a.fires for a in answers)),
        frozenset[str]().union(*(a.rearms for a in answers)),
    )
