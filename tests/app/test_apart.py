"""Tables whose rows executors read themselves, on real Delta tables (G26)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.lake import Lake
from tidegate import Engine
from tidegate.connectors.delta import session
from tidegate.connectors.delta.executors import SparkExecutors
from tidegate.engine.core.ports import OutageError
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
scripts:
  runs:
    text: |
      in {long k; double v;} some group(some.k), {long k; double v;} moved group(moved.k)
      out {double sum; long n;} run
      (some(x) {s = s + x.v; n = n + 1;} | moved(y) {!> run({sum: s + y.v, n: n});})*
rules:
  runs_on: {on: run, if: max(n) > 0}
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
    sides, apart = Sides(spark, tmp_path), list[Any]()
    for number in range(2):
        sides.write(number)
        apart += sides.run("spark")
    assert {report.because for report in apart} == {"detect: spark; they read orders, paid"}
    own = sides.run("driver")
    for name in ("rows", "detections"):
        assert sum(getattr(one, name) for one in own) == sum(getattr(one, name) for one in apart)
    assert sum(one.detections for one in own) > 2 * KEYS
    fired = sides.found("spark")
    assert fired == sides.found("driver")
    assert {rule for rule, *_ in fired} == {"pair", "both", "two", "own", "runs_on"}


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


ROWS_BOOK = """\
rulebook: shop
tables:
  paid: {path: ./paid, start: earliest}
  done: {path: ./done_{how}}
  sums: {path: ./sums_{how}, key: [k]}
events: {large: {on: insert, table: paid, where: v >= 10}, told: {signal: {k: bigint, v: double}}}
settings: {detect: {how}}
rules:
  single:
    on: large
    per: id
    if: max(v) < 19990
    do: INSERT INTO done SELECT 'single', k, v, firing_id FROM event
  some:
    on: large ; large
    per: k
    if: {sql: SELECT firing_id FROM event WHERE k % 2 = 0 AND v < 9990}
    do:
      - INSERT INTO done SELECT 'some', k, sum(v), firing_id FROM event GROUP BY k, firing_id
      - >
        MERGE INTO sums USING (SELECT k, sum(v) AS v FROM event GROUP BY k) AS e ON sums.k = e.k
        WHEN MATCHED THEN UPDATE SET v = sums.v + e.v
        WHEN NOT MATCHED THEN INSERT (k, v) VALUES (e.k, e.v)
  later:
    on: large
    per: k
    coupling: {condition: detached}
    if: {sql: SELECT firing_id FROM event WHERE v % 1000 = 500}
    do: {signal: {told: {k: k, v: max(v)}}}
  heard: {on: told, per: k, do: "INSERT INTO done SELECT 'heard', k, v, firing_id FROM event"}
"""


def test_g26_conditions_and_actions_read_rows_that_executors_left_in_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder whose name is a pattern. Then rows are read to list a firing, and why it fired;
    and files to which nothing points are removed."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    folder = tmp_path / "[a] {b}*"
    folder.mkdir()
    lake, found = Lake(spark, folder), {}
    lake.create("paid", "id BIGINT, k BIGINT, v DOUBLE")
    for how in ("driver", "spark"):
        lake.create(f"done_{how}", "rule STRING, k BIGINT, v DOUBLE, firing_id STRING")
        lake.create(f"sums_{how}", "k BIGINT, v DOUBLE")
        (folder / f"{how}.yaml").write_text(ROWS_BOOK.replace("{how}", how))
    for first in (0, 10_000):
        some = f"range({first}, {first + 10_000})"
        lake.sql(f"INSERT INTO {{paid}} SELECT id, id % 40, id + 0D FROM {some}")
    for how in ("driver", "spark"):
        url = f"sqlite:///{folder / how}.db"
        with Engine(folder / f"{how}.yaml", spark=spark, store=url) as engine:
            reports = engine.run_once()
            while more := engine.run_once():
                reports += more
            assert reports[0].detected_by == ("driver" if how == "driver" else "executors")
        done = lake.sql(  # ids of what signals bring differ from run to run
            f"SELECT rule, k, v, if(rule = 'heard', '', firing_id) FROM {{done_{how}}}"
        )
        sums = lake.sql(f"SELECT * FROM {{sums_{how}}}")
        with open_store(url, create=False) as store:
            shop = store.of("shop")
            fired = [
                (f["firing_id"], f["condition"], f["constituents"])
                for f in shop.firings.listed()
                if f["rule"] != "heard"
            ]
            last = [f["firing_id"] for f in shop.firings.listed("some", limit=9)]
            why = shop.recorded.firing(last[0])
            files = shop.status.shown()["state_files"]
        found[how] = sorted(done), sorted(sums), fired, last, why["constituents"]
        assert bool([*folder.glob(f"{how}.db.state/**/*.parquet")]) == bool(files)
        assert bool(files) == (how == "spark")
    assert found["spark"] == found["driver"]
    rules = {row.rule for row in found["spark"][0]}
    assert rules == {"single", "some", "heard"}
    assert len(found["spark"][2]) > 30_000


@pytest.mark.long
def test_g07_a_folder_that_executors_cannot_write_is_waited_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the bucket is stored; the next run takes it, with all that it detects."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    lake, state = Lake(spark, tmp_path), tmp_path / "state"
    lake.create("paid", "id BIGINT, k BIGINT, v DOUBLE")
    lake.sql("INSERT INTO {paid} SELECT id, id % 40, id + 10D FROM range(20000)")
    book = tmp_path / "book.yaml"
    book.write_text(
        "rulebook: shop\ntables: {paid: {path: ./paid, start: earliest}}\n"
        "events: {large: {on: insert, table: paid, where: v >= 10}}\n"
        f"settings: {{detect: spark, state_path: {state}, outage_max_seconds: 1}}\n"
        "rules: {r: {on: large, per: id, if: max(v) + max(k) > 0}}\n"
    )
    state.write_text("in the way")
    url = f"sqlite:///{tmp_path / 'book'}.db"
    with (
        Engine(book, spark=spark, store=url) as engine,
        pytest.raises(OutageError, match=r"state file .* cannot be written"),
    ):
        engine.run_once()
    with open_store(url, create=False) as store:
        assert [*store.of("shop").firings.listed()] == []
    state.unlink()
    with Engine(book, spark=spark, store=url) as engine:
        (report,) = engine.run_once()
    assert (report.detections, report.detected_by) == (20_000, "executors")
    with open_store(url, create=False) as store:
        assert len([*store.of("shop").firings.listed()]) == 20_000
