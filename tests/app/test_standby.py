"""How a standby waits and what it takes over with, without Spark, on both databases."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.connectors.http.conftest import until
from tidegate import load
from tidegate.engine.app.standby import own_text, took, wait_for_end
from tidegate.engine.cli.screens import status_lines
from tidegate.engine.control.status import all_status
from tidegate.engine.core.ports import OutageError
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store.holder import this_holder
from tidegate.engine.store.lease import Lease
from tidegate.rules.errors import EngineError

BOOK = "rulebook: shop\nevents: {rung: {signal: {}}}\nrules: {heard: {on: rung}}\n"


@pytest.fixture
def store(store_url: str) -> Iterator[SqlStore]:
    with open_store(store_url, create=True) as opened:
        opened.of("shop").versions.register(BOOK, None)
        yield opened


@contextmanager
def standby(store: SqlStore) -> Iterator[tuple[list[object], Callable[[], None], threading.Event]]:
    """What came of it, how it is stopped, and whether it waits."""
    found: list[object] = []
    waiting, stopped = threading.Event(), threading.Event()

    def wait() -> None:
        def take() -> None:
            found.append(store.of("shop").lease.acquire(this_holder(), 30))

        try:
            wait_for_end(load(BOOK), store, take, waiting, stopped)
        except EngineError as error:
            found.append(error.code)

    thread = threading.Thread(target=wait)
    thread.start()
    yield found, stopped.set, waiting
    stopped.set()
    thread.join()


def test_g21_a_standby_has_the_lease_once_it_is_given_back_and_is_known_until_then(
    store: SqlStore, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.of("shop").lease.acquire("one/7/x", 600)
    assert not took(lambda: store.of("shop").lease.acquire("two/8/x", 600))
    with standby(store) as (found, _, waiting):
        until(waiting.is_set)
        with standby(store) as (other, stop, other_waits):
            until(other_waits.is_set)
            status = all_status(store_url, None)[0]
            assert status["lease_holder"] == "one/7/x"
            first = next(status_lines(status, 500))
            assert first.startswith("rulebook shop: starting (process 7 on one, process ")
            assert first.endswith(" is its standby)")
            stop()
            until(lambda: other == ["standby-ended"])
        holder = Lease.holder
        away = [True]

        def asked(lease: Lease) -> str | None:
            if away[0]:
                raise OutageError("store-unreachable", "no answer", "")
            return holder(lease)

        monkeypatch.setattr(Lease, "holder", asked)
        store.of("shop", 1).lease.release()
        assert not threading.Event().wait(0.6)
        assert found == []  # the store is away; it waits for that, too
        away[0] = False
        until(lambda: found == [2])
        until(lambda: not waiting.is_set())
    assert all_status(store_url, None)[0]["standby"] is None


def test_a_standby_goes_on_with_its_own_file_and_says_where_the_other_had_another(
    store: SqlStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    file = tmp_path / "shop.yaml"
    file.write_text(BOOK)
    book = load(file)

    def again() -> str:
        caplog.clear()
        return own_text(book, store, lambda: load(file)).text

    newer = BOOK.replace("heard", "known")
    file.write_text(newer)
    assert (again(), caplog.text) == (BOOK, "")  # as the other ran it
    store.of("shop").versions.register(newer, str(file))
    assert (again(), caplog.text) == (newer, "")  # it was changed under both
    file.write_text(BOOK)
    assert again() == BOOK
    assert "ran another text of rulebook shop" in caplog.text
    file.write_text("rulebook: shop\nrules: {heard: {on: nothing}}\n")
    assert again() == BOOK
    assert "unknown event" in caplog.text
    assert "ran another text of rulebook shop" in caplog.text
    file.write_text(BOOK.replace("rulebook: shop", "rulebook: other"))
    assert again() == BOOK
