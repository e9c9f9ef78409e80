"""A stop while conditions are asked of real tables: shown, cut short, taken up again."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.lake import Shop
from tidegate.connectors.delta.conditions import DeltaConditions
from tidegate.engine.control.status import all_status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOLDS = "SELECT firing_id FROM event WHERE amount > 0"
RULES = "".join(
    f'  r{n}: {{on: ordered, if: {{sql: "{HOLDS}"}},'
    f" do: [{{sql: \"INSERT INTO log SELECT 'r{n}', id, amount FROM event\"}}]}}\n"
    for n in range(3)
)
BOOK = f"""\
rulebook: shop
tables:
  orders: {{path: ./orders, key: [id]}}
  log: {{path: ./log}}
events:
  ordered: {{on: insert, table: orders}}
rules:
{RULES}"""


def test_a_stop_ends_a_bucket_between_two_conditions_and_the_next_run_takes_it(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    shop = Shop(spark, tmp_path)
    shop.book.write_text(BOOK)
    shop.create("orders", "id BIGINT, amount BIGINT")
    shop.create("log", "rule STRING, id BIGINT, amount BIGINT")
    query, asked, going_on = DeltaConditions._query, [], threading.Event()

    def slow(conditions: DeltaConditions, question: Any) -> Any:
        asked.append(question.rule)
        assert going_on.wait(60)
        return query(conditions, question)

    monkeypatch.setattr(DeltaConditions, "_query", slow)
    with shop.engine() as engine, ThreadPoolExecutor(1) as thread:
        shop.order((1, 10))
        run = thread.submit(engine.run)
        until(lambda: bool(asked))
        engine.stop()
        status = all_status(shop.store, "shop")[0]
        assert (status["state"], status["doing"]) == ("stopping", "asking conditions, 1 of 3")
        assert engine.activity.state == "stopping"
        going_on.set()
        assert run.result(60) is None
        assert (len(asked), shop.status()["bucket"], shop.logged()) == (1, 1, {})
        assert "bucket 2 is given up before its transaction" in caplog.text
        assert shop.status()["stopped"] is None
        assert shop.status()["state"] != "stopping"  # it is open, and may run again
        assert [report.rows for report in engine.run_once()] == [1]
    assert shop.logged() == {(f"r{n}", 1, 10): 1 for n in range(3)}


def until(true: Any) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
