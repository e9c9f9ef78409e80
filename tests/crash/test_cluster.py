"""The bank's rules on a Spark standalone cluster of two workers: what its executors detect is what
the driver does, whoever is killed meanwhile (G26)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from tests.crash.clustered import SECONDS_SLOW
from tests.support.cluster import HOSTS, IN_ONE_PROCESS, ROOT, conf_of, home_in, standalone
from tests.support.lake import Shop, notes_of
from tests.support.table import rows_of
from tidegate import Engine
from tidegate.connectors.delta.session import new_session
from tidegate.engine.cli.demo.writer import STEPS, build_tables, copy_rulebook
from tidegate.engine.core.failpoints import VARIABLE
from tidegate.engine.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS_MAX = 240
KEYS = 20
SMALL = """\
rulebook: shop
settings: {detect: driver}
tables: {paid: {path: ./paid, start: earliest}}
events:
  begun: {on: insert, table: paid, where: v = 0}
  ended: {on: insert, table: paid, where: v = 1}
rules: {both: {on: begun ; ended, per: k, if: max(v) = 1}}
"""
BECAUSE = "detect: spark; they read customers, transactions"
CASCADE = "owner_told"  # of what the engine wrote, at a time of its own


@dataclass(frozen=True)
class Bank:
    """A folder with the bank's rulebook, whose tables are all in the past, and its store."""

    folder: Path

    @property
    def rulebook(self) -> Path:
        return self.folder / "bank.yaml"

    @property
    def store(self) -> str:
        return f"sqlite:///{self.folder / 'bank.db'}"

    def copy(self, folder: Path, settings: str) -> Bank:
        """With other settings."""
        found = Bank(Path(shutil.copytree(self.folder, folder)))
        text = found.rulebook.read_text()
        found.rulebook.write_text(f"{text}\nsettings: {{{settings}}}\n")
        return found

    def firings(self) -> list[dict[str, Any]]:
        with open_store(self.store, create=False) as store:
            listed = list(store.of("bank").firings.listed())
        apart = ("fired_at", "bucket")
        return [
            {"rule": f["rule"], "key": f["key"], "depth": f["depth"]}
            if f["rule"] == CASCADE
            else {name: value for name, value in f.items() if name not in apart}
            for f in listed
        ]

    def on(self, conf: Mapping[str, str], **more: Any) -> tuple[int, list[dict[str, Any]]]:
        return on_cluster(self.rulebook, self.store, conf, **more)

    def rows(self, table: str) -> Counter[tuple[Any, ...]]:
        """Without the time of what the engine wrote."""
        found = rows_of(self.folder / "lake" / table)
        return Counter(row[:4] if row[0] == CASCADE else tuple(row) for row in found)

    def entries(self) -> list[tuple[str, int]]:
        """By commit of an action, in the order of the log, its rule and its entry's number."""
        found = []
        for table in ("accounts", "alerts"):
            log = self.folder / "lake" / table / "_delta_log"
            for file in sorted(log.glob("*.json")):
                for action in map(json.loads, file.read_text().splitlines()):
                    notes = notes_of(action.get("commitInfo", {}))
                    found += [(note["rule"], note["entry"]) for note in notes]
        return found

    def out_of_order(self) -> int:
        last, wrong = dict[str, int](), 0
        for rule, number in self.entries():
            wrong += number <= last.get(rule, 0)
            last[rule] = number
        return wrong


