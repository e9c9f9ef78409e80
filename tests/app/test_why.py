"""`why` over real tables: a query asked again, a table restored, and what a commit caused."""

from __future__ import annotations

import json
import shlex
from functools import partial
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from tests.support.lake import Shop
from tidegate.engine.app.asked_again import asked_again
from tidegate.engine.cli.main import main
from tidegate.engine.control.firings import list_firings
from tidegate.engine.replay.why.ask import why
from tidegate.engine.replay.why.model import Story, as_json
from tidegate.engine.store import SqlStore, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOOK = """\
rulebook: shop
tables:
  orders: {path: ./orders, key: [id], on_restore: skip}
  log: {path: ./log, key: [id]}
  limits: {path: ./limits}
events: {ordered: {on: insert, table: orders}, logged: {on: insert, table: log}}
rules:
  large:
    on: ordered
    if: {sql: SELECT e.firing_id FROM event e JOIN orders o ON o.id = e.id WHERE o.amount > 5}
    do: [{sql: "INSERT INTO log SELECT 'large', id, amount FROM event"}]
  seen: {on: logged, per: id}
  above:
    on: ordered
    per: id
    coupling: immediate
    if: {sql: SELECT e.firing_id FROM event e JOIN limits l ON e.id > l.id}
"""


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A shop in which three orders came: two are large, and what is logged of them is seen."""
    shop = Shop(spark, tmp_path_factory.mktemp("shop"))
    shop.book.write_text(BOOK)
    shop.create("orders", "id BIGINT, amount BIGINT")
    shop.create("log", "rule STRING, id BIGINT, amount BIGINT")
    shop.create("limits", "id BIGINT")
    shop.append("limits", (2,))
    shop.run_once()
    shop.order((1, 10), (2, 3), (3, 30))
    with shop.engine() as engine:
        engine.run(until_idle=True)
        firings = {f["condition"]: f for f in list_firings(shop.store, "shop") if f["entries"]}
        assert as_json(engine.why(firings["held"]["firing_id"][:8]))["rule"] == "large"
    return shop


def test_the_command_in_a_commit_can_be_typed_as_it_stands(shop: Shop) -> None:
    commit = shop.sql("DESCRIBE HISTORY {log} LIMIT 1")[0]
    command = json.loads(commit.userMetadata)["why"]
    program, *words = shlex.split(command, comments=True)
    assert program == "tidegate"
    result = CliRunner().invoke(main, words, env={"TIDEGATE_STORE": shop.store})
    assert result.exit_code == 0, result.stderr
    assert f"Its commit is version {commit.version} of log, which wrote 2 rows" in result.stdout
    behind = ["why", "--commit", f"log@{commit.version}", "--store", shop.store]
    assert "for 2 firings of bucket" in " ".join(CliRunner().invoke(main, behind).stdout.split())


@pytest.mark.long
def test_g14_a_query_is_asked_again_of_what_it_saw_and_vacuum_is_told(shop: Shop) -> None:
    spark = shop.spark
    found = [*list_firings(shop.store, "shop")]
    listed = {f["rule"]: f for f in found if f["condition"] != "failed"}
    with open_store(shop.store, create=False) as store:
        held = why(store, None, listed["large"]["firing_id"])
        seen = why(store, None, listed["seen"]["firing_id"])
        of_both = {f["firing_id"] for f in found if f["rule"] == "seen"}
        assert {one.firing_id for one in held.effects} == of_both
        assert len(of_both) == 2
        assert held.firing_id in [one.firing_id for one in seen.causes]
        assert held.condition.versions == {"orders": 1}
        failed = next(f for f in found if (f["rule"], f["condition"]) == ("large", "failed"))
        missed = why(store, None, failed["firing_id"])
        assert _again(spark, store, missed).endswith("it does not hold.")
        shop.sql("RESTORE {orders} TO VERSION AS OF 0")  # no order is left
        assert _again(spark, store, held).endswith("of the same versions, it holds.")
        assert why(store, None, held.firing_id) == held
        for file in (shop.folder / "orders").glob("*.parquet"):
            file.unlink()
        assert "versions that are gone (VACUUM" in _again(spark, store, held)


def test_g14_the_version_of_a_table_without_events_is_found_in_its_log(shop: Shop) -> None:
    shop.append("limits", (0,))  # after the firings: none of them was asked of this version
    above = [f for f in list_firings(shop.store, "shop") if f["rule"] == "above"]
    assert sorted(f["condition"] for f in above) == ["failed", "failed", "held"]
    with open_store(shop.store, create=False) as store:
        for firing in above:
            bare = why(store, None, firing["firing_id"])
            assert (bare.condition.versions, bare.condition.in_log) == ({}, ("limits",))
            asks = partial(asked_again, spark=shop.spark)
            told = why(store, None, firing["firing_id"], asks).condition
            assert (told.versions, told.in_log) == ({"limits": 1}, ())
            says = "it holds." if firing["condition"] == "held" else "it does not hold."
            assert (told.asked_again or "").endswith(f"of the same versions, {says}")


def _again(spark: SparkSession, store: SqlStore, story: Story) -> str:
    told = why(store, None, story.firing_id, lambda *asked: asked_again(*asked, spark=spark))
    return told.condition.asked_again or ""
