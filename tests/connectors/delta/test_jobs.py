"""Limits on jobs, and cancelling our own and nobody else's."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.capture import Capturing, needs
from tests.support.lake import Lake
from tests.support.rulebooks import event, rulebook, table
from tidegate.connectors.delta.analyst import DeltaAnalyst
from tidegate.connectors.delta.catalog import Catalog
from tidegate.connectors.delta.conditions import DeltaConditions
from tidegate.connectors.delta.feed import DeltaFeed
from tidegate.connectors.delta.jobs import Jobs, OverrunError
from tidegate.connectors.delta.watchdog import DeltaHealth
from tidegate.engine.core.values import Question
from tidegate.rules.errors import EngineError, InputError, Place
from tidegate.rules.expressions.parser import parse
from tidegate.rules.model import Condition, Context, Pattern, Rule, Rulebook, Settings, Sql

SLEEP = "java_method('java.lang.Thread', 'sleep', id + {})"
BACKTRACKS = "rlike '(.*a){12}b'"
TEXT = "a" * 25  # a second or two for Java; ten more letters and it is for ever
SECONDS = 0.2


@pytest.fixture
def jobs(spark: SparkSession) -> Iterator[Jobs]:
    made = Jobs(spark)
    yield made
    made.close()


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that comes, or fail."""
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


class Held:
    """A FIFO: Java waits where it opens it until it is let go. No interrupt ends that."""

    def __init__(self, file: Path) -> None:
        os.mkfifo(file)
        self.file = file
        self.expression = f"java_method('scala.io.Source', 'fromFile', '{file}', 'UTF-8')"
        self._writer: int | None = None

    def let_go(self) -> None:
        """Whoever opens it, now or later, goes on."""
        if self._writer is None:
            self._writer = os.open(self.file, os.O_RDWR)

    def close(self) -> None:
        self.let_go()
        os.close(self._writer or 0)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    made = Held(tmp_path / "held")
    yield made
    made.close()


class User:
    """A job of somebody else's, in the same Spark, in a thread and under a group of its own. It
    takes until it is asked whether it is done."""

    def __init__(self, spark: SparkSession, held: Held) -> None:
        self.error: BaseException | None = None
        self._spark, self._held = spark, held
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._spark.range(1).selectExpr(self._held.expression).collect()
        except BaseException as error:
            self.error = error

    def done(self) -> bool:
        self._held.let_go()
        self._thread.join()
        return self.error is None


def test_what_is_past_its_time_is_cancelled_and_a_users_job_is_not(
    spark: SparkSession, jobs: Jobs, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.connectors.delta.jobs.GRACE_SECONDS", 300)
    user = User(spark, held)
    rows = spark.range(1).selectExpr(SLEEP.format(60_000))
    with pytest.raises(OverrunError, match=r"longer than 0\.5 s") as caught:
        jobs.run(0.5, rows.collect)
    assert not caught.value.left
    assert user.done()
    assert jobs.run(60, spark.range(3).count) == 3


def test_g21_losing_the_lease_cancels_our_jobs_and_no_users(
    spark: SparkSession, jobs: Jobs, held: Held
) -> None:
    user = User(spark, held)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "mine")
    begun, found = threading.Event(), []

    def long() -> None:
        begun.set()
        spark.range(1).selectExpr(SLEEP.format(60_000)).collect()

    def ours() -> None:
        with pytest.raises(Exception, match="cancelled") as caught:
            jobs.run(60, long)
        found.append(caught.value)

    thread = threading.Thread(target=ours)
    thread.start()
    begun.wait()
    jobs.cancel()
    thread.join()
    assert len(found) == 1
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") == "mine"
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    assert user.done()


