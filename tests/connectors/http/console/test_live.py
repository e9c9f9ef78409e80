"""The stream that keeps a page fresh."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlencode

import pytest

from tests.connectors.http.conftest import until
from tests.connectors.http.console.conftest import ADA, BOOK, OWN, SECRETS, fill
from tests.support import make
from tidegate import rules
from tidegate.connectors.http import Inbox, parse_address, stream
from tidegate.connectors.http.console.entrance import FORM
from tidegate.connectors.http.server import Address
from tidegate.engine.app.serve import console_of
from tidegate.engine.core.policy import Policy
from tidegate.engine.store import SqlStore


def events(response: Callable[[], bytes]) -> str:
    """The name of the next event."""
    name = ""
    while line := response().decode().rstrip("\n"):
        field, _, value = line.partition(": ")
        name = value if field == "event" else name
    return name


def test_a_stream_says_when_there_is_a_bucket_and_that_it_lives(
    store: SqlStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "PULSE_SECONDS", 0.5)
    fill(store)
    epoch = store.of("shop").lease.acquire("one", 60)
    settings = rules.load(BOOK, settings={"inbox_streams_max": "1"}).settings
    with Inbox(parse_address("127.0.0.1:0"), Policy(), console_of(None)) as inbox:
        address = inbox.begin(url, None, settings).address
        first, second = (HTTPConnection(address.host, address.port, timeout=20) for _ in range(2))
        first.request("GET", "/console/live")
        found = first.getresponse()
        assert found.headers["content-type"].startswith("text/event-stream")
        assert found.headers["content-security-policy"]
        assert [events(found.readline) for _ in range(3)] == ["alive"] * 3
        plan = make.plan(2, rulebook="shop", now=store.wall())
        make.commit(store, epoch, plan)
        until(lambda: events(found.readline) == "changed")
        second.request("GET", "/console/live")
        assert second.getresponse().status == 503  # inbox_streams_max
        first.close()
        found.close()


def test_no_bucket_is_missed_when_a_stream_begins(
    store: SqlStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told `alive`, the page looks. What comes after that is told, however soon."""
    monkeypatch.setattr(stream, "PULSE_SECONDS", 60)
    fill(store)
    epoch = store.of("shop").lease.acquire("one", 60)
    with Inbox(parse_address("127.0.0.1:0"), Policy(), console_of(None)) as inbox:
        address = inbox.begin(url, None, rules.load(BOOK).settings).address
        client = HTTPConnection(address.host, address.port, timeout=20)
        client.request("GET", "/console/live")
        found = client.getresponse()
        assert events(found.readline) == "alive"
        make.commit(store, epoch, make.plan(2, rulebook="shop", now=store.wall()))
        assert events(found.readline) == "changed"
        client.close()
        found.close()


def test_a_client_that_stops_reading_is_closed_without_a_word(
    store: SqlStore, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It has sent many requests at once. What is not answered yet is not written any more: that
    would be an error in the log for each of such clients."""
    fill(store)
    settings = rules.load(BOOK, settings={"inbox_client_seconds_max": "1"}).settings
    with Inbox(parse_address("127.0.0.1:0"), Policy(), console_of(None)) as inbox:
        address = inbox.begin(url, None, settings).address
        with socket.create_connection((address.host, address.port), timeout=20) as client:
            asked = b"GET /console/static/htmx.min.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            client.sendall(asked * 600)  # answers of 30 MB: more than the system's buffers
            time.sleep(2)
            assert rest_of(client) < 30_000_000
    assert "Exception" not in caplog.text


def rest_of(client: socket.socket) -> int:
    """The bytes that still come until the server has closed a connection."""
    found = 0
    with suppress(ConnectionResetError):
        while piece := client.recv(1 << 20):
            found += len(piece)
    return found


@contextmanager
def for_ada(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Address]:
    """Where a console listens that ada may view."""
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    policy = Policy(console_keys={"ada": frozenset({"view"})})
    with Inbox(parse_address("127.0.0.1:0"), policy, console_of(None)) as inbox:
        yield inbox.begin(url, None, rules.load(BOOK).settings).address


def test_a_stream_asks_who_listens(
    store: SqlStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    with for_ada(url, monkeypatch) as address:
        client = HTTPConnection(address.host, address.port, timeout=20)
        client.request("GET", "/console/live")
        assert client.getresponse().status == 303


def test_a_stream_ends_with_its_login(
    store: SqlStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    with for_ada(url, monkeypatch) as address:
        live, pages = (HTTPConnection(address.host, address.port, timeout=20) for _ in range(2))

        def sent(method: str, path: str, cookie: str = "", **form: str) -> HTTPResponse:
            headers = {**OWN, "cookie": cookie, "content-type": FORM}
            pages.request(method, f"/console/{path}", urlencode(form), headers)
            return pages.getresponse()

        login = sent("POST", "login", name="ada", secret=ADA)
        login.read()
        cookie = login.headers["set-cookie"].partition(";")[0]
        page = sent("GET", "overview", cookie).read().decode()
        token = page.partition('name="token" value="')[2].partition('"')[0]
        live.request("GET", "/console/live", headers={"cookie": cookie})
        found = live.getresponse()
        assert events(found.readline) == "alive"
        assert sent("POST", "logout", cookie, token=token).status == 303
        assert found.readline() == b""
        for each in (found, live, pages):
            each.close()
