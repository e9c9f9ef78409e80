"""`tidegate run` and `validate --tables` on real Delta tables: what is refused, and how."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.cli.conftest import Tidegate
from tests.support.gateway import gateway
from tests.support.lake import Shop
from tidegate.engine.store import open_store

RULEBOOK = """\
rulebook: shop
tables:
  orders: {path: ./orders, key: [id]}
  log: {path: ./log}
events:
  placed: {on: insert, table: orders, where: amount > 0}
  changed: {on: update, table: orders}
rules:
  noted:
    on: placed
    do:
      - sql: INSERT INTO log SELECT id, amount FROM event
"""


def cursor(shop: Shop) -> int:
    with open_store(shop.store, create=False) as store:
        return store.of("shop").buckets.load().cursors["orders"].version


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables, once: tests work on copies."""
    folder = tmp_path_factory.mktemp("shop")
    shop = Shop(spark, folder)
    shop.create("orders", "id INT, amount INT")
    shop.create("log", "id INT, amount INT")
    shop.book.write_text(RULEBOOK)
    return folder


@pytest.fixture
def shop(spark: SparkSession, made: Path, tmp_path: Path) -> Shop:
    return Shop(spark, Path(shutil.copytree(made, tmp_path / "shop")))


def test_run_once_reacts_and_reports(tidegate: Tidegate, shop: Shop) -> None:
    assert tidegate("run", shop.book, "--once").exit_code == 0
    shop.append("orders", (1, 5), (2, -5), (3, 7))
    result = tidegate("run", shop.book, "--once", "--json")
    assert result.exit_code == 0
    (bucket,) = (json.loads(line) for line in result.stdout.splitlines())
    shown = ("bucket", "rows", "detections", "firings", "damped", "entries")
    assert {k: bucket[k] for k in shown} == {
        "bucket": 2,
        "rows": 2,
        "detections": 2,
        "firings": 2,
        "damped": 0,
        "entries": 1,
    }
    assert shop.logged() == {(1, 5): 1, (3, 7): 1}
    fired = tidegate("firings", "--store", shop.store, "--json").stdout.splitlines()
    first = json.loads(fired[0])
    assert (first["rule"], first["key"], first["condition"]) == ("noted", {}, "none")
    assert [e["state"] for e in first["entries"]] == ["done"]
    assert first["constituents"][0]["event"] == "placed"
    assert {json.loads(f)["constituents"][0]["id"] for f in fired} == {1, 3}


def _replace(text: str, by: str) -> Callable[[Shop], None]:
    return lambda shop: shop.edit(text, by)


