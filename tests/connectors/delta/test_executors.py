"""A step of the detector on Spark's executors: the same function, given and giving values alone."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.history import printed
from tests.support.rulebooks import loaded
from tidegate.engine.core.values import Batch, Carried, Stepped
from tidegate.engine.detect.events.state.partitions import partitions
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.model import Rulebook

KEYS, PARTITIONS, SECOND = 400, 4, 1_000_000
Batches = dict[str, Batch]


def test_buckets_stepped_by_executors_detect_what_the_driver_does(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two buckets; what is carried goes from one to the next. Every second key has a b."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    book = loaded(
        "abc",
        pair="on: a ; b within 10 s, per: k",
        late="on: 'not(b)[a, [5 s]]', per: k",
        old="on: a ; c ; b, per: k, context: chronicle",
        fast="on: pair - c, per: k",
    )
    driver = Detector(book, dict.fromkeys(book.rules, 0))
    whole, apart = Carried(), [Carried()] * PARTITIONS
    count = 0
    for number, batches in enumerate(history()):
        watermark = (number + 1) * 10 * SECOND
        found, whole, _ = driver.step(whole, batches, watermark)
        steps = on_executors(spark, book, apart, [part(batches, p) for p in range(PARTITIONS)],
                             watermark)  # fmt: skip
        apart = [step.carried for step in steps]
        assert sorted_lines(*(d for s in steps for d in s.detections)) == sorted_lines(*found)
        assert {step.watermark for step in steps} == {watermark}
        count += sum(map(len, found))
    assert count > KEYS


def on_executors(
    spark: SparkSession,
    book: Rulebook,
    carried: list[Carried],
    batches: list[Batches],
    watermark: int,
) -> list[Stepped]:
    """A step for each partition of keys, each on an executor."""

    def stepping(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        detector = Detector(book, dict.fromkeys(book.rules, 0))
        for batch in rows:
            for row in batch.to_pylist():
                made = pickle.dumps(detector.step(*pickle.loads(row["value"])))
                yield pa.RecordBatch.from_pydict({"part": [row["part"]], "value": [made]})

    given = [
        (number, pickle.dumps((kept, part, watermark)))
        for number, (kept, part) in enumerate(zip(carried, batches, strict=True))
    ]
    schema = "part bigint, value binary"
    frame = spark.createDataFrame(given, schema).repartition(2, "part")
    rows = frame.mapInArrow(stepping, schema).orderBy("part").collect()
    return [pickle.loads(row["value"]) for row in rows]


def history() -> Iterator[Batches]:
    """In each bucket an a of every key, a c of every third and a b of every second one."""
    for number in range(2):
        begin = number * 10 * SECOND
        yield {
            name: rows(name, begin + at * SECOND, np.arange(0, KEYS, step))
            for name, at, step in (("a", 1, 1), ("c", 2, 3), ("b", 4, 2))
        }


def rows(name: str, first: int, keys: Any) -> Batch:
    table = pa.table({"k": keys, "v": keys % 7})
    return Batch(name, first + np.arange(len(keys)), np.arange(len(keys)), table)


def part(batches: Batches, partition: int) -> Batches:
    """The occurrences of the keys of one partition."""
    found = {}
    for name, batch in batches.items():
        mine = np.flatnonzero(partitions([batch.table.column("k")], PARTITIONS) == partition)
        found[name] = Batch(name, batch.time[mine], batch.row[mine], batch.table)
    return found


def sorted_lines(*found: Any) -> list[str]:
    return sorted(str(line) for detections in found for line in printed(detections))
