"""What goes wrong in executors, and what changes there between two buckets: it is no matter for
what is found (G26). With Spark: `tests/crash/test_cluster.py`, `tests/crash/test_executors.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.loop.test_apart import COMMITS, KEYED, by_driver
from tests.loop.test_site import Beside, drained, fired
from tests.support.executors import InProcess
from tests.support.make import BEGIN, SECOND
from tidegate.engine.store import SqlStore

SMALL = "spark_rows_max: 2"


class Twice:
    """A call whose first answer is lost: its executor was killed, or another one was faster."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call

    def __call__(self, *given: Any) -> Any:
        self.call(*given)
        return self.call(*given)


class Repeating(InProcess):
    """Runs every task twice."""

    def map(self, call: Any, given: Any) -> Any:
        return super().map(Twice(call), given)

    def map_rows(self, rows: Any, cut: Any, call: Any, given: Any) -> Any:
        return super().map_rows(rows, Twice(cut), Twice(call), given)


class Failing(InProcess):
    """Fails so often, after its tasks have run."""

    failures = 3

    def map(self, call: Any, given: Any) -> Any:
        made = super().map(call, given)
        if self.failures:
            self.failures -= 1
            raise OSError("all executors were lost")
        return made


def with_executors(
    store: SqlStore, executors: InProcess, settings: str = SMALL, text: str = KEYED
) -> Beside:
    bench = Beside(store, COMMITS, f"detect: spark, {settings}", text)
    bench.executors_beside = executors
    bench.restart()
    return bench


def test_g26_a_task_that_runs_twice_counts_once(store: SqlStore, tmp_path: Path) -> None:
    """By speculation, or because its executor was killed in mid-bucket."""
    bench = with_executors(store, Repeating())
    assert {by for by, _ in drained(bench)} == {"executors"}
    assert len(bench.reports) > COMMITS // 2
    assert fired(store) == by_driver(tmp_path)


def test_g26_a_bucket_whose_tasks_are_lost_is_taken_again(store: SqlStore, tmp_path: Path) -> None:
    text = KEYED.replace("on: row and row, per: id", "on: row ; row")  # the driver reads
    bench = with_executors(store, executors := Failing(), text=text)
    assert {by for by, _ in drained(bench)} == {"executors"}
    assert executors.failures == 0
    assert fired(store) == by_driver(tmp_path, text=text)


def test_g26_executors_come_and_go_and_partitions_with_them(
    store: SqlStore, tmp_path: Path
) -> None:
    bench = with_executors(store, executors := InProcess(1))
    slots, sizes = [1, 3, 16, 2, 64], list[int]()
    bench.reports.clear()
    for number, slots_now in enumerate(slots):
        executors.slots = slots_now
        if (report := bench.loop.bucket()) is not None:
            sizes.append(executors.tasks[-1])
            assert report.detected_by == "executors", number
    assert len({*sizes}) > 2
    assert sizes != sorted(sizes)
    drained(bench)
    assert fired(store) == by_driver(tmp_path)


@pytest.mark.parametrize(
    "order", [("driver", "spark", "auto", "driver"), ("spark", "driver", "spark", "auto")]
)
def test_g26_detect_may_change_whenever_the_rulebook_does(
    store: SqlStore, tmp_path: Path, order: Sequence[str]
) -> None:
    """`auto` takes executors here, for more is visible than the driver takes."""
    bench = Beside(store, 0, "detect: driver", KEYED)
    expected = {"driver": "driver", "spark": "executors", "auto": "executors"}
    for commits, detect in zip((1, 3, 5, COMMITS), order, strict=True):
        bench.write(
            KEYED.replace("settings: {", f"settings: {{detect: {detect}, driver_rows_max: 1, ")
        )
        bench.restart()
        bench.feed.commits = commits
        bench.clock.at = BEGIN + commits * SECOND
        assert bench.run()[0][0] == expected[detect]
    drained(bench)
    assert fired(store) == by_driver(tmp_path)
