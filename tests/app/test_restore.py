"""A store that is older than its effects, or another one, on real tables (G20)."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from tests.support import postgres
from tests.support.lake import Shop
from tidegate.engine.cli.main import main
from tidegate.engine.store import open_store
from tidegate.rules.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOOK = """\
rulebook: shop
tables:
  orders: {path: ./orders, key: [id]}
  log: {path: ./log}
events:
  ordered: {on: insert, table: orders}
  told: {signal: {id: bigint}}
rules:
  first:
    on: ordered
    do: [{sql: "INSERT INTO log (rule, id) SELECT 'first', id FROM event"}]
  hearing:
    on: told
    do: [{sql: "INSERT INTO log (rule, id) SELECT 'hearing', id FROM event"}]
"""
SHORT = "'delta.setTransactionRetentionDuration' = 'interval 7 days'"
FORGOTTEN = [("first", 2), ("hearing", 7), ("first", 3)]


@dataclass(frozen=True)
class Restored(Shop):
    """A shop, and the commands that a restored store needs."""

    def refusal(self) -> EngineError:
        with pytest.raises(EngineError) as caught:
            self.run_once()
        return caught.value

    def tell(self, number: int) -> None:
        words = ["signal", "told", f"id={number}", "--store", self.store]
        assert CliRunner().invoke(main, words).exit_code == 0

    def adopt(self, *way: str) -> dict[str, Any]:
        words = ["adopt", *way, str(self.book), "--store", self.store, "--json"]
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)  # type: ignore[no-any-return]

    def id(self) -> str:
        with open_store(self.store, create=False) as store:
            return store.id


def make(tables: Path, folder: Path, spark: SparkSession, url: str | None = None) -> Restored:
    """The shop over a copy of its empty tables, with one order in the log."""
    shop = Restored(spark, Path(shutil.copytree(tables, folder)), url)
    with shop.engine() as engine:
        engine.run_once()
        shop.order((1,))
        engine.run_once()
    return shop


def go_on(shop: Restored) -> None:
    """What a backup of now, while a signal waits, will not know: FORGOTTEN, by three entries."""
    with shop.engine() as engine:
        for number in (2, 3):
            shop.order((number,))
            engine.run_once()


def copied(shop: Restored, to: Path) -> Restored:
    """The shop's tables and store, as they are now, in another folder."""
    return Restored(shop.spark, Path(shutil.copytree(shop.folder, to)))


