"""Ports over a Spark that some texts end, or hold up, and a process that starts it again."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from tests.support.memorystore import MemoryStore
from tidegate.engine.core.entries import Entry, Fate
from tidegate.engine.core.ports import KIND, VERSION, ReadRequest, SinkError, TableHead
from tidegate.engine.core.values import (
    Answers,
    ChangeKind,
    Cursor,
    Failure,
    Firings,
    Question,
    TableRange,
)
from tidegate.engine.quarantine.quarantine import Quarantine
from tidegate.engine.replay.memory.opening import Healthy, quarantine
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Table

T = TypeVar("T")
LOST = EngineError("spark-lost", "Spark is gone: it was killed", "run again")


@dataclass
class Spark:
    """Counts how often it has ended, and what it was asked."""

    deaths: int = 0
    overruns: int = 0
    asked: Counter[str] = field(default_factory=Counter)

    def end(self) -> EngineError:
        self.deaths += 1
        return EngineError(LOST.code, LOST.message, LOST.hint)

    def overrun(self) -> EngineError:
        self.overruns += 1
        return EngineError("read-overrun", "it took longer than 1 s", "correct it")


@dataclass
class Engine:
    """What goes on from the store whenever Spark has ended; `restarted` processes forget all that
    only memory knew."""

    store: MemoryStore = field(default_factory=MemoryStore)
    health: Healthy = field(default_factory=Healthy)
    most: int = 10

    def __post_init__(self) -> None:
        self.begin()

    def begin(self, *, stopped: bool = False) -> None:
        epoch = self.store.of("poison").lease.acquire("one", 600)
        self.quarantine: Quarantine = quarantine(
            self.store.of("poison", epoch).suspects, self.health, self.most, lambda: stopped
        )

    def through(self, call: Callable[[], T], *, restarts: bool = False) -> T:
        """What a call gives once Spark has been started as often as it takes."""
        for _ in range(200):
            try:
                return call()
            except EngineError as error:
                if error.code != "spark-lost":
                    raise
                if restarts:
                    self.begin()
        raise AssertionError("Spark ends for ever")


class PoisonFeed:
    """Rows (id, kind) of a table; kind says what the `where` does to them."""

    def __init__(self, spark: Spark, versions: Mapping[int, Sequence[tuple[int, str]]]) -> None:
        self.spark, self.versions = spark, versions

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        raise AssertionError

    def version(self, table: Table) -> int:
        raise AssertionError

    def earliest(self, table: Table, cursor: Cursor, column: str) -> int | None:
        raise AssertionError

    def version_at(self, table: Table, instant: int) -> int | None:
        raise AssertionError

    def history(self, table: Table, span: TableRange) -> pa.Table:
        raise AssertionError

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        versions = [v for v in range(span.first, span.last + 1) if v not in span.skipped]
        assert versions, "nothing is to be read"
        rows = [(version, *row) for version in versions for row in self.versions[version]]
        found = pa.table(
            {
                KIND: pa.array([ChangeKind.INSERT] * len(rows), pa.int8()),
                VERSION: pa.array([row[0] for row in rows], pa.int64()),
                "id": pa.array([row[1] for row in rows], pa.int64()),
                "kind": pa.array([row[2] for row in rows], pa.string()),
            }
        )
        for name, text in request.where.items():
            found = found.append_column(name, self._decided(found, text))
        if request.only:
            kept = [self._decided(found, text) for text in request.only]
            wanted = [
                any(v is None or v for v in row) for row in zip(*map(list, kept), strict=True)
            ]
            found = found.filter(pa.array([bool(w) for w in wanted], pa.bool_()))
        return found.select([KIND, VERSION, *request.columns, *request.where])

    def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
        if "variant" in where.values():
            raise EngineError("table-unreadable", "[UNRESOLVED_COLUMN] `v`", "correct it")
        return pa.table({name: self._decided(rows, text) for name, text in where.items()})

    def _decided(self, rows: pa.Table, text: str) -> pa.Array:
        """`text` is the kind of rows for which the predicate is true; each row may end Spark."""
        self.spark.asked[text] += 1
        kinds = rows.column("kind").to_pylist()
        if text == "broken":
            raise EngineError("table-unreadable", "[StackOverflowError] failed", "correct it")
        if text in ("harmless", "variant"):  # `variant` is of a column that only the table has
            return pa.array([kind == text for kind in kinds], pa.bool_())
        if "death" in kinds:
            raise self.spark.end()
        if "overrun" in kinds:
            raise self.spark.overrun()
        if "failure" in kinds:
            raise EngineError("table-unreadable", "[StackOverflowError] failed", "correct it")
        said = [None if kind == "raises" else kind == text for kind in kinds]
        return pa.array(said, pa.bool_())


@dataclass
class PoisonConditions:
    """Conditions by rule: what a rule's condition does to Spark."""

    spark: Spark
    does: Mapping[str, str]
    jobs: list[tuple[str, ...]] = field(default_factory=list)

    def hold(self, questions: Sequence[Question]) -> Answers:
        rules = tuple(q.rule for q in questions)
        self.jobs.append(rules)
        kinds = {self.does.get(rule) for rule in rules}
        if "death" in kinds:
            raise self.spark.end()
        if "overrun" in kinds:
            self.spark.overruns += 1
            late = Failure("it took longer than 1 s", overrun=True)
            return Answers(failed={q.asked: late for q in questions})
        held = (q.relation["firing_id"].to_pylist() for q in questions)
        return Answers(frozenset(one for ids in held for one in ids))

    def sample(self, text: str, pinned: Mapping[str, int]) -> pa.Scalar | Failure | None:
        if self.does.get(text) == "death":
            raise self.spark.end()
        if self.does.get(text) == "overrun":
            return Failure("it took longer than 1 s", overrun=True)
        return pa.scalar(7)


@dataclass
class PoisonSink:
    """Statements by rule: what they do to Spark. `landed` are the numbers of those that ran."""

    spark: Spark
    does: Mapping[str, str]
    landed: list[int] = field(default_factory=list)
    sealed: list[int] = field(default_factory=list)

    def run(self, entry: Entry, firings: Firings) -> None:
        if self.does.get(entry.rule) == "death":
            raise self.spark.end()
        if self.does.get(entry.rule) == "overrun":
            self.spark.overruns += 1
            raise SinkError("[OVERRUN] it took longer than 1 s", overrun=True)
        self.landed.append(entry.number)

    def ready(self, targets: Collection[str]) -> None: ...

    def fate(self, entry: Entry, firings: Firings) -> Fate:
        return Fate.EFFECT if entry.number in self.landed else Fate.ABSENT

    def seal(self, entry: Entry) -> None:
        self.sealed.append(entry.number)

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:
        raise AssertionError
