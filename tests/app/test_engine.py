"""`Engine` on real Delta tables: how a run goes, ends, stops, and goes on."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from tests.support.lake import Shop, notes_of
from tidegate.connectors.delta.feed import DeltaFeed
from tidegate.engine.app import Engines
from tidegate.engine.control.firings import list_firings
from tidegate.engine.control.requests import reset_table
from tidegate.engine.control.status import all_status
from tidegate.engine.core.keeping import DAY_MICROS, FILES
from tidegate.engine.core.ports import OutageError
from tidegate.engine.core.state import BucketReport
from tidegate.engine.core.text import logs
from tidegate.engine.core.text.logs import STAGES
from tidegate.engine.quarantine.turns import GATE
from tidegate.engine.store import open_store, shelf, state_files
from tidegate.engine.store import tables as t
from tidegate.engine.store.retention import Retention
from tidegate.rules.errors import EngineError, InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOOK = """\
rulebook: shop
tables:
  orders: {path: ./orders, key: [id]}
  log: {path: ./log}
events:
  ordered: {on: insert, table: orders, where: 100 / amount > 0}
  dear: {on: insert, table: orders, where: amount >= 50}
  told: {signal: {id: bigint, amount: bigint}}
rules:
  first:
    on: ordered
    priority: 1
    do:
      - sql: INSERT INTO log SELECT 'first', id, amount FROM event
"""
TELLING = """\
  telling:
    on: dear
    do:
      - signal: {told: {id: max(id), amount: sum(amount)}}
  hearing:
    on: told
    do:
      - sql: INSERT INTO log SELECT 'hearing', id, amount FROM event
"""
PAIRING = """\
  pairing:
    on: dear ; dear
    do:
      - sql: INSERT INTO log SELECT 'pairing', min(id), max(id) FROM event GROUP BY firing_id
"""


def logged_by(shop: Shop) -> list[str]:
    """The rules whose statements wrote the log, in the order of its commits."""
    commits = sorted((shop.folder / "log" / "_delta_log").glob("*.json"))
    infos = [json.loads(file.read_text().splitlines()[0])["commitInfo"] for file in commits]
    return [note["rule"] for info in infos for note in notes_of(info)]


def add(shop: Shop, rules: str) -> None:
    shop.book.write_text(shop.book.read_text() + rules)


@pytest.fixture(scope="module")
def template(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables, and a store in which the rulebook is active."""
    shop = Shop(spark, tmp_path_factory.mktemp("shop"))
    shop.book.write_text(BOOK)
    shop.create("orders", "id BIGINT, amount BIGINT")
    shop.create("log", "rule STRING, id BIGINT, amount BIGINT")
    assert [report.rows for report in shop.run_once()] == [0]
    return shop.folder


@pytest.fixture
def shop(spark: SparkSession, template: Path, tmp_path: Path) -> Shop:
    return Shop(spark, Path(shutil.copytree(template, tmp_path / "shop")))


def test_g21_run_once_does_what_was_visible_at_its_start_and_no_second_engine_runs(
    shop: Shop,
) -> None:
    shop.order((1, 10))
    shop.order((2, 20))
    with shop.engine(bucket_rows_max="1") as engine:
        with pytest.raises(EngineError, match="rulebook 'shop' is run by") as refused:
            shop.run_once()
        assert (refused.value.code, refused.value.exit_code) == ("lease-held", 3)
        reports = engine.run_once(on_bucket=lambda report: shop.order((report.bucket, 30)))
    assert [(r.bucket, r.rows, r.firings, r.entries) for r in reports] == [
        (2, 1, 1, 1),
        (3, 1, 1, 1),
    ]
    assert shop.logged() == {("first", 1, 10): 1, ("first", 2, 20): 1}
    assert set(reports[0].seconds) == {"plan", "capture", "detect", "evaluate", "commit", "act"}