def back_up(file: Path, to: Path) -> None:
    with closing(sqlite3.connect(file)) as one, closing(sqlite3.connect(to)) as other:
        one.backup(other)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rulebook and the empty tables."""
    shop = Restored(spark, tmp_path_factory.mktemp("tables"))
    shop.book.write_text(BOOK)
    shop.create("orders", "id BIGINT")
    shop.create("log", "rule STRING, id BIGINT")
    return shop.folder


@pytest.fixture(scope="module")
def on_sqlite(
    spark: SparkSession, tables: Path, tmp_path_factory: pytest.TempPathFactory
) -> Restored:
    """A shop whose SQLite store was restored from a backup made while a signal was waiting."""
    folder = tmp_path_factory.mktemp("sqlite") / "shop"
    shop = make(tables, folder, spark)
    shop.tell(7)
    back_up(folder / "shop.db", folder / "backup.db")
    go_on(shop)
    back_up(folder / "backup.db", folder / "shop.db")
    return shop


@pytest.fixture
def restored(on_sqlite: Restored, tmp_path: Path) -> Restored:
    return copied(on_sqlite, tmp_path / "restored")


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    lacking = [p for p in ("initdb", "postgres", "pg_dump", "psql") if postgres.find(p) is None]
    if lacking:
        pytest.skip(f"no {', '.join(lacking)} on this machine")
    started = postgres.start()
    yield started
    started.stop()


@pytest.fixture
def dumped(
    spark: SparkSession, tables: Path, server: postgres.Server, tmp_path: Path
) -> tuple[Restored, Callable[[], None]]:
    """A shop on PostgreSQL, and how its dump of before FORGOTTEN is restored."""
    shop = make(tables, tmp_path / "shop", spark, server.new_url())
    shop.tell(7)
    schema = shop.store.rpartition("%3D")[2]
    at = ["-h", str(server.folder), "-U", "tester", "-d", "postgres"]
    dump = [str(postgres.find("pg_dump")), *at, "--schema", schema]
    text = subprocess.run(dump, check=True, capture_output=True).stdout
    go_on(shop)

    def restore() -> None:
        script = f"DROP SCHEMA {schema} CASCADE;\n".encode() + text
        psql = [str(postgres.find("psql")), *at, "-q", "-v", "ON_ERROR_STOP=1"]
        subprocess.run(psql, input=script, check=True, capture_output=True)

    return shop, restore


def all_once(*more: tuple[str, int]) -> Counter[tuple[str, int]]:
    return Counter([("first", 1), *FORGOTTEN, *more])


def assert_refused(shop: Restored) -> None:
    """Not run, with the reason and the two ways on."""
    before = shop.logged()
    error = shop.refusal()
    assert error.code == "store-behind-effects"
    assert "table `log`" in error.message
    assert f"marker tidegate/{shop.id()}/shop/first is at entry 4" in error.message
    assert "the highest number in this store is 1" in error.message
    assert f"`tidegate adopt --repeat {shop.book}`" in error.hint
    assert f"`tidegate adopt --from now {shop.book}`" in error.hint
    assert error.message in shop.status()["stopped"]
    assert shop.logged() == before


def assert_listed(report: dict[str, Any]) -> None:
    assert [(m["table"], m["rule"], m["entry"]) for m in report["markers"]] == [
        ("log", "hearing", 3),
        ("log", "first", 4),
    ]
    assert Counter((c["rule"], c["entry"], c["firings"]) for c in report["commits"]) == Counter(
        [("first", 2, 1), ("hearing", 3, 1), ("first", 4, 1)]
    )
    assert {c["entry"]: c["version"] for c in report["commits"]} == {2: 2, 3: 2, 4: 3}
    assert (report["last_entry"], report["logs_cleaned"]) == (1, [])


def test_g20_a_restored_store_is_refused_and_repeats_if_told_so(restored: Restored) -> None:
    assert_refused(restored)
    former = restored.id()
    report = restored.adopt("--repeat")
    assert_listed(report)
    assert (report["former_store_id"], report["store_id"]) == (former, restored.id())
    assert former != restored.id()
    restored.run_once()
    assert restored.logged() == all_once(*FORGOTTEN)
    again = restored.adopt("--from", "now")
    assert again["adopted"] is False
    assert "nothing to adopt" in again["result"]
    assert restored.id() == report["store_id"]
    restored.order((4,))
    restored.run_once()
    assert restored.logged() == all_once(*FORGOTTEN, ("first", 4))


@pytest.mark.long
def test_g20_a_restored_store_passes_over_what_it_forgot_if_told_so(
    restored: Restored,
) -> None:
    assert_refused(restored)
    report = restored.adopt("--from", "now")
    assert_listed(report)
    assert report["tables_passed_over"] == ["orders"]
    assert report["signals_passed_over"] == 1
    with restored.engine() as engine:
        engine.run_once()
        assert restored.logged() == all_once()
        restored.order((4,))
        restored.tell(8)
        engine.run_once()
    assert restored.logged() == all_once(("first", 4), ("hearing", 8))


@pytest.mark.long
def test_g20_a_restored_postgresql_dump_is_refused_and_adopted(
    dumped: tuple[Restored, Callable[[], None]],
) -> None:
    shop, restore = dumped
    restore()
    assert_refused(shop)
    assert_listed(shop.adopt("--repeat"))
    shop.run_once()
    assert shop.logged() == all_once(*FORGOTTEN)


def test_g20_a_second_store_is_refused_until_adopted(restored: Restored, tmp_path: Path) -> None:
    other = Restored(restored.spark, restored.folder, f"sqlite:///{tmp_path / 'other.db'}")
    first = restored.id()
    error = other.refusal()
    assert error.code == "other-store"
    assert f"written by store {first} " in error.message
    assert "ago, which this store does not know" in error.message
    report = other.adopt("--from", "now")
    assert [(m["why"], m["store"]) for m in report["markers"]] == [("other-store", first)] * 2
    with other.engine() as engine:
        engine.run_once()
        other.order((9,))
        engine.run_once()
        words = ["adopt", "--repeat", str(other.book), "--store", other.store]
        result = CliRunner().invoke(main, words)
    assert other.logged() == all_once(("first", 9))
    assert result.exit_code == 3
    assert "is run by" in result.stderr


@pytest.mark.long
def test_g16b_engines_on_two_copies_of_a_store_do_nothing_twice(
    spark: SparkSession, tables: Path, tmp_path: Path
) -> None:
    """A signal reaches one of the two, so that their entries have other numbers from then on."""
    shop = make(tables, tmp_path / "shop", spark)
    back_up(shop.folder / "shop.db", tmp_path / "copy.db")
    twin = Restored(spark, shop.folder, f"sqlite:///{tmp_path / 'copy.db'}")
    shop.run_once()
    with shop.engine() as first, twin.engine() as second:  # the later lease is first
        twin.tell(7)
        second.run_once()
        shop.order((2,))
        first.run_once()
        second.run_once()
        assert shop.logged() == Counter([("first", 1), ("hearing", 7), ("first", 2)])
        with open_store(twin.store, create=False) as store:
            (held,) = store.of("shop").outbox.open_entries()
            assert (held.rule, held.state, held.progress.fate) == ("first", "held", "passed")
            assert "an engine on a copy of this store" in (held.progress.error or "")
        shop.order((3,))
        for engine in (first, second):
            engine.run_once()
    assert shop.logged() == Counter([("first", 1), ("hearing", 7), ("first", 2), ("first", 3)])
    assert twin.refusal().code == "store-behind-effects"


@pytest.mark.long
def test_g20_a_target_that_keeps_markers_too_short_is_refused(
    spark: SparkSession, tables: Path, tmp_path: Path
) -> None:
    shop = Restored(spark, Path(shutil.copytree(tables, tmp_path / "shop")))
    shop.sql(f"ALTER TABLE {{log}} SET TBLPROPERTIES ({SHORT})")
    error = shop.refusal()
    assert error.code == "marker-retention"
    assert "table `log` has 'interval 7 days'" in error.message
    mend = error.hint.removeprefix("run ").partition("; or ")[0]
    shop.sql(mend)
    shop.run_once()
