"""`Engines` and `tidegate run a.yaml b.yaml` on real tables: side by side, and one stops alone."""

from __future__ import annotations

import json
import logging
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from tests.cli.conftest import Tidegate, tidegate
from tests.support.lake import Lake
from tidegate import Engines
from tidegate.engine.app.engines import stop_on_signals
from tidegate.engine.core.state import BucketReport
from tidegate.engine.store import open_store
from tidegate.rules.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["tidegate"]

BOOK = """\
rulebook: {name}
tables:
  orders: {{path: ./{name}_orders}}
  log: {{path: ./log}}
events:
  ordered: {{on: insert, table: orders}}
  told: {{signal: {{id: bigint}}}}
rules:
  seen:
    on: ordered or told
    do:
      - sql: INSERT INTO log SELECT '{name}', id FROM event
"""
NAMES = ("bank", "stock")


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = Lake(spark, tmp_path_factory.mktemp("several"))
    for name in NAMES:
        (lake.folder / f"{name}.yaml").write_text(BOOK.format(name=name))
        lake.create(f"{name}_orders", "id BIGINT")
    lake.create("log", "rulebook STRING, id BIGINT")
    return lake.folder


@pytest.fixture
def lake(spark: SparkSession, made: Path, tmp_path: Path) -> Lake:
    return Lake(spark, Path(shutil.copytree(made, tmp_path / "lake")))


def files(lake: Lake) -> list[Path]:
    return [lake.folder / f"{name}.yaml" for name in NAMES]


@pytest.mark.long
def test_g07_two_rulebooks_in_one_process_hear_one_signal_and_one_stops_alone(
    lake: Lake, slow_store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = lake.folder / "stock_orders" / "_delta_log"
    with Engines(files(lake), spark=lake.spark, store=slow_store_url) as engines:
        assert engines.run_once().keys() == {*NAMES}
        for name in NAMES:
            lake.append(f"{name}_orders", (1,))
        told = engines.signal("told", {"id": 7})
        assert engines.signal("told", {"id": 7}) != told
        reports: list[tuple[str, int]] = []
        engines.run(until_idle=True, on_bucket=lambda name, r: reports.append((name, r.firings)))
        assert {name for name, _ in reports} == {*NAMES}
        assert sum(count for _, count in reports) == 6
        each = {(name, id): count for name in NAMES for id, count in ((1, 1), (7, 2))}
        assert lake.rows("log") == each

        for name in NAMES:
            for _ in range(2):
                lake.append(f"{name}_orders", (2,))
        (log / f"{2:020d}.json").unlink()

        def stop(name: str, _: object) -> None:
            """The other one goes on after the first has stopped."""
            assert name == "bank"
            while "stock" not in engines.failures:
                pass
            if lake.rows("log")["bank", 3]:
                engines.stop()
            else:
                lake.append("bank_orders", (3,))

        with pytest.raises(EngineError, match=r"orders.*version 2") as stopped:
            engines.run(poll_seconds=0.05, on_bucket=stop)
        assert "rulebook stock has stopped: " in caplog.text
        assert [*engines.failures.items()] == [("stock", stopped.value)]
        assert lake.rows("log") == each | {("bank", 2): 2, ("bank", 3): 1}
        with open_store(slow_store_url, create=False) as store:
            status = {name: store.of(name).status.shown() for name in NAMES}
        assert status["stock"]["lease_holder"] is None  # it can be run elsewhere at once
        assert str(stopped.value) == status["stock"]["stopped"]
        assert status["bank"]["lease_holder"] is not None
        assert status["bank"]["stopped"] is None


@pytest.mark.long
def test_run_names_the_rulebook_of_each_line_and_ends_with_the_worst_code(
    lake: Lake, tidegate: Tidegate, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    store = f"sqlite:///{lake.folder / 'store.db'}"
    words = ("run", *files(lake), "--store", store, "--once")
    assert tidegate(*words).exit_code == 0
    for name in NAMES:
        lake.append(f"{name}_orders", (1,))
    result = tidegate(*words, "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    found = sorted((line["rulebook"], line["bucket"], line["firings"]) for line in lines)
    assert (result.exit_code, found) == (0, [("bank", 2, 1), ("stock", 2, 1)])
    shutil.rmtree(lake.folder / "stock_orders")
    lake.append("bank_orders", (2,))
    result = tidegate(*words)
    assert result.exit_code == 3
    assert " bank: bucket 3: 1 row, 1 detection, 1 firing, 1 action" in result.stdout
    assert "rulebook stock has stopped: " in caplog.text
    assert lake.rows("log")["bank", 2] == 1


@pytest.mark.long
def test_an_engine_that_has_ended_gives_its_lease_back_while_another_one_is_busy(
    spark: SparkSession, lake: Lake
) -> None:
    url = f"sqlite:///{lake.folder / 'store.db'}"
    holders: list[str | None] = []

    def busy(name: str, bucket: BucketReport) -> None:  # noqa: ARG001
        engines.end()
        other = next(one for one in NAMES if one != name)
        with open_store(url, create=False) as store:
            until = time.monotonic() + 60
            while (held := store.of(other).lease.holder()) is not None and time.monotonic() < until:
                time.sleep(0.1)
            holders.extend([held, store.of(name).lease.holder()])

    with Engines(files(lake), spark=spark, store=url) as engines:
        with pytest.raises(EngineError, match="open already"):
            engines.__enter__()
        lake.append("bank_orders", (7,))
        engines.run(on_bucket=busy)
    assert holders[0] is None
    assert holders[1] is not None


def test_a_first_signal_ends_engines_and_a_second_one_the_process() -> None:
    class Engine:
        ended = threading.Event()

        def end(self) -> None:
            self.ended.set()

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    try:
        stop_on_signals(cast(Engines, Engine()))
        signal.raise_signal(signal.SIGTERM)
        assert Engine.ended.wait(10)
        assert [signal.getsignal(number) for number in numbers[:2]] == [signal.SIG_DFL] * 2
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
