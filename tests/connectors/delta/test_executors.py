"""A step of the detector in Spark's executors: the same function, given and giving values alone."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.history import printed
from tests.support.rulebooks import loaded
from tidegate.connectors.delta import installation
from tidegate.connectors.delta.executors import (
    ApartRows,
    ExecutorsError,
    SparkExecutors,
    _unpacked,
)
from tidegate.connectors.delta.jobs import Jobs
from tidegate.engine.core.values import Batch, Carried
from tidegate.engine.detect.events.step.component_step import ComponentStep
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.errors import EngineError

KEYS, SECOND = 400, 1_000_000
ROWS, TASKS = 1_000, 8
Batches = dict[str, Batch]


@pytest.fixture
def beside(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkExecutors]:
    """Their workers run the Python that runs the tests."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    jobs = Jobs(spark)
    yield SparkExecutors(spark, jobs, 600)
    jobs.close()


def test_g26_buckets_stepped_by_executors_detect_what_the_driver_does(
    beside: SparkExecutors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two buckets; what is carried goes from one to the next. Every second key has a b."""
    book = loaded(
        "abc",
        "t",
        pair="on: a ; b within 10 s, per: k",
        late="on: 'not(b)[a, [5 s]]', per: k",
        old="on: a ; c ; b, per: k, context: chronicle",
        fast="on: pair - c, per: k",
        other="on: a ; b, per: v",
        rung="on: t ; a, per: k",
        rest="on: c",
    )
    since = dict.fromkeys(book.rules, 0)
    driver, apart = Detector(book, since), ComponentStep(book, since, {}, beside, 16)
    whole, carried = Carried(), Carried()
    count = 0
    for number, batches in enumerate(history()):
        watermark = (number + 1) * 10 * SECOND
        found, whole, _ = driver.step(whole, batches, watermark)
        made, carried, reached = apart.step(carried, batches, watermark)
        assert reached == watermark
        assert [d.rule for d in made] == [d.rule for d in found]
        for own, other in zip(made, found, strict=True):
            assert printed(own) == printed(other)
        count += sum(map(len, found))
    assert count > KEYS
    assert beside.map(_process, []) == []
    assert os.getpid() not in beside.map(_process, [1, 2])
    # what fails there is said without values
    with pytest.raises(ExecutorsError, match=r"^Spark's executors failed with ZeroDivisionError$"):
        beside.map(_divided, [0])
    monkeypatch.setattr(installation.metadata, "version", lambda _: "0.0.1")
    with pytest.raises(
        EngineError, match=r"the engine has tidegate 0\.0\.1, and .* have "
    ) as other:
        beside.map(_process, [1])
    assert other.value.code == "executors-differ"


@pytest.mark.long
def test_g26_shuffle_files_that_are_lost_are_made_again(
    beside: SparkExecutors, spark: SparkSession
) -> None:
    """The first task to run deletes all; those after it find none."""
    folder = spark.sparkContext.getConf().get("spark.local.dir")
    frame = spark.range(ROWS).repartition(3, "id").select("id")
    call = partial(_summed, folder)
    lost, whole = (
        beside.map_rows([ApartRows(frame, False)], partial(_shared, TASKS), call, [*given])
        for given in ([True] * TASKS, [False] * TASKS)
    )
    assert [total for total, _ in lost[0]] == [total for total, _ in whole[0]]
    assert sum(total for total, _ in lost[0]) == sum(range(ROWS))
    assert (sum(lost[1]), sum(whole[1])) == (ROWS, ROWS)
    assert max(deleted for _, deleted in lost[0]) > 0


def _shared(tasks: int, _: int, __: int, rows: pa.Table) -> list[tuple[int, Any]]:
    ids = rows.column(0).to_numpy()
    return [(-1, len(ids)), *((task, ids[ids % tasks == task]) for task in range(tasks))]


def _summed(folder: str, deletes: bool, parts: Any) -> tuple[int, int]:
    """The sum of what was shared, and how many files were deleted."""
    done = Path(folder, "deleted")
    files = [*Path(folder).rglob("shuffle_*")] if deletes and not done.exists() else []
    if files:
        done.touch()
    for file in files:
        file.unlink(missing_ok=True)
    return sum(int(part.sum()) for part in parts), len(files)


def _process(_: int) -> int:
    return os.getpid()


def _divided(number: int) -> float:
    return 7 / number


def history() -> Iterator[Batches]:
    """In each bucket an a of every key, a c of every third and a b of every second one; and one
    t."""
    for number in range(2):
        begin = number * 10 * SECOND
        found = {
            name: rows(name, begin + at * SECOND, np.arange(0, KEYS, step))
            for name, at, step in (("a", 2, 1), ("c", 3, 3), ("b", 5, 2))
        }
        bell = pa.table({"z": [1]})
        yield {**found, "t": Batch("t", np.array([begin + 1]), np.array([0]), bell)}


def rows(name: str, first: int, keys: Any) -> Batch:
    table = pa.table({"k": keys, "v": keys % 7})
    return Batch(name, first + np.arange(len(keys)), np.arange(len(keys)), table)


class Counting:
    """Notes how many batches were left when it was unpacked."""

    batches: ClassVar[list[pa.RecordBatch]] = []

    def __setstate__(self, state: dict[str, int]) -> None:
        self.left = len(self.batches)
        self.number = state["number"]


def test_what_was_collected_is_let_go_of_while_it_is_unpacked() -> None:
    made = [Counting() for _ in range(4)]
    for number, one in enumerate(made):
        one.number = number
    Counting.batches = batches = [
        pa.RecordBatch.from_pydict({"place": [place], "value": [pickle.dumps(one)]})
        for place, one in zip([2, 0, 1, 0], made, strict=True)
    ]
    done, parts = _unpacked(batches, 2)
    assert [one.number for one in done] == [2, 0]
    assert sorted(one.number for one in parts) == [1, 3]
    assert sorted(one.left for one in [*done, *parts]) == [0, 1, 2, 3]