@pytest.fixture(scope="module")
def bank(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Bank:
    """Nobody has run its rules yet."""
    folder = tmp_path_factory.mktemp("bank") / "bank"
    session = new_session(spark)
    build_tables(session, "bank", folder)
    for step in STEPS:
        session.sql(step.sql)
    text = copy_rulebook("bank", folder).read_text()
    (folder / "bank.yaml").write_text(text.replace("_id]}", "_id], start: earliest}"))
    return Bank(folder)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with standalone(tmp_path_factory.mktemp("cluster")) as conf:
        yield conf


def by_driver(spark: SparkSession, bank: Bank, folder: Path, settings: str = "") -> Bank:
    own = bank.copy(folder, f"detect: driver{settings}")
    with Engine(own.rulebook, spark=spark, store=own.store) as engine:
        engine.run(until_idle=True)
    return own


def on_cluster(
    book: Path,
    store: str,
    conf: Mapping[str, str],
    failpoints: str = "",
    killed: Path | str = "",
    environment: Mapping[str, str] = MappingProxyType({}),
) -> tuple[int, list[dict[str, Any]]]:
    """`tidegate run` on the cluster until nothing is left to do: its exit code, and its buckets."""
    told = [part for item in conf.items() for part in ("--spark-conf", "=".join(item))]
    run = ["run", str(book), "--store", store, "--until-idle", "--json", *told]
    ended = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.clustered", str(killed), *run],
        cwd=ROOT,
        env={**os.environ, **environment, VARIABLE: failpoints},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = ended.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        os.killpg(ended.pid, signal.SIGKILL)
        raise
    print(out, err)
    return ended.returncode, [json.loads(line) for line in out.splitlines() if "watermark" in line]


def check_by_executors(buckets: list[dict[str, Any]]) -> None:
    """But for those in which nothing is for them."""
    assert buckets[0]["because"] == BECAUSE
    assert {bucket["because"].replace(f" ({BECAUSE})", "") for bucket in buckets} <= {
        BECAUSE, "nothing of it is for executors"
    }  # fmt: skip


def check_same(bank: Bank, driver: Bank) -> None:
    """Lost, doubled, out of order: 0."""
    assert bank.rows("alerts") == driver.rows("alerts")
    assert bank.rows("accounts") == driver.rows("accounts")
    assert sorted(map(str, bank.firings())) == sorted(map(str, driver.firings()))
    assert bank.out_of_order() == 0
    assert bank.rows("alerts").total() == 4


def test_g26_executors_of_a_cluster_detect_what_the_driver_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    driver = Shop(spark, tmp_path / "driver")
    driver.create("paid", "k BIGINT, v BIGINT")
    for v in (0, 1):
        driver.append("paid", *((k, v) for k in range(KEYS) if not v or k % 3))
    driver.book.write_text(SMALL)
    apart = Shop(spark, Path(shutil.copytree(driver.folder, tmp_path / "apart")))
    apart.edit("detect: driver", "detect: spark")
    driver.run_once()
    cluster, environment = conf_of(IN_ONE_PROCESS), home_in(tmp_path / "cluster")
    code, (bucket,) = on_cluster(apart.book, apart.store, cluster, environment=environment)
    assert (code, bucket["because"]) == (0, "detect: spark; they read paid")
    own, found = (sorted(fired(shop.store, "shop")) for shop in (driver, apart))
    assert len(own) == sum(k % 3 > 0 for k in range(KEYS))
    assert own == found


def fired(store: str, book: str) -> list[str]:
    with open_store(store, create=False) as opened:
        return [firing["firing_id"] for firing in opened.of(book).firings.listed()]


@pytest.mark.long
def test_g26_a_cluster_detects_what_the_driver_does(
    spark: SparkSession, bank: Bank, cluster: dict[str, str], tmp_path: Path
) -> None:
    apart = bank.copy(tmp_path / "apart", "detect: spark")
    code, buckets = apart.on(cluster)
    assert code == 0
    check_by_executors(buckets)
    check_same(apart, by_driver(spark, bank, tmp_path / "driver"))


@pytest.mark.long
def test_g26_whoever_is_killed_nothing_is_lost_doubled_or_out_of_order(
    spark: SparkSession, bank: Bank, cluster: dict[str, str], tmp_path: Path
) -> None:
    """The driver is killed before the transaction of the first bucket, and after that of the
    second; an executor, in the midst of the third."""
    cut = ", spark_rows_max: 3, bucket_rows_max: 3"
    apart = bank.copy(tmp_path / "apart", f"detect: spark{cut}")
    assert apart.on(cluster, failpoints="commit.before=exit")[0] == -signal.SIGKILL
    assert apart.firings() == []
    assert apart.on(cluster, failpoints="commit.after=exit:2")[0] == -signal.SIGKILL
    killed = tmp_path / "killed"
    code, buckets = apart.on(cluster, killed=killed)
    assert (code, killed.exists()) == (0, True)
    check_by_executors(buckets)
    check_same(apart, by_driver(spark, bank, tmp_path / "driver", cut))


@pytest.mark.long
@pytest.mark.skipif(len({*HOSTS}) < 2, reason="Spark runs a task a second time on another host")
def test_g26_a_task_that_spark_runs_twice_counts_once(
    spark: SparkSession, bank: Bank, cluster: dict[str, str], tmp_path: Path
) -> None:
    """By speculation: the first one is slow."""
    apart, slow = bank.copy(tmp_path / "apart", "detect: spark"), tmp_path / "slow"
    often = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.minTaskRuntime": "1s",
    }
    code, buckets = apart.on({**cluster, **often}, killed=slow)
    assert (code, slow.exists(), (tmp_path / "again").exists()) == (0, True, True)
    check_by_executors(buckets)
    assert buckets[0]["seconds"]["detect"] < SECONDS_SLOW
    check_same(apart, by_driver(spark, bank, tmp_path / "driver"))
