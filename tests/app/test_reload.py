"""A rulebook that is taken over while its engine runs, on real Spark and Delta (G24)."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.support.lake import Shop
from tidegate import Engine
from tidegate.engine.control.rulebooks import Rules
from tidegate.engine.control.status import all_status
from tidegate.engine.store import open_store
from tidegate.rules.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

INSERT = "INSERT INTO log (rule, id, amount) SELECT '{}', id, amount FROM event"
BOOK = f"""\
rulebook: shop
tables: {{orders: {{path: ./orders, key: [id]}}, log: {{path: ./log}}}}
events:
  small: {{on: insert, table: orders, where: amount < 10}}
  large: {{on: insert, table: orders, where: amount >= 10}}
rules:
  pair: {{on: small ; large, per: id, do: ["{INSERT.format("pair")}"]}}
"""


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    shop = Shop(spark, tmp_path)
    shop.book.write_text(BOOK)
    shop.create("orders", "id BIGINT, amount BIGINT")
    shop.create("log", "rule STRING, id BIGINT, amount BIGINT")
    return shop


def test_g24_what_is_unchanged_keeps_its_state_and_what_does_not_fit_is_refused(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    with shop.engine(yaml_bytes_max=str(2**21)) as engine:
        engine.run_once()
        shop.order((1, 5))
        engine.run_once()
        settings = f"settings: {{lease_seconds: 77}} # {'x' * 2**20}\n"  # as long as it may be here
        engine.reload(f'{BOOK}  big: {{on: large, do: ["{INSERT.format("big")}"]}}\n{settings}')
        with pytest.raises(InputError, match="unknown event 'lage'"):
            engine.rules.put("wrong", "{on: lage}")
        engine.rules.put("more", f'{{on: large, do: ["{INSERT.format("more")}"]}}')
        engine.run_once()
        assert engine._lease.seconds == 77
        shop.order((1, 15))
        engine.run_once()
        assert shop.logged() == Counter({("pair", 1, 5): 1, ("pair", 1, 15): 1, ("big", 1, 15): 1,
                                         ("more", 1, 15): 1})  # fmt: skip
        unfit = INSERT.format("big").replace("amount FROM", "nothing FROM")
        engine.reload(BOOK + f'  big: {{on: large, do: ["{unfit}"]}}\n')
        with caplog.at_level(logging.ERROR):
            engine.run_once()
        assert "refused, the former one goes on" in caplog.text
        engine.rules.drop("more")
        engine.rules.disable_for("pair", {"id": "2"})
        engine.run_once()
        shop.order((2, 5), (3, 5))
        shop.order((2, 20), (3, 30))
        engine.run_once()
    found = shop.logged()
    assert {rule for rule, id_, _ in found if id_ == 3} == {"pair", "big"}
    assert {rule for rule, id_, _ in found if id_ == 2} == {"big"}
    status = all_status(shop.store, "shop")[0]
    answers = [one["answer"] for one in status["answered"] if one["kind"] == "reload"]
    assert sum("refused" in text for text in answers) == 1
    with shop.engine() as engine:  # the file is as it was; what was put beside it stays
        assert ([*engine.rulebook.rules], engine.rulebook.rules["pair"].disabled_for) == (
            ["pair"],
            ({"id": "2"},),
        )


@pytest.mark.long
def test_g24_rules_put_or_dropped_while_another_engine_runs_or_none_are_those_of_the_next(
    shop: Shop,
) -> None:
    def more(amount: int) -> str:
        return f'{{on: large, if: max(amount) > {amount}, do: ["{INSERT.format("more")}"]}}'

    with shop.engine() as engine:
        engine.rules.put("more", more(1))
        engine.rules.put("gone", "{on: large}")
        engine.run_once()
        other = Engine(shop.book, spark=shop.spark, store=shop.store, lease_wait_seconds=600)
        with open_store(shop.store, create=False) as store, ThreadPoolExecutor(1) as beside:
            entered = beside.submit(other.__enter__)
            wait_for(lambda: "gone" in other.rulebook.rules, threading.Event())
            engine.rules.drop("gone")
            engine.rules.put("later", "{on: more}")
            engine.rules.disable_for("pair", {"id": "9"})
            engine.run_once()
            engine.__exit__(None, None, None)
            entered.result()
            assert [*other.rulebook.rules] == ["pair", "later", "more"]
            other.run_once()
            other.__exit__(None, None, None)
            data = Rules(store, "shop")
            data.drop("later")
            data.enable_for("pair", {"id": "9"})
            data.put("more", more(50))
            data.put("unfit", '{on: large, do: ["INSERT INTO log SELECT nothing FROM event"]}')
            data.drop("unfit")
            data.put("last", "{on: more}")
            store.of("shop").versions.register(BOOK + "# signalled\n", None)
    shop.book.write_text(BOOK.replace("per: id", "per: amount"))  # 9 was no key of it
    with shop.engine() as engine:
        assert [*engine.rulebook.rules] == ["pair", "more"]
        engine.run_once()
        assert [*engine.rulebook.rules] == ["pair", "last", "more"]
        shop.order((1, 15), (2, 60))
        engine.run_once()
    assert shop.logged() == Counter({("more", 2, 60): 1})
    assert not all_status(shop.store, "shop")[0]["asked_for"]


@pytest.mark.long
def test_a_watched_file_is_taken_over_and_a_broken_one_is_not(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    with shop.engine(watch=True) as engine:
        rounds = threading.Event()
        thread = threading.Thread(target=engine.run, kwargs={"poll_seconds": 0.05})
        thread.start()
        try:
            shop.book.write_text(BOOK + "  more: {on: small\n")
            wait_for(lambda: "cannot be read" in caplog.text or "refused" in caplog.text, rounds)
            assert [*engine.rulebook.rules] == ["pair"]
            shop.book.write_text(BOOK + "  more: {on: small}\n")
            wait_for(lambda: "more" in engine.rulebook.rules, rounds)
            shop.book.write_text(BOOK)
            wait_for(lambda: "more" not in engine.rulebook.rules, rounds)
            shop.order((7, 1))
            shop.order((7, 70))
            wait_for(lambda: bool(shop.logged()), rounds)
        finally:
            engine.stop()
            thread.join()
    assert shop.logged() == Counter({("pair", 7, 1): 1, ("pair", 7, 70): 1})


def wait_for(holds: Callable[[], bool], pause: threading.Event) -> None:
    for _ in range(600):
        if holds():
            return
        pause.wait(0.1)
    raise AssertionError("it did not come about")