REFUSED_BEFORE_ANYTHING = {
    "missing table": (lambda shop: shutil.rmtree(shop.folder / "orders"), "table orders"),
    "unknown column in where": (_replace("amount > 0", "amont > 0"), "amont"),
    "where that does not parse": (_replace("amount > 0", "amount >"), "placed"),
    "update event without key": (_replace(", key: [id]", ""), "key"),
    "SQL that does not parse": (_replace("log SELECT", "log SELCT"), "PARSE_SYNTAX_ERROR"),
    "SQL of a refused kind": (_replace("INSERT INTO log SELECT id, amount FROM event",
                                       "DELETE FROM log WHERE id = 1"), "MERGE INTO"),
    "undeclared target": (_replace("INSERT INTO log", "INSERT INTO logs"), "logs"),
    "path relation": (_replace("FROM event", "FROM text.`/etc/hostname`"), "hostname"),
    "unknown column in an action": (_replace("SELECT id, amount", "SELECT id, amnt"), "amnt"),
    "malformed YAML": (_replace("rules:", "rules: ["), "shop.yaml:"),
    "malformed expression": (_replace("on: placed", "on: placed ;"), "noted"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED_BEFORE_ANYTHING)
def test_wrong_input_is_refused_with_its_place_before_anything_is_done(
    tidegate: Tidegate, shop: Shop, case: str
) -> None:
    spoil, said = REFUSED_BEFORE_ANYTHING[case]
    spoil(shop)
    checked = tidegate("validate", shop.book, "--tables")
    assert (checked.exit_code, said in checked.stdout) == (1, True), checked.stdout
    result = tidegate("run", shop.book, "--once")
    assert (result.exit_code, said in result.stderr) == (1, True), result.stderr
    assert f"{shop.book}:" in result.stderr
    assert result.stdout == ""


@pytest.mark.long
def test_a_table_without_a_feed_stops_by_name(tidegate: Tidegate, shop: Shop) -> None:
    shop.sql("ALTER TABLE {orders} SET TBLPROPERTIES (delta.enableChangeDataFeed = false)")
    result = tidegate("run", shop.book, "--once")
    assert result.exit_code == 3
    assert "orders" in result.stderr
    assert "delta.enableChangeDataFeed" in result.stderr


def test_g10_a_replaced_table_stops_and_reset_goes_on(tidegate: Tidegate, shop: Shop) -> None:
    assert tidegate("run", shop.book, "--once").exit_code == 0
    shutil.rmtree(shop.folder / "orders")
    shop.create("orders", "id INT, amount INT")
    shop.append("orders", (7, 7))
    shop.append("orders", (8, 8))
    before = cursor(shop)
    stopped = tidegate("run", shop.book, "--once")
    assert stopped.exit_code == 3
    assert "tidegate reset orders --from" in stopped.stderr
    status = json.loads(tidegate("status", "--store", shop.store, "--json").stdout)
    assert (cursor(shop), "orders" in status["stopped"]) == (before, True)
    assert tidegate("reset", "orders", "--from", "2", "--store", shop.store).exit_code == 0
    assert tidegate("run", shop.book, "--once").exit_code == 0
    assert shop.logged() == {(8, 8): 1}
    status = json.loads(tidegate("status", "--store", shop.store, "--json").stdout)
    assert (status["stopped"], status["asked_for"]) == (None, [])


@pytest.mark.long
def test_g10_a_source_put_back_from_a_copy_stops_and_reset_goes_on(
    tidegate: Tidegate, shop: Shop
) -> None:
    assert tidegate("run", shop.book, "--once").exit_code == 0
    backup = shutil.copytree(shop.folder / "orders", shop.folder / "backup")
    shop.append("orders", (1, 1), (2, 2))
    assert tidegate("run", shop.book, "--once").exit_code == 0
    shutil.rmtree(shop.folder / "orders")
    shutil.copytree(backup, shop.folder / "orders")
    shop.append("orders", (11, 1))
    shop.append("orders", (12, 1))
    stopped = tidegate("run", shop.book, "--once")
    assert (stopped.exit_code, "`tidegate reset orders --from now`" in stopped.stderr) == (3, True)
    status = json.loads(tidegate("status", "--store", shop.store, "--json").stdout)
    assert "table `orders`: its log was written anew" in status["stopped"]
    assert tidegate("reset", "orders", "--from", "1", "--store", shop.store).exit_code == 0
    assert tidegate("run", shop.book, "--once").exit_code == 0
    assert shop.logged() == {(1, 1): 1, (2, 2): 1, (11, 1): 1, (12, 1): 1}


def test_g12_a_used_column_dropped_stops_by_name(tidegate: Tidegate, shop: Shop) -> None:
    shop.sql(
        "ALTER TABLE {orders} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name',"
        " 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    assert tidegate("run", shop.book, "--once").exit_code == 0
    before = cursor(shop)
    shop.sql("ALTER TABLE {orders} RENAME COLUMN amount TO total")
    result = tidegate("run", shop.book, "--once")
    assert result.exit_code == 1  # it is the rulebook that has to be changed
    assert result.stderr.startswith(f"{shop.book}:6:46: [UNRESOLVED_COLUMN")
    assert result.stderr.count("`amount` cannot be resolved") == 1
    assert cursor(shop) == before


@pytest.mark.long
def test_a_log_with_a_gap_stops_by_version(tidegate: Tidegate, shop: Shop) -> None:
    assert tidegate("run", shop.book, "--once").exit_code == 0
    for number in range(3):
        shop.sql(f"INSERT INTO {{orders}} VALUES ({number}, 1)")
    (shop.folder / f"orders/_delta_log/{2:020}.json").unlink()
    result = tidegate("run", shop.book, "--once")
    assert result.exit_code == 3
    assert "orders" in result.stderr
    assert "version 2" in result.stderr
    assert cursor(shop) == 0


def test_an_unreachable_store_is_named_without_its_password(tidegate: Tidegate, shop: Shop) -> None:
    url = "postgresql+psycopg://me:secret@127.0.0.1:1/none"
    result = tidegate("run", shop.book, "--once", "--store", url)
    assert result.exit_code == 3
    assert "127.0.0.1:1" in result.stderr
    assert "secret" not in result.stderr


def test_g21_a_second_engine_is_refused(tidegate: Tidegate, shop: Shop) -> None:
    assert tidegate("run", shop.book, "--once").exit_code == 0
    with open_store(shop.store, create=False) as store:
        store.of("shop").lease.acquire("elsewhere:1", 60)
        result = tidegate("run", shop.book, "--once")
    assert result.exit_code == 3
    assert "elsewhere:1" in result.stderr


ENDED_BY = [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]


@pytest.mark.parametrize("number", ENDED_BY)
def test_a_signal_ends_the_engine_cleanly(shop: Shop, number: signal.Signals) -> None:
    words = [sys.executable, "-m", "tests.support.gateway", "run", str(shop.book), "--json"]
    child = subprocess.Popen(
        words,
        cwd=Path(__file__).parents[2],
        env={**os.environ, **gateway(shop.spark)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert json.loads(child.stdout.readline())["bucket"] == 1
    shop.append("orders", (1, 1))
    assert json.loads(child.stdout.readline())["firings"] == 1
    time.sleep(0.2)
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert (child.returncode, "Traceback" in said) == (0, False), said
    assert shop.logged() == {(1, 1): 1}
    with open_store(shop.store, create=False) as store:
        assert store.of("shop").status.shown()["lease_holder"] is None