def test_g02_g13_slack_is_waited_for_not_polled_and_what_is_past_its_retention_is_forgotten(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []
    head = DeltaFeed.head

    def counted(feed: DeltaFeed, *given: Any) -> Any:
        looks.append(given)
        return head(feed, *given)

    with shop.engine(commit_slack_ms="1000") as engine:
        with monkeypatch.context() as patch:
            patch.setattr(DeltaFeed, "head", counted)
            shop.order((1, 10))
            assert [report.rows for report in engine.run_once()] == [1]
        assert len(looks) <= 6  # one for what is visible, one for each half of a second
        assert len(list(list_firings(shop.store, None))) == 1
        monkeypatch.setattr("tidegate.engine.app.engine.MICROS_PER_DAY", 0)  # everything is old
        assert engine.run_once() == ()
        assert list(list_firings(shop.store, None)) == []
        shop.order((2, 60))
        engine.run_once()
    assert shop.status()["fired"] == 2
    assert shop.logged() == {("first", 1, 10): 1, ("first", 2, 60): 1}


@pytest.mark.long
def test_what_takes_long_stands_in_status_until_it_is_over(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "FIRST_SECONDS", 0.01)
    read, said = DeltaFeed.read, Counter[str]()

    def wait_for(text: str) -> None:
        for _ in range(200):
            told = shop.status()["doing"]
            if told == text:
                said[told] += 1
                return
            time.sleep(0.05)

    def reading(feed: DeltaFeed, *given: Any) -> Any:
        wait_for("reading tables, 1 of 1")
        return read(feed, *given)

    monkeypatch.setattr(DeltaFeed, "read", reading)
    shop.order((1, 10))
    with shop.engine() as engine:
        engine.run_once()
        wait_for("")
    assert said == {"reading tables, 1 of 1": 1, "": 1}


def test_g04_until_idle_follows_what_actions_raise_and_a_signal_is_durable_and_placed_once(
    shop: Shop,
) -> None:
    add(shop, TELLING)
    shop.order((1, 60), (2, 5))
    by_actions = {("first", 1, 60): 1, ("first", 2, 5): 1, ("hearing", 1, 60): 1}
    with shop.engine() as engine:
        engine.run(until_idle=True)
        assert engine.run_once() == ()
        assert shop.logged() == by_actions
        null = engine.signal("told", {"id": 7, "amount": None})
        assert engine.signal("told", {"id": 7}, amount=3) != null
        for _ in range(2):  # the client asks again, not knowing
            assert engine.signal("told", {"id": 8}, amount=4, id="x") == "x"
    assert shop.status()["unplaced_signals"] == 3
    with shop.engine() as engine:
        engine.run_once()
        engine.signal("told", {"id": 8}, amount=4, id="x")
        assert engine.run_once() == ()
        with pytest.raises(EngineError, match="signal id 'x' of rulebook 'shop' stands for told"):
            engine.signal("told", {"id": 9}, amount=4, id="x")
        with pytest.raises(InputError, match="did you mean 'amount'"):
            engine.signal("told", amout=3)
        with pytest.raises(InputError, match=r"the field `id`\s+stands in a mapping"):
            engine.signal("told", id=7)  # type: ignore[arg-type]
    assert shop.logged() == by_actions | {
        ("hearing", 7, 3): 1,
        ("hearing", 7, None): 1,
        ("hearing", 8, 4): 1,
    }
    assert shop.status()["unplaced_signals"] == 0


@pytest.mark.long
def test_on_idle_ends_the_run_and_stop_ends_it_after_the_bucket_in_hand(shop: Shop) -> None:
    idle: list[int] = []

    def on_idle() -> bool:
        idle.append(len(shop.logged()))
        if len(idle) == 1:
            shop.order((1, 10))
        return len(idle) == 2

    with shop.engine() as engine:
        engine.run(poll_seconds=0.05, on_idle=on_idle)
        assert idle == [0, 1]
        shop.order((2, 20))
        engine.run(on_bucket=lambda _: engine.stop())
        shop.order((3, 30))
        assert ("first", 3, 30) not in shop.logged()
        engine.stop()  # of a run that has ended
        assert [report.rows for report in engine.run_once()] == [1]
        shop.order((4, 40))
        engine.run(on_bucket=lambda _: engine.stop())
    shop.order((5, 50))
    with pytest.raises(EngineError, match="is closed"):
        engine.run_once()
    with engine:
        assert [report.rows for report in engine.run_once()] == [1]
    assert shop.logged() == {("first", n, 10 * n): 1 for n in range(1, 6)}


@pytest.mark.long
def test_a_stop_ends_a_run_that_waits_until_a_suspect_has_run(shop: Shop) -> None:
    shop.order((1, 10))
    with shop.engine() as engine:
        with ThreadPoolExecutor(1) as thread, GATE.turn(alone=True):  # of another rulebook
            run = thread.submit(engine.run_once)
            end = time.monotonic() + 60
            while (stage := engine._stage()) is None or stage.what != STAGES["capture"]:
                assert time.monotonic() < end
                time.sleep(0.01)
            engine.stop()
            assert run.result(60) == ()
        assert shop.status()["stopped"] is None
        assert not shop.logged()
    with shop.engine() as engine:
        assert [report.rows for report in engine.run_once()] == [1]
    assert shop.logged() == {("first", 1, 10): 1}


@pytest.mark.long
def test_a_second_run_is_refused_and_the_first_goes_on(shop: Shop) -> None:
    refused: list[BaseException | None] = []

    def on_bucket(_: BucketReport) -> None:
        with ThreadPoolExecutor(1) as other:
            refused.append(other.submit(engine.run_once).exception())
        if len(refused) == 1:
            shop.order((2, 20))

    shop.order((1, 10))
    with shop.engine() as engine:
        engine.run(poll_seconds=0.05, on_bucket=on_bucket, on_idle=lambda: len(refused) == 2)
    assert ["runs already" in str(error) for error in refused] == [True, True]
    assert shop.logged() == {("first", 1, 10): 1, ("first", 2, 20): 1}
    assert shop.status()["stopped"] is None


def test_g09_what_is_committed_once_an_engine_of_a_new_store_is_entered_counts(
    shop: Shop,
) -> None:
    (shop.folder / "shop.db").unlink()
    told: list[int] = []
    with shop.engine() as engine:
        shop.order((1, 10))
        reports = engine.run_once(on_bucket=lambda report: told.append(report.bucket))
    assert [(report.bucket, report.rows) for report in reports] == [(1, 0), (2, 1)]
    assert told == [1, 2]
    assert shop.logged() == {("first", 1, 10): 1}


def test_what_an_engine_is_asked_in_python_is_as_the_commands_have_it(shop: Shop) -> None:
    shop.edit("    on: ordered\n", "    on: ordered\n    per: id\n")
    with shop.engine() as engine:
        engine.run_once()
        engine.disable("first", key={"id": 7})
        with pytest.raises(InputError, match="exclude"):
            engine.disable("first", key={"id": 8}, purge=True)
        with pytest.raises(InputError, match="`amount` is given twice"):
            engine.signal("told", {"id": 1, "amount": 2}, amount=3)
        shop.order((7, 10))
        shop.order((8, 10))
        engine.run_once()
        engine.enable("first", key={"id": 7})
        shop.order((7, 20))
        engine.run_once()
    assert shop.logged() == {("first", 8, 10): 1, ("first", 7, 20): 1}
    with pytest.raises(InputError, match="no rulebook is given"):
        Engines([])


def test_g07_the_cause_of_a_stop_is_kept_until_the_next_run(shop: Shop) -> None:
    kept = shop.folder / "kept"
    log = shop.folder / "orders" / "_delta_log"
    shop.order((1, 10))
    shop.order((2, 20))
    with shop.engine() as engine:
        shutil.move(log / f"{1:020d}.json", kept)
        with pytest.raises(EngineError, match=r"orders.*version 1") as stop:
            engine.run_once()
        assert shop.status()["stopped"] == str(stop.value)
        shutil.move(kept, log / f"{1:020d}.json")
        assert sum(report.rows for report in engine.run_once()) == 2
    assert shop.status()["stopped"] is None


def test_g07_a_storage_that_is_away_is_waited_for_and_a_spark_that_is_gone_is_not(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, fails = DeltaFeed.head, [time.monotonic()]

    def away(*given: Any) -> Any:
        if time.monotonic() < fails[0] + 0.2:
            raise ConnectionRefusedError("refused")
        return head(*given)

    shop.order((1, 10))
    with shop.engine(outage_max_seconds="1") as engine:
        with monkeypatch.context() as patched:
            fails[0] = time.monotonic()
            patched.setattr(DeltaFeed, "head", away)
            engine.run(poll_seconds=0.01, on_idle=lambda: True)  # its pauses are not the poll's
        assert shop.logged() == {("first", 1, 10): 1}
        with monkeypatch.context() as patched:
            fails[0] = float("inf")
            patched.setattr(DeltaFeed, "head", away)
            patched.setattr(shop.spark.sparkContext, "_jsc", None)
            with pytest.raises(EngineError, match="Spark is gone: its context was stopped"):
                engine.run_once()


@pytest.mark.long
def test_g07_a_store_that_is_away_while_it_forgets_is_waited_for(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    purge, calls = Retention.purge, [0]

    def away(*given: Any) -> int:
        calls[0] += 1
        if calls[0] == 1:
            raise OutageError("store-unreachable", "the store is away")
        return purge(*given)

    monkeypatch.setattr(Retention, "purge", away)
    monkeypatch.setattr("tidegate.engine.app.engine.PURGE_EVERY_BUCKETS", 1)
    shop.order((1, 10))
    with shop.engine() as engine:
        engine.run(until_idle=True)
    assert calls[0] > 1
    assert shop.logged() == {("first", 1, 10): 1}


@pytest.mark.long
def test_g10_a_table_is_set_back_to_a_version_or_on_to_its_head(shop: Shop) -> None:
    shop.order((1, 10))
    shop.order((2, 20))
    with shop.engine() as engine:
        engine.run_once()
        reset_table(shop.store, "shop", "orders", "2")
        engine.run_once()
        once_more = {("first", 1, 10): 1, ("first", 2, 20): 2}  # read again: a new occurrence
        assert shop.logged() == once_more
        shop.order((3, 30))
        reset_table(shop.store, "shop", "orders", "now")
        engine.run_once()
        assert shop.logged() == once_more
        shop.order((4, 40))
        engine.run_once()
    assert shop.logged() == once_more | {("first", 4, 40): 1}
    assert shop.status()["asked_for"] == []


@pytest.mark.long
def test_g15_g25_g31_tables_of_a_catalog_rows_that_raise_and_the_order_of_actions(
    shop: Shop,
) -> None:
    """Actions run by priority; rows on which `where` raises are rejected, counted."""
    rule = "  {}:\n    on: ordered\n    priority: {}\n    do:\n      - sql: {}\n"
    for name, priority in (("aged", 0), ("bold", 2), ("able", 0)):
        statement = f"INSERT INTO log SELECT '{name}', id, amount FROM event"
        add(shop, rule.format(name, priority, statement))
    shop.spark.sql("CREATE DATABASE market")
    try:
        for name in ("orders", "log"):
            at = f"USING delta LOCATION '{shop.folder / name}'"
            shop.spark.sql(f"CREATE TABLE market.{name} {at}")
            shop.edit(f"path: ./{name}", f"table: market.{name}")
        shop.order((1, 10), (2, 0), (3, 20))
        shop.run_once()
    finally:
        shop.spark.sql("DROP DATABASE market CASCADE")
    order = logged_by(shop)
    assert (order[:2], sorted(order[2:])) == (["bold", "first"], ["able", "aged"])
    rules = ("first", "bold", "able", "aged")
    assert shop.logged() == {(rule, *row): 1 for rule in rules for row in ((1, 10), (3, 20))}
    assert shop.status()["rejected_rows"] == 1


@pytest.mark.long
def test_g09_edited_actions_keep_what_is_carried_and_new_rules_see_what_comes_later(
    shop: Shop,
) -> None:
    add(shop, PAIRING)
    shop.order((1, 60))
    shop.run_once()
    shop.edit("SELECT 'pairing', min(id)", "SELECT 'edited', min(id)")
    add(shop, PAIRING.replace("pairing", "later"))
    shop.order((2, 70))
    shop.run_once()
    pairs = {("edited", 1, 2): 1}
    assert shop.status()["active_rules"] == ["first", "later", "pairing"]
    pairing, later = shop.book.read_text().split("  later:")  # the root is another node now
    pairing = pairing.replace("on: dear ; dear", "on: dear ; dear within 1 h")
    shop.book.write_text(f"{pairing}  later:{later}")
    shop.order((3, 80))
    shop.run_once()
    pairs |= {("later", 2, 3): 1}
    assert {row: n for row, n in shop.logged().items() if row[0] != "first"} == pairs


@pytest.mark.long
def test_g17_a_failing_action_holds_its_rule_and_a_restart_tries_it_again(shop: Shop) -> None:
    shop.edit("    priority: 1", "    priority: 1\n    retry: {attempts: 1}\n    on_dead: hold")
    add(shop, TELLING.replace("hearing", "second"))
    shop.sql("ALTER TABLE {log} ADD CONSTRAINT small CHECK (rule <> 'first' OR amount < 90)")
    shop.order((1, 95), (2, 10))
    with shop.engine() as engine:
        engine.run_once()
        (obstacle,) = engine.obstacles()
        assert "entry 1 of rule first is held" in obstacle
        assert "`tidegate skip 1`" in obstacle
        status = shop.status()
        assert status["stopped"] is None
        assert [(e["number"], e["rule"], e["state"], e["attempts"]) for e in status["entries"]] == [
            (1, "first", "held", 1)
        ]  # the other rule's entry is done
        shop.order((3, 20))
        engine.run_once()  # detection goes on
    assert (shop.logged(), shop.status()["bucket"]) == ({("second", 1, 95): 1}, 3)
    shop.sql("ALTER TABLE {log} DROP CONSTRAINT small")
    shop.run_once()
    expected = [("first", 1, 95), ("first", 2, 10), ("first", 3, 20), ("second", 1, 95)]
    assert shop.logged() == Counter(expected)
    assert shop.status()["entries_pending"] == 0


@pytest.mark.long
def test_g16b_a_new_column_of_the_source_loses_no_effect(shop: Shop) -> None:
    """`SELECT *` gives a column more than the target has: the entry says so, the other rule goes
    on, and once the target has room nothing is missing."""
    shop.edit("    priority: 1\n", "    priority: 1\n    retry: {attempts: 1}\n")
    shop.edit("SELECT 'first', id, amount FROM event", "SELECT 'first', * EXCEPT (%s) FROM event")
    fixed = "firing_id, event_type, label, occurred_at, started_at, detected_at"
    shop.edit("%s", fixed)
    add(shop, PAIRING.replace("dear ; dear", "dear"))
    shop.order((1, 60))
    with shop.engine() as engine:
        engine.run_once()
        shop.sql("ALTER TABLE {orders} ADD COLUMN more BIGINT")
        shop.sql("INSERT INTO {orders} VALUES (2, 70, 5)")
        engine.run_once()
        assert shop.logged() == {("first", 1, 60): 1, ("pairing", 1, 1): 1, ("pairing", 2, 2): 1}
        (obstacle,) = engine.obstacles()
        assert "the statement gives 4 columns, its target has 3" in obstacle
    shop.edit(f"'first', * EXCEPT ({fixed})", "'first', id, amount")
    with open_store(shop.store, create=False) as store:
        store.of("shop").controls.ask("redrive", "3")
    shop.run_once()
    assert shop.logged()["first", 2, 70] == 1
    assert shop.status()["entries_pending"] == 0


@pytest.mark.long
def test_a_target_that_got_a_column_holds_its_rule_only_also_after_a_restart(shop: Shop) -> None:
    """As with a `run --once` from cron: each run is a start."""
    held = "retry: {attempts: 1}\n    on_dead: hold\n"
    shop.edit("    priority: 1\n", f"    priority: 1\n    {held}")
    shop.sql("CREATE TABLE {other} (id BIGINT) USING delta")
    shop.edit("  log: {path: ./log}", "  log: {path: ./log}\n  other: {path: ./other, key: [id]}")
    add(
        shop,
        "  second:\n    on: dear\n    do:\n      - sql: INSERT INTO other SELECT id FROM event\n",
    )
    shop.run_once()
    shop.sql("ALTER TABLE {log} ADD COLUMN more BIGINT")
    shop.order((1, 60))
    with shop.engine() as engine:
        engine.run_once()
        (obstacle,) = engine.obstacles()
    assert "of rule first is held" in obstacle
    assert [tuple(row) for row in shop.sql("SELECT id FROM {other}")] == [(1,)]
    shutil.rmtree(shop.folder / "other")  # a target that is gone holds its rule, too
    shop.order((2, 70))
    with shop.engine() as engine:
        engine.run_once()
        assert len(engine.obstacles()) == 3  # two entries of first, one of second
    shop.edit("SELECT 'first', id, amount FROM event", "SELECT 'first', id, amount, 0 FROM event")
    shop.sql("CREATE TABLE {other} (id BIGINT) USING delta")
    with open_store(shop.store, create=False) as store:
        for entry in store.of("shop").outbox.open_entries():
            store.of("shop").controls.ask("redrive", str(entry.number), option="may-double")
    shop.run_once()
    assert shop.logged() == {("first", 1, 60, 0): 1, ("first", 2, 70, 0): 1}
    assert [tuple(row) for row in shop.sql("SELECT id FROM {other}")] == [(2,)]


CHANGED = """\
  netting:
    on: every(6, changed)
    if: {sql: SELECT firing_id FROM new_updated WHERE amount = 7}
    do:
      - sql: >
          INSERT INTO log SELECT 'in', id, amount FROM inserted
          UNION ALL SELECT 'out', id, amount FROM deleted
          UNION ALL SELECT 'old', id, amount FROM old_updated
      - sql: INSERT INTO log SELECT 'new', id, amount FROM new_updated
  echo:
    on: grown
    ignore_own: true
    do: "MERGE INTO orders o USING event e ON o.id = e.id WHEN MATCHED THEN UPDATE SET amount = 9"
  others:
    on: grown
    do: INSERT INTO log SELECT 'grown', id, amount FROM event
"""


@pytest.mark.long
def test_g22_net_effects_and_rules_that_ignore_what_they_wrote(shop: Shop) -> None:
    shop.order((3, 5))
    shop.run_once()
    shop.edit(
        "events:\n",
        "events:\n  changed: {on: change, table: orders}\n"
        "  grown: {on: update, table: orders, of: [amount], where: id = 3 and amount > 6}\n",
    )
    add(shop, CHANGED)
    shop.order((1, 5), (2, 5))
    for text in (
        "UPDATE {orders} SET amount = 6 WHERE id <> 2",
        "DELETE FROM {orders} WHERE id = 2",
        "UPDATE {orders} SET amount = 7 WHERE id = 3",
    ):
        shop.sql(text)
    with shop.engine() as engine:
        engine.run_once()
        engine.run_once()  # what echo wrote
    assert {row: n for row, n in shop.logged().items() if row[0] != "first"} == Counter(
        [("in", 1, 6), ("old", 3, 5), ("new", 3, 7), ("grown", 3, 7), ("grown", 3, 9)]
    )
    assert {rule["rule"]: rule["fired"] for rule in shop.status()["rules"]}["echo"] == 1


def test_the_store_learns_how_long_the_tables_keep_their_past(shop: Shop) -> None:
    """At the start, and at the end of `run_once`."""
    week, day = 7 * DAY_MICROS, DAY_MICROS
    with shop.engine() as engine:
        with open_store(shop.store, create=False) as store:
            kept = store.of("shop").keepings.known()
        assert {name: one.files_micros for name, one in kept.items()} == {
            "orders": week, "log": week,
        }  # fmt: skip
        one_day = "'delta.deletedFileRetentionDuration' = '1 day'"
        shop.sql(f"ALTER TABLE {{orders}} SET TBLPROPERTIES ({one_day})")
        engine.run_once()
    [status] = all_status(shop.store, None)
    [row] = (row for row in status["retention"]["tables"] if row["table"] == "orders")
    assert (row["stands_seconds"], row["by"]) == (day // 1_000_000, FILES)
    assert (status["retention"]["deadlines"], status["retention"]["unknown"]) == ([], [])


@pytest.mark.parametrize("once", [True, False])
def test_g26_small_state_files_are_put_together_when_nothing_is_left_to_do(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, once: bool
) -> None:
    """Each order begins a pair of another rule, which a file of its bucket has."""
    monkeypatch.setattr(shelf, "BYTES_MIN", 1)
    monkeypatch.setattr(state_files, "SMALL_FILES_MIN", 3)
    text, amounts = shop.book.read_text(), (1, 2, 3)
    events = [f"  o{n}: {{on: insert, table: orders, where: amount = {n}}}\n" for n in amounts]
    pairs = [f"  pair{n}: {{on: o{n} ; dear}}\n" for n in amounts]
    shop.book.write_text(text.replace("rules:\n", "".join((*events, "rules:\n", *pairs))))
    lying = list[int]()
    with shop.engine() as engine:
        for n in amounts:
            shop.order((n, n))
            if once:
                engine.run_once()
            else:
                engine.run(until_idle=True)
            lying.append(files_of_parts(shop))
    assert lying == [1, 2, 1]
    shop.order((9, 50))
    shop.run_once()
    fired = {row["rule"]: row["fired"] for row in shop.status()["rules"]}
    assert [fired[f"pair{n}"] for n in amounts] == [1, 1, 1]


def files_of_parts(shop: Shop) -> int:
    """In how many files the parts of what is carried lie."""
    with open_store(shop.store, create=False) as store, store.database.read() as connection:
        names = connection.execute(sa.select(t.carried.c.file)).scalars()
        return len({name for name in names if name is not None})
