"""`tidegate backtest` on real Delta tables: what it finds, and what it refuses."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tidegate as package
from tests.cli.conftest import Tidegate
from tests.replay.backtest.made import backtest as made
from tests.support.lake import Shop
from tidegate.engine.app.sessions import Sessions
from tidegate.engine.control.firings import list_firings
from tidegate.engine.replay.backtest.model import Backtest
from tidegate.rules.errors import InputError

BOOK = """\
rulebook: shop
tables: {orders: {path: ./orders, key: [id]}, prices: {path: ./prices}, log: {path: ./log}}
events:
  placed: {on: insert, table: orders}
  changed: {on: update, table: orders}
  large: {signal: {id: bigint}}
rules:
  noted: {on: placed, do: [{sql: "INSERT INTO log SELECT id, amount FROM event"}]}
  high: {on: placed, if: max(amount) > 10, do: [{signal: {large: {id: max(id)}}}]}
  again: {on: large ; changed, per: id}
  gap: {on: placed ; changed within 1 h, per: id}
  dear:
    on: placed
    coupling: immediate
    if: {sql: "SELECT firing_id FROM event WHERE amount > (SELECT min(price) FROM prices)"}
"""
NOT_SHOWN = ("bucket", "fired_at", "entries")


@pytest.fixture(scope="module")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of a rulebook that has run live: orders 1 to 4, of which 3 and 4 are updated."""
    folder = tmp_path_factory.mktemp("shop")
    shop = Shop(spark, folder)
    shop.create("orders", "id BIGINT, amount BIGINT")
    shop.create("log", "id BIGINT, amount BIGINT")
    shop.create("prices", "price BIGINT")
    shop.append("prices", (50,))
    shop.book.write_text(BOOK)
    with shop.engine() as engine:
        engine.run_once()
        shop.order((1, 5), (2, 20))
        shop.order((3, 30))
        shop.append("prices", (10,))
        engine.run_once()
        shop.sql("UPDATE {orders} SET amount = 31 WHERE id = 3")
        shop.order((4, 40))
        engine.run_once()
    shop.sql("UPDATE {orders} SET amount = 41 WHERE id = 4")
    shop.run_once()
    return folder


@pytest.fixture
def shop(spark: SparkSession, ran: Path) -> Shop:
    return Shop(spark, ran)


