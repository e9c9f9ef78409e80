"""The console beside an engine on real tables: a button pressed in a browser changes a table."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Browser
from tests.connectors.http.console.conftest import POLICY, SECRETS
from tests.support.lake import Shop
from tidegate import Engine
from tidegate.connectors.http import Inbox, parse_address
from tidegate.engine.app.serve import console_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOOK = """\
rulebook: shop
tables:
  orders: {path: ./orders, key: [id]}
  log: {path: ./log}
events:
  ordered: {on: insert, table: orders}
rules:
  first:
    on: ordered
    per: id
    retry: {attempts: 1}
    on_dead: hold
    do:
      - sql: INSERT INTO log SELECT 'first', id, amount FROM event
"""
ENGINE_SECONDS_MAX = 120  # for Spark's first statements, where others work too


@contextmanager
def running(engine: Engine) -> Iterator[None]:
    """The engine runs in a thread, as `run` has it."""
    thread = threading.Thread(target=engine.run, kwargs={"poll_seconds": 0.1})
    thread.start()
    try:
        yield
    finally:
        engine.stop()
        thread.join()


def test_a_redrive_is_pressed_and_its_commit_is_then_seen(
    browser: Browser, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    shop = Shop(spark, tmp_path)
    shop.book.write_text(BOOK)
    shop.create("orders", "id BIGINT, amount BIGINT")
    shop.create("log", "rule STRING, id BIGINT, amount BIGINT")
    shop.sql("ALTER TABLE {log} ADD CONSTRAINT small CHECK (amount < 90)")
    inbox = Inbox(parse_address("127.0.0.1:0"), POLICY, console_of(None))
    with inbox, shop.engine() as engine, running(engine):
        inbox.begin(shop.store, "shop")
        browser.address = f"http://{inbox.address}"
        shop.order((7, 95))
        browser.log_in()
        browser.open("stuck")
        browser.until(lambda: "CHECK constraint" in browser.said(), ENGINE_SECONDS_MAX)
        assert shop.logged() == {}
        shop.sql("ALTER TABLE {log} DROP CONSTRAINT small")
        browser.press("#Redrive-entry-1")
        browser.press("button.act")
        browser.until(lambda: browser.path.startswith("audit"))
        browser.until(lambda: "waits for" not in browser.said(), ENGINE_SECONDS_MAX)
        assert "console key ada" in browser.said()
        browser.open("firings")
        browser.press("td a code")
        browser.until(lambda: browser.path.startswith("firings/"))
        browser.until(lambda: "Its commit is version" in browser.said(), ENGINE_SECONDS_MAX)
        assert "console key ada asked for redrive" in browser.said()
    assert shop.logged() == {("first", 7, 95): 1}
