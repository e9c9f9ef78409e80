"""An inbox in this process, over a store on disk; no engine, no socket."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tidegate import rules
from tidegate.connectors.http import Address, Inbox, parse_address
from tidegate.connectors.http.app import App
from tidegate.connectors.http.credentials import Guard, Key, load_keys
from tidegate.connectors.http.rulebooks import Source
from tidegate.connectors.http.writer import Writer
from tidegate.engine.core.policy import Policy
from tidegate.engine.store import SqlStore, open_store

BOOK = """\
rulebook: shop
tables: {orders: {path: /orders}}
events:
  atm_empty: {signal: {atm_id: bigint, amount: "decimal(12,2)"}}
  moved: {signal: {pos: "struct<x: double, y: double>", tags: "array<string>", at: timestamp}}
  ordered: {signal: {id: bigint}}
  rung: {signal: {}}
  placed: {on: insert, table: orders}
rules:
  noticed: {on: "atm_empty ; rung"}
  quiet: {on: moved, severity: warning}
"""
SECRETS = {"TIDEGATE_SECRET_TILL": "t" * 20, "TIDEGATE_SECRET_BACK_OFFICE": "b" * 20}
SECRETS |= {"TIDEGATE_SECRET_WATCH": "m" * 20}
POLICY = Policy(
    inbox_keys={"till": frozenset({"atm_empty", "ordered"}), "back-office": frozenset({"rung"})},
    listen_keys={"back-office": frozenset({"noticed", "rung"})},
    monitor_keys=frozenset({"watch"}),
)
Serve = Callable[..., TestClient]


def until(true: Callable[[], bool]) -> None:
    for _ in range(400):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("it never came true")


@pytest.fixture
def url(tmp_path: Path, empty_store: Path) -> str:
    return f"sqlite:///{shutil.copy(empty_store, tmp_path / 'store.db')}"


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    with open_store(url, create=False) as opened:
        opened.of("shop").versions.register(BOOK, None)
        yield opened


@pytest.fixture
def serve(store: SqlStore) -> Iterator[Serve]:
    """Makes a client of an inbox with these settings, and keys if `guarded`."""
    writers: list[Writer] = []

    def made(
        *,
        guarded: bool = False,
        settings: Mapping[str, str] | None = None,
        clock: float = 0,
        name: str | None = None,
    ) -> TestClient:
        book = rules.load(BOOK, settings=settings or {})
        keys: tuple[Key, ...] = load_keys(POLICY, SECRETS) if guarded else ()
        writers.append(Writer(store, lambda: None))
        guard = Guard(keys, book.settings.inbox_window_seconds, lambda: clock)
        app = App(Source(store, name), writers[-1], guard, book.settings)
        client = TestClient(app.asgi, base_url="http://127.0.0.1")
        client.__enter__()  # one event loop for all of its requests
        clients.append(client)
        return client

    clients: list[TestClient] = []
    yield made
    for client in clients:
        client.__exit__(None, None, None)
    for writer in writers:
        writer.close()


@pytest.fixture
def client(serve: Serve) -> TestClient:
    return serve()


@pytest.fixture
def live(url: str, store: SqlStore) -> Iterator[Callable[..., Address]]:
    """Begins inboxes on sockets."""
    assert store.rulebooks()
    with ExitStack() as stack:

        def begun(policy: Policy | None = None, **settings: str) -> Address:
            book = rules.load(BOOK, settings=settings)
            inbox = Inbox(parse_address("127.0.0.1:0"), policy or Policy())
            stack.callback(inbox.close)
            return inbox.begin(url, "shop", book.settings).address

        yield begun
