"""Tables whose rows executors read themselves, on real Delta tables (G26)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.lake import Lake
from tidegate import Engine
from tidegate.connectors.delta import session
from tidegate.connectors.delta.executors import SparkExecutors
from tidegate.engine.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

KEYS = 60
BOOK = """\
rulebook: shop
tables:
  paid: {path: ./paid, start: earliest}
  orders: {path: ./orders, key: [id], start: earliest}
events:
  large: {on: insert, table: paid, where: v > 100}
  some: {on: insert, table: paid, where: v < 90}
  moved: {on: update, table: orders, of: [v]}
  came: {on: insert, table: orders}
settings: {detect: {how}}
rules:
  pair: {on: large ; moved, per: k, context: chronicle, if: max(v) + max(id) > 0}
  both: {on: came and moved, per: k, if: max(v) + max(id) > 0}
  two: {on: "any(2, some, came)", per: k, context: recent, if: max(v) + max(id) > 0}
  own: {on: moved, per: id, if: max(v) > 0}
"""


class Sides:
    """The same rulebook over the same tables, detected by the driver and by executors."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.lake, self.folder, self.spark = Lake(spark, folder), folder, spark
        self.lake.create("paid", "k BIGINT, v DOUBLE")
        self.lake.create("orders", "id BIGINT, k BIGINT, v DOUBLE")
        for how in ("driver", "spark"):
            (folder / f"{how}.yaml").write_text(BOOK.replace("{how}", how))

    def write(self, number: int) -> None:
        """Some rows of every key in two files; then updates."""
        first = 10_000 * number
        self.lake.sql(
            f"INSERT INTO {{paid}} SELECT /*+ REPARTITION(2) */ id % {KEYS}, id / 2D + {number} "
            f"FROM range({4 * KEYS})"
        )
        self.lake.sql(
            f"INSERT INTO {{orders}} SELECT /*+ REPARTITION(2) */ id + {first}, id % {KEYS}, "
            f"id + 0D FROM range({2 * KEYS})"
        )
        self.lake.sql("UPDATE {orders} SET v = v + 1 WHERE id % 3 = 0")

    def run(self, how: str) -> list[Any]:
        with Engine(
            self.folder / f"{how}.yaml", spark=self.spark, store=f"sqlite:///{self.folder / how}.db"
        ) as engine:
            return engine.run_once()

    def found(self, how: str) -> list[tuple[str, str, str]]:
        """The firings with all that they refer to."""
        with open_store(f"sqlite:///{self.folder / how}.db", create=False) as store:
            fired = store.of("shop").firings.listed()
            return sorted((f["rule"], f["firing_id"], str(f["constituents"])) for f in fired)


def test_g26_executors_read_what_the_driver_reads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    # The two images of an update are rarely in one batch of the rows.
    batch = {"spark.sql.execution.arrow.maxRecordsPerBatch": "25"}
    monkeypatch.setattr(session, "SMALL_JOBS", {**session.SMALL_JOBS, **batch})
    sides = Sides(spark, tmp_path)
    for number in range(2):
        sides.write(number)
        (own,), (apart,) = sides.run("driver"), sides.run("spark")
        assert apart.because == "detect: spark; they read orders, paid"
        assert (own.rows, own.detections) == (apart.rows, apart.detections)
        assert own.detections > KEYS
    fired = sides.found("spark")
    assert fired == sides.found("driver")
    assert {rule for rule, *_ in fired} == {"pair", "both", "two", "own"}


@pytest.mark.long
def test_g26_detect_is_reloaded_while_executors_run_a_bucket(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bucket ends as it began; the next one is detected as the new text says."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    sides, order = Sides(spark, tmp_path), ["driver", "spark", "auto", "driver"]
    file, told = tmp_path / "book.yaml", list[str]()
    texts = [BOOK.replace("{how}", how) for how in order]
    file.write_text(texts[0])
    map_rows = SparkExecutors.map_rows

    def reload(number: int) -> None:
        file.write_text(texts[number + 1])
        engine.reread()

    def meanwhile(self: SparkExecutors, *given: Any) -> Any:
        reload(number)
        return map_rows(self, *given)

    monkeypatch.setattr(SparkExecutors, "map_rows", meanwhile)
    with Engine(file, spark=spark, store=f"sqlite:///{tmp_path / 'book'}.db") as engine:
        for number, how in enumerate(order):
            sides.write(number)
            (report,) = engine.run_once()
            assert engine.rulebook.settings.detect == how
            told.append(report.detected_by)
            if number == 0:
                reload(number)
    assert told == ["driver", "executors", "executors", "driver"]
    sides.run("driver")
    assert sides.found("book") == sides.found("driver")