def test_a_call_that_nothing_ends_is_left_behind(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.connectors.delta.jobs.GRACE_SECONDS", 0.1)
    ended = threading.Event()
    with pytest.raises(OverrunError) as caught:
        jobs.run(0.1, ended.wait)
    assert caught.value.left
    assert jobs.slots.lost == 1  # it may be busy: planning, with a core to itself
    assert jobs.run(60, lambda: 7) == 7
    ended.set()
    until(lambda: not jobs.slots.lost)  # the thread that waited has noticed


@pytest.mark.long
def test_g13_time_in_which_others_hold_every_slot_does_not_count(
    spark: SparkSession, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.connectors.delta.jobs.QUEUE_LOOK_SECONDS", 0.05)
    small = spark.range(0, 3, 1, 1).selectExpr(SLEEP.format(1)).count
    jobs.run(600, small)  # warm
    begun = time.monotonic()
    assert jobs.run(600, small) == 3
    seconds = 1 + 10 * (time.monotonic() - begun)  # plenty, on a machine as busy as this one is
    slots = spark.sparkContext.defaultParallelism
    holds = spark.range(0, slots, 1, slots).selectExpr(SLEEP.format(600_000))
    others = Jobs(spark)
    with ThreadPoolExecutor(2) as threads:
        holder = threads.submit(others.run, 600, holds.collect)
        try:
            until(lambda: jobs.slots._busy() == slots)
            run = threads.submit(jobs.run, seconds, small)
            time.sleep(seconds + 0.3)
            assert not run.done()
        finally:
            others.cancel()
        assert run.result() == 3
        assert holder.exception() is not None
    others.close()


def test_g13_tasks_that_nobody_can_end_are_counted_until_they_end(
    spark: SparkSession, jobs: Jobs, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.connectors.delta.slots.SETTLE_SECONDS", 0.2)
    rows = spark.range(0, 1, 1, 1).selectExpr(held.expression)
    spark.range(0, 1, 1, 1).selectExpr(SLEEP.format(0)).collect()  # warm
    with pytest.raises(OverrunError) as caught:
        jobs.run(1, rows.collect)
    assert caught.value.left
    assert jobs.slots.lost == 1
    stays, lost = DeltaHealth(spark, jobs.slots, own=False).overrun()
    assert (stays, lost) == (True, None)
    other, own = (DeltaHealth(spark, jobs.slots, own=True) for _ in range(2))
    assert other.lost() is None
    stays, lost = own.overrun()
    assert not stays
    assert lost is not None
    assert lost.code == "spark-lost"
    assert "hold 1 of Spark's 2 slots" in lost.message
    begins = other.lost()  # another engine's: what began now would be ended with it
    jobs.slots.condemned = None  # these tests share one Spark
    assert begins is not None
    assert begins.message == lost.message
    assert jobs.run(60, spark.range(0, 3, 1, 1).count) == 3
    held.let_go()
    until(lambda: not jobs.slots.lost)


@pytest.mark.long
def test_a_where_that_backtracks_ends_by_name(lake: Lake) -> None:
    path = lake.create("t", "id BIGINT, note STRING")
    lake.sql(f"INSERT INTO {{t}} VALUES (1, '{TEXT}')")
    book = rulebook(
        tables=[table("t", path)], events=[event("i", "t", "insert", where=f"note {BACKTRACKS}")]
    )
    loop = Capturing(book, needs(book, "id"), DeltaFeed(lake.spark, seconds_max=SECONDS))
    with pytest.raises(EngineError, match="`t`: reading versions 0 to 1") as caught:
        loop.drain()
    assert caught.value.code == "read-overrun"
    assert f"(statement_seconds_max) with `note {BACKTRACKS}`" in caught.value.message
    assert "correct the `where`" in caught.value.hint
    assert "reset" not in caught.value.hint  # it would pass over what nobody has seen


@pytest.mark.parametrize(
    "condition",
    [
        f"max(note) {BACKTRACKS}",
        pytest.param(
            f"'{TEXT}' {BACKTRACKS} AND count(*) > 0", marks=pytest.mark.long
        ),  # folded into a constant before there is a job
        '{sql: "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 90 AND '
        "length(java_method('java.lang.Thread', 'sleep', n + 200L)) < 9) "
        'SELECT firing_id FROM event, r"}',
    ],
)
def test_a_condition_past_its_time_names_its_rule(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    monkeypatch.setattr("tidegate.connectors.delta.jobs.GRACE_SECONDS", 0.1)
    lake.create("t", "id BIGINT, note STRING")
    query = condition.startswith("{sql: ")
    text = condition.removeprefix('{sql: "').removesuffix('"}')
    asked = Question(
        "slow",
        Condition(text, query, Place("book.yaml", 7, 3)),
        (),
        frozenset(),
        pa.table({"firing_id": ["00" * 16], "note": [TEXT]}),
    )
    tables = {"t": table("t", lake.path("t"))}
    catalog = Catalog(lake.spark, Rulebook("slow", None, "", "UTC", tables, {}, {}), "ab")
    catalog.open()
    try:
        answers = DeltaConditions(catalog, SECONDS).hold([replace(asked, versions={"t": 0})])
    finally:
        catalog.close()
    [failure] = answers.failed.values()
    assert failure.overrun
    assert "book.yaml:7:3" in failure.error
    assert "longer than 0.2 s (statement_seconds_max = 0.2)" in failure.error


def test_a_text_past_its_time_while_it_is_resolved_is_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark evaluates VALUES itself, before there is a job that could be cancelled."""
    monkeypatch.setattr("tidegate.connectors.delta.jobs.GRACE_SECONDS", 0.1)
    tables = {"out": table("out", lake.create("out", "held BOOLEAN"))}
    limits = Settings(statement_seconds_max=SECONDS)  # type: ignore[arg-type]
    book = Rulebook("slow", None, "", "UTC", tables, {}, {}, settings=limits)
    here = Place("book.yaml", 7, 3)
    rule = Rule("r", here, Pattern(parse("w", here), "w", Context.RESTRICTED))
    text = f"INSERT INTO out SELECT held FROM event, VALUES ('{TEXT}' {BACKTRACKS}) v(held)"
    catalog = Catalog(lake.spark, book, "ab")
    catalog.open()
    try:
        with pytest.raises(InputError, match=r"took longer than 0\.2 s") as caught:
            DeltaAnalyst(catalog, book).action(rule, Sql(text, here), pa.schema([]), ())
    finally:
        catalog.close()
    assert [(p.code, p.place) for p in caught.value.problems] == [("sql-overrun", here)]


def test_a_worker_that_waits_holds_no_result(jobs: Jobs) -> None:
    """It may be 100 MB."""

    class Large:
        pass

    made = weakref.ref(jobs.run(60, Large))
    until(lambda: made() is None)