def backtested(tidegate: Tidegate, *words: object) -> list[dict[str, Any]]:
    result = tidegate("backtest", *words, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def files(folder: Path) -> dict[str, bytes]:
    """The store and the tables, byte for byte. SQLite shares memory in a file of its own."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".db-shm")
    return {str(path): path.read_bytes() for path in found}


def test_what_ran_live_is_found_again_and_nothing_is_written(
    tidegate: Tidegate, shop: Shop, ran: Path
) -> None:
    before = files(ran)
    found = backtested(tidegate, shop.book, "--from", 1, "--store", shop.store)
    assert files(ran) == before
    live = [*list_firings(shop.store, "shop")]
    assert {(one["rule"], one["condition"]) for one in live} > {("dear", "held"), ("again", "none")}
    assert found == [{n: v for n, v in one.items() if n not in NOT_SHOWN} for one in live]


@pytest.mark.long
def test_without_a_store_signals_stand_a_millisecond_after_their_rule(
    tidegate: Tidegate, shop: Shop
) -> None:
    found = backtested(tidegate, shop.book, "--from", 1)
    high = {one["constituents"][0]["id"]: one["end"] for one in found if one["rule"] == "high"}
    again = [one for one in found if one["rule"] == "again"]
    assert [one["key"]["id"] for one in again] == [3, 4]
    for one in again:
        cause = datetime.fromisoformat(high[one["key"]["id"]])
        assert datetime.fromisoformat(one["start"]) - cause == timedelta(milliseconds=1)


def test_a_span_of_versions_and_one_rule(tidegate: Tidegate, shop: Shop) -> None:
    found = backtested(tidegate, shop.book, "--from", 2, "--to", "orders@4", "--rule", "noted")
    assert [one["constituents"][0]["id"] for one in found] == [3, 4]


def test_queries_may_be_skipped(tidegate: Tidegate, shop: Shop) -> None:
    words = (shop.book, "--from", 1, "--conditions", "skip")
    found = backtested(tidegate, *words)
    outcomes = {(one["rule"], one["condition"]) for one in found}
    assert {outcome for rule, outcome in outcomes if rule == "dear"} == {"skipped"}
    assert {outcome for rule, outcome in outcomes if rule == "high"} == {"held", "failed"}


@pytest.mark.long
def test_for_people(tidegate: Tidegate, shop: Shop, tmp_path: Path) -> None:
    words = ("backtest", shop.book, "--from", 1, "--html", tmp_path / "page.html")
    result = tidegate(*words, "--reports", tmp_path / "reports")
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "The past contains what the real rules did: 0 of 5 commits in it are theirs." in said
    assert "12 fired, 4 whose condition failed" in said
    assert "The past contains" in (tmp_path / "page.html").read_text()
    assert (tmp_path / "reports" / "index.html").exists()


def test_against_another_rulebook_and_the_registered_one(tidegate: Tidegate, shop: Shop) -> None:
    other = shop.book.with_name("other.yaml")
    other.write_text(BOOK.replace("max(amount) > 10", "max(amount) > 25"))
    words = (shop.book, "--from", 1, "--rule", "high", "--against")
    (line,) = backtested(tidegate, *words, other)
    assert (line["rule"], line["otherwise"]) == ("high", "condition_failed")
    assert backtested(tidegate, *words, "store", "--store", shop.store) == []
    result = tidegate("backtest", *words, other)
    assert "1 firing differs" in result.stdout


@pytest.mark.long
def test_another_rulebook_is_judged_over_the_past_of_the_first_one(
    tidegate: Tidegate, shop: Shop
) -> None:
    """Its name is another, and it calls the tables otherwise: they are the same ones."""
    other = shop.book.with_name("renamed.yaml")
    renamed = BOOK.replace("rulebook: shop", "rulebook: new").replace(
        "table: orders", "table: buys"
    )
    other.write_text(renamed.replace("{orders: {", "{buys: {"))
    words = (shop.book, "--from", 1, "--against", other, "--store", shop.store)
    result = tidegate("backtest", *words)
    assert "no firing differs, 12 are the same" in result.stdout


def test_a_store_without_the_rulebook_is_refused(tidegate: Tidegate, shop: Shop) -> None:
    other = shop.book.with_name("named.yaml")
    other.write_text(BOOK.replace("rulebook: shop", "rulebook: shops"))
    for more in ([], ["--against", "store"], ["--against", shop.book]):
        words = ("backtest", other, "--from", "orders@1", "--store", shop.store, *more)
        result = tidegate(*words)
        assert result.exit_code == 1
        assert "--store: the store has no rulebook `shops`" in result.stderr
        assert "did you mean 'shop'?" in result.stderr


@pytest.mark.parametrize("option", ["--html", "--reports"])
def test_where_no_report_can_be_written_nothing_is_run(
    tidegate: Tidegate, shop: Shop, tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object, **__: object) -> None:
        raise AssertionError("it was run")

    monkeypatch.setattr("tidegate.engine.app.backtest", run)
    (tmp_path / "index.html").write_text("<h1>mine</h1>")
    words = ("backtest", shop.book, "--from", 1, option)
    result = tidegate(*words, tmp_path if option == "--reports" else tmp_path / "no" / "page.html")
    assert result.exit_code == 1, result.output
    assert result.stderr.count(option) == 1
    assert [(f.name, f.read_text()) for f in tmp_path.iterdir()] == [
        ("index.html", "<h1>mine</h1>")
    ]


def test_pages_are_written_though_nobody_reads_on(
    tidegate: Tidegate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object) -> None:
        raise BrokenPipeError

    book, page, reports = (tmp_path / name for name in ("bank.yaml", "page.html", "reports"))
    book.write_text(BOOK)
    monkeypatch.setattr("tidegate.engine.app.backtest", lambda *_, **__: made([], "paid"))
    monkeypatch.setattr("tidegate.engine.cli.output.say", closed)
    tidegate("backtest", book, "--from", 1, "--html", page, "--reports", reports)
    assert "paid" in page.read_text()
    assert (reports / "index.html").exists()


def test_a_page_that_cannot_be_written_takes_nothing_from_what_is_said(
    tidegate: Tidegate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object, **__: object) -> Backtest:
        page.parent.rmdir()
        return made([], "paid")

    book, page = tmp_path / "bank.yaml", tmp_path / "gone" / "page.html"
    page.parent.mkdir()
    book.write_text(BOOK)
    monkeypatch.setattr("tidegate.engine.app.backtest", run)
    result = tidegate("backtest", book, "--from", 1, "--html", page)
    assert result.exit_code == 1
    assert "paid" in result.stdout
    assert "the page cannot be written" in result.stderr


@pytest.mark.long
def test_what_vacuum_took_is_refused_with_the_earliest_time(
    tidegate: Tidegate, shop: Shop, spark: SparkSession, tmp_path: Path
) -> None:
    shutil.copytree(shop.book.parent, tmp_path / "shop")
    cut = Shop(spark, tmp_path / "shop")
    added = [json.loads(line).get("add") for line in cut.log("orders", 2).read_text().splitlines()]
    (file,) = [one["path"] for one in added if one]
    (Path(cut.path("orders")) / file).unlink()
    result = tidegate("backtest", cut.book, "--from", 1)
    assert result.exit_code == 1, result.output
    assert "the changes of table `orders` can be read from version 3 on" in result.stderr
    earliest = result.stderr.split("--from ")[1].split()[0]
    found = backtested(tidegate, cut.book, "--from", earliest, "--rule", "noted")
    assert [one["constituents"][0]["id"] for one in found] == [4]
    later = backtested(tidegate, cut.book, "--from", 5, "--rule", "gap")
    assert [one["key"] for one in later] == [{"id": 4}]
    result = tidegate("backtest", cut.book, "--from", 5, "--rule", "gap", "--warm-up", "1 d")
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "99"], "--from: table `orders` has no version 99 yet: its last one is 5"),
        (["--from", "yesterday"], "--from: 'yesterday' is neither a time nor a version"),
        (["--from", "oders@1"], "did you mean 'orders'?"),
        (["--from", "4", "--to", "2"], "--to: version 2 comes before version 4"),
        (["--from", "1", "--rule", "nothed"], "did you mean 'noted'?"),
        (["--from", "1", "--context", "recnt"], "did you mean 'recent'?"),
        (["--from", "1", "--warm-up", "1 month"], "months and years have no fixed length"),
        (["--from", "1", "--against", "nothing.yaml"], "there is no file nothing.yaml"),
        (["--from", "1", "--against", "store"], "--store URL, or TIDEGATE_STORE"),
        (["--from", "1", "--html", "/no/folder/page.html"], "there is no folder /no/folder"),
    ],
)
def test_wrong_words_are_refused(
    tidegate: Tidegate, shop: Shop, words: list[str], said: str
) -> None:
    result = tidegate("backtest", shop.book, *words)
    assert result.exit_code == 1
    assert said in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "3"], "--from: 3 may be a version of several tables"),
        (["--from", "log@1"], "--from: no table `log` raises events in this rulebook"),
        (["--from", "yesterday"], "--from: 'yesterday' is neither a time nor a version"),
        (["--from", "1 h", "--to", "soon"], "--to: 'soon' is neither a time nor a version"),
        (["--from", "2026-03-02", "--to", "2026-03-01"], "--to: the span ends at 2026-03-01T"),
        (["--from", "2999-01-01"], "before it begins"),
        (["--from", "orders@4", "--to", "orders@2"], "--to: version 2 comes before version 4"),
        (["--from", "1 h", "--warm-up", "1 month"], "months and years have no fixed length"),
    ],
)
def test_what_needs_no_table_is_refused_before_spark_starts(
    tidegate: Tidegate,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    def started(_: Sessions) -> None:
        raise AssertionError

    monkeypatch.setattr(Sessions, "get", started)
    file = tmp_path / "shop.yaml"
    file.write_text(BOOK.replace("large:", "priced: {on: insert, table: prices}\n  large:", 1))
    result = tidegate("backtest", file, *words)
    assert result.exit_code == 1, result.stderr
    assert said in result.stderr


def test_in_python(spark: SparkSession, shop: Shop) -> None:
    found = package.backtest(shop.book, "1 h", rule="noted", spark=spark)
    assert found.firings["rule"].to_pylist() == ["noted"] * 4
    with pytest.raises(InputError, match="unknown conditions"):
        package.backtest(shop.book, "1 h", conditions="later", spark=spark)
