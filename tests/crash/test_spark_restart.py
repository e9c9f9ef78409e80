"""Java is killed in the middle of a bucket: the engine starts Spark again and goes on (G7)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.crash.conftest import ROOT
from tests.support.lake import Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long  # each start of Spark takes ten seconds

BOOK = """\
rulebook: shop
settings: {{spark_restarts_max: {most}}}
tables:
  orders: {{path: ./orders, start: earliest}}
  log: {{path: ./log}}
events:
  placed: {{on: insert, table: orders}}
rules:
  noted: {{on: placed, do: [{{sql: INSERT INTO log SELECT id FROM event}}]}}
"""


def run(shop: Shop, points: str, most: int) -> subprocess.CompletedProcess[str]:
    shop.create("orders", "id INT")
    shop.create("log", "id INT")
    shop.order((1,), (2,))
    shop.order((3,))
    shop.book.write_text(BOOK.format(most=most))
    return subprocess.run(
        [sys.executable, "-m", "tests.crash.javaless", str(shop.book), shop.store, points],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("points", "starts"),
    [
        pytest.param("plan.after=exit,detect.before=exit", 2, id="before-the-transaction"),
        pytest.param("commit.after=exit,statement.after=exit", 2, id="after-it"),
        pytest.param("read.before=exit,spark.restart=exit", 2, id="while-it-starts-again"),
    ],
)
def test_rows_have_their_effect_once(
    spark: SparkSession, tmp_path: Path, points: str, starts: int
) -> None:
    shop = Shop(spark, tmp_path)
    done = run(shop, points, most=3)
    assert "buckets done" in done.stdout, done.stderr
    assert shop.logged() == {(1,): 1, (2,): 1, (3,): 1}
    assert done.stderr.count("starting it again") == starts


def test_the_limit_of_restarts_ends_the_engine_by_name(spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path)
    done = run(shop, "plan.after=exit,detect.before=exit", most=1)
    assert done.stderr.count("starting it again") == 1
    assert "buckets done" not in done.stdout
    assert "Spark is gone" in shop.status()["stopped"]
    with shop.engine(spark_restarts_max="0") as engine:
        engine.run_once()
    assert shop.logged() == {(1,): 1, (2,): 1, (3,): 1}
