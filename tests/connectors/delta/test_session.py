"""The session's promises, in processes of their own: nothing on stdout, nothing left in the cwd."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from tests.conftest import SPARK_CONF
from tests.support.lake import Lake
from tidegate.connectors.delta.catalog import latest_snapshot
from tidegate.connectors.delta.log import TableLog
from tidegate.connectors.delta.session import check_session, new_session, start_session
from tidegate.rules.errors import EngineError

ROOT = Path(__file__).parents[3]


@pytest.mark.long
def test_a_cold_start_prints_nothing_to_stdout_and_leaves_nothing_behind(tmp_path: Path) -> None:
    script = (
        "from tidegate.connectors.delta.session import start_session\n"
        f"spark = start_session(conf={SPARK_CONF})\n"
        "spark.sql('CREATE DATABASE d')\n"
        "spark.sql('CREATE TABLE d.t USING delta AS SELECT 1 AS a')\n"
        "import os\n"
        "scratch = spark.sparkContext.getConf().get('spark.local.dir')\n"
        "assert os.stat(scratch).st_mode & 0o777 == 0o700\n"
        "assert scratch in spark.sparkContext._temp_dir\n"
        "spark.stop()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_an_active_session_with_delta_is_used_as_it_is(spark: SparkSession) -> None:
    found = start_session("other", {"spark.sql.shuffle.partitions": "7"})
    assert found.sparkContext is spark.sparkContext
    assert spark.conf.get("spark.sql.shuffle.partitions") == "1"


def test_g27_spark_connect_is_refused() -> None:
    class Remote:
        pass

    Remote.__module__ = "pyspark.sql.connect.session"
    with pytest.raises(EngineError, match="Spark Connect is refused") as caught:
        check_session(Remote())  # type: ignore[arg-type]
    assert caught.value.code == "spark-connect"


def test_a_new_session_shares_tables_but_neither_views_nor_settings(spark: SparkSession) -> None:
    other = new_session(spark)
    other.range(1).createOrReplaceTempView("only_there")
    other.conf.set("spark.sql.shuffle.partitions", "3")
    assert not spark.catalog.tableExists("only_there")
    assert spark.conf.get("spark.sql.shuffle.partitions") == "1"
    assert other.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_spark_that_does_not_start_is_no_surprise(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise PySparkRuntimeError("Java gateway process exited")

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", fail)
    with pytest.raises(EngineError, match="Java gateway process exited") as caught:
        start_session("other", {"spark.driver.memory": "1x"})
    assert (caught.value.code, "--spark-conf" in caught.value.hint) == ("session-failed", True)


def test_a_thread_that_asks_delta_has_an_active_session(spark: SparkSession, lake: Lake) -> None:
    """Delta asks for it where reading a checkpoint ahead has failed."""
    lake.create("t", "id INT")

    def asked(look: Callable[[], object]) -> bool:
        look()
        jvm: Any = spark._jvm
        return bool(jvm.org.apache.spark.sql.SparkSession.getActiveSession().isDefined())

    looks: list[Callable[[], object]] = [
        lambda: None,
        lambda: latest_snapshot(spark, lake.path("t")),
        lambda: TableLog(spark, lake.path("t")).snapshot(0),
    ]
    found = []
    for look in looks:
        with ThreadPool(1) as threads:
            found += threads.map(asked, [look])
    assert found == [False, True, True]
