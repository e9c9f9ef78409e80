"""Two processes, `run` and `run --standby`: the second goes on where the first was killed or put to
sleep, and who wakes up later does nothing more (G21)."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.crash.conftest import ROOT
from tests.support.gateway import gateway
from tests.support.lake import Shop
from tidegate import Engine
from tidegate.engine.app.rehearsal import rehearse
from tidegate.engine.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOOK = """\
rulebook: shop
settings: {lease_seconds: 2}
tables:
  orders: {path: ./orders}
  log: {path: ./log}
events:
  placed: {on: insert, table: orders}
rules:
  noted:
    on: placed
    do:
      - sql: INSERT INTO log SELECT id FROM event
"""
Process = subprocess.Popen[str]


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shop = Shop(spark, tmp_path_factory.mktemp("standby"))
    shop.create("orders", "id INT")
    shop.create("log", "id INT")
    shop.book.write_text(BOOK)
    return shop.folder


@pytest.fixture
def shop(spark: SparkSession, made: Path, tmp_path: Path, slow_store_url: str) -> Shop:
    return Shop(spark, Path(shutil.copytree(made, tmp_path / "shop")), slow_store_url)


@contextmanager
def running(shop: Shop, *words: str) -> Iterator[Process]:
    """`tidegate run` in a process that uses the Spark of the tests."""
    command = [sys.executable, "-m", "tests.support.gateway", "run", str(shop.book), "--json"]
    with (shop.folder / f"said{len(words)}").open("w") as said:
        process = subprocess.Popen(
            [*command, "--store", shop.store, *words],
            cwd=ROOT,
            env={**os.environ, **gateway(shop.spark)},
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def bucket(process: Process) -> int:
    """The firings of the next bucket that it tells of."""
    assert process.stdout is not None
    return int(json.loads(process.stdout.readline())["firings"])


def until(true: Callable[[], object]) -> None:
    for _ in range(1200):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it never came true")


def ready(said: Path) -> str:
    """What /readyz answers at the address that the process has told."""
    address = said.read_text().partition("inbox of shop at http://")[2].split("\n")[0]
    if not address:
        return ""
    connection = HTTPConnection(address)
    connection.request("GET", "/readyz")
    found = json.loads(connection.getresponse().read())
    connection.close()
    return str(found.get("status") or found["error"]["code"])


@pytest.mark.long
def test_a_rehearsal_runs_to_its_end_or_is_cut_short_and_leaves_nothing(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    before = spark.sql("SHOW DATABASES").collect()
    ran: list[bool] = []
    for looks in (1, 9):
        looked: list[bool] = []

        def has_time(most: int = looks, so_far: list[bool] = looked) -> bool:
            so_far.append(len(so_far) < most)
            return so_far[-1]

        rehearse(Engine, spark, has_time)
        ran += looked
    assert ran == [True, False, *[True] * 5]
    assert [r.message for r in caplog.records if r.levelno >= logging.WARNING] == []
    assert spark.sql("SHOW DATABASES").collect() == before


@pytest.mark.long
def test_g21_a_standby_goes_on_where_the_active_engine_was_killed_or_slept(
    shop: Shop,
) -> None:
    said = shop.folder / "said3"
    with ExitStack() as stack:
        active = stack.enter_context(running(shop))
        assert bucket(active) == 0  # it has the lease
        standby = stack.enter_context(running(shop, "--standby", "--http", "127.0.0.1:0"))
        until(lambda: ready(said) == "standby")
        with open_store(shop.store, create=False) as store:
            status = store.of("shop").status.shown()
        assert f"/{active.pid}/" in status["lease_holder"]
        assert f"/{standby.pid}/" in status["standby"]
        shop.order((1,))
        assert bucket(active) == 1
        active.send_signal(signal.SIGSTOP)
        shop.order((2,))
        assert bucket(standby) == 1
        assert ready(said) == "ready"
        active.send_signal(signal.SIGCONT)
        _, _ = active.communicate(timeout=60)
        assert active.returncode == 3  # it is told that it has lost its lease
        assert "is run by" in (shop.folder / "said0").read_text()
        with running(shop, "--standby") as third:
            until(lambda: f"/{third.pid}/" in str(shop.status()["standby"]))
            standby.kill()
            shop.order((3,))
            assert bucket(third) == 1
            third.terminate()
            assert third.wait(60) == 0
    assert shop.logged() == {(n,): 1 for n in (1, 2, 3)}
    assert shop.status()["standby"] is None
    assert shop.status()["stopped"] is None
