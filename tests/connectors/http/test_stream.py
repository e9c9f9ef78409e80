"""`GET /events/stream` and `tidegate listen`: what happens, from a position on."""

from __future__ import annotations

import errno
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from tests.connectors.http.conftest import POLICY, SECRETS, until
from tests.support import make
from tidegate.connectors.http import Address, stream
from tidegate.engine.cli.main import main
from tidegate.engine.store import SqlStore
from tidegate.engine.store import folder as disk

Live = Callable[..., Address]


class Shop:
    """An engine's part: buckets of firings of `noticed`."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self.epoch = store.of("shop").lease.acquire("one", 60)
        self.bucket = 0

    def fire(self, count: int, folder: Path | None = None) -> list[str]:
        """A bucket planned now, with so many firings, their rows in a file of `folder` if there is
        one; their ids."""
        self.bucket += 1
        fired = make.firings("noticed", count, self.bucket)
        own = None if folder is None else self.store.of("shop").buckets.shelf(str(folder), 1)
        fired = fired if own is None else fired.on(own, always=True)
        plan = make.plan(self.bucket, rulebook="shop", now=self.store.wall())
        make.commit(self.store, self.epoch, plan, fired=[fired] if count else [])
        return make.hex_ids(fired)


@pytest.fixture
def shop(store: SqlStore) -> Shop:
    return Shop(store)


@dataclass
class Stream:
    response: HTTPResponse
    position: str = ""

    def block(self) -> dict[str, str]:
        """The next event, by field; a comment's field is empty."""
        found: dict[str, str] = {}
        while line := self.response.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            found[name.rstrip(":")] = value
        self.position = found.get("id", self.position)
        return found

    def items(self, count: int) -> list[str]:
        """The ids of the next firings."""
        found: list[str] = []
        while len(found) < count:
            if "data" in (block := self.block()):
                found.append(json.loads(block["data"])["firing_id"])
        return found


@contextmanager
def listening(
    address: Address, name: str = "noticed", since: str = "", **headers: str
) -> Iterator[Stream]:
    connection = HTTPConnection(address.host, address.port, timeout=20)
    query = f"?name={name}" + (f"&since={since}" if since else "")
    connection.request("GET", f"/events/stream{query}", headers=headers)
    response = connection.getresponse()
    assert response.status == 200, response.read()
    assert response.headers["content-type"].startswith("text/event-stream")
    stream = Stream(response)
    assert stream.block().keys() == {"retry", "id"}
    try:
        yield stream
    finally:
        connection.close()


def test_what_is_detected_is_sent_and_gone_on_from_after_a_restart(
    live: Live, shop: Shop, store: SqlStore
) -> None:
    before = shop.fire(2)
    with listening(live()) as stream:
        told = shop.fire(2)
        block = stream.block()
        while "data" not in block:
            block = stream.block()
        shown = next(iter(store.of("shop").firings.listed(since=make.BEGIN + make.HOUR)))
        assert json.loads(block["data"]) == json.loads(json.dumps(shown))
        assert stream.items(1) == told[1:]
        position = stream.position
    missed = shop.fire(3)
    address = live()  # another server
    with listening(address, **{"Last-Event-ID": position}) as stream:
        assert stream.items(3) == missed
        assert stream.items(0) == []
        late = shop.fire(1)
        assert stream.items(1) == late
    with listening(address, since="earliest") as stream:
        assert stream.items(8) == before + told + missed + late
    with listening(address, since="earliest", **{"Last-Event-ID": position}) as stream:
        assert stream.items(4) == missed + late  # what a browser sends is the newer one


def test_silence_is_filled_with_positions(
    live: Live, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "KEEPALIVE_SECONDS", 0.1)
    with listening(live()) as waiting:
        first = waiting.position
        assert waiting.block() == {"": "keepalive", "id": first}
        shop.fire(0)
        while waiting.block()["id"] == first:
            pass
        assert waiting.position.endswith("-1-0")


def test_g26_rows_that_are_gone_are_said_so_and_all_others_are_heard(
    live: Live, shop: Shop, tmp_path: Path
) -> None:
    before = shop.fire(2)
    gone = shop.fire(2, tmp_path)
    (file,) = tmp_path.glob("*/*/*.parquet")
    after, address = shop.fire(1), live()
    kept = file.read_bytes()
    file.unlink()
    with listening(address, since="earliest") as stream:
        assert stream.items(2) == before
        behind = stream.position
        told = stream.block()
        said = json.loads(told["data"])
        assert (told["event"], said["code"]) == ("error", "state-file")
        assert f"bucket 2 is passed over: state file {file} is gone" in said["message"]
        assert said["hint"].startswith("put it back as it was")
        assert said["hint"].endswith(f"Position {behind} stands before it")
        position = stream.position
        assert stream.items(1) == after
        late = shop.fire(1)
        assert stream.items(1) == late
    with listening(address, **{"Last-Event-ID": position}) as stream:  # it is told once
        assert stream.items(2) == after + late
    file.write_bytes(kept)
    with listening(address, since=behind) as stream:
        assert stream.items(4) == gone + after + late


def test_g07_a_storage_that_is_away_is_no_reason_to_pass_over_anything(
    live: Live, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, address = shop.fire(1, tmp_path), live()

    def away(file: str) -> None:
        raise OSError(errno.EIO, "Input/output error", file)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "opened", away)
        with listening(address, since="earliest") as stream:
            said = stream.block()
            assert json.loads(said["data"])["code"] == "busy"
            assert "id" not in said
            position = stream.position
    with listening(address, since=position) as stream:
        assert stream.items(1) == told


def test_a_position_that_is_forgotten_is_said_so(client: TestClient, shop: Shop) -> None:
    shop.fire(1)
    for since, status, code in (
        ("what?", 400, "bad-position"),
        ("00000000-1-1", 410, "position-gone"),
        (f"{shop.store.id[:8]}-9-0", 410, "position-gone"),
    ):
        for sent in ({"params": {"name": "noticed", "since": since}},):
            found = client.get("/events/stream", **sent)  # type: ignore[arg-type]
            assert (found.status_code, found.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("name", "status", "hint"),
    [
        ("placed", 400, "rules: {placed_seen: {on: placed}}"),
        ("notised", 404, "did you mean 'noticed'?"),
        ("", 404, "known: atm_empty"),
    ],
)
def test_what_no_store_keeps_is_refused_by_name(
    client: TestClient, name: str, status: int, hint: str
) -> None:
    found = client.get("/events/stream", params={"name": name})
    assert found.status_code == status
    assert hint in found.json()["error"]["hint"]


def test_a_key_may_wait_for_what_the_policy_says(
    live: Live, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    address = live(POLICY)
    with listening(address, authorization=f"Bearer {'b' * 20}") as stream:
        told = shop.fire(1)
        assert stream.items(1) == told


def test_so_many_wait_at_a_time_and_one_that_ends_makes_room(live: Live) -> None:
    address = live(inbox_streams_max="1")
    for _ in range(3):
        with listening(address):
            connection = HTTPConnection(address.host, address.port)
            connection.request("GET", "/events/stream?name=noticed")
            refused = connection.getresponse()
            assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        until(lambda: status(address, "/events/stream?name=noticed&since=x") == 400)


def test_as_many_wait_as_may_when_all_come_at_once(live: Live) -> None:
    address = live(inbox_streams_max="3")
    connections = [HTTPConnection(address.host, address.port, timeout=20) for _ in range(30)]
    for connection in connections:
        connection.request("GET", "/events/stream?name=noticed")
    found = [connection.getresponse().status for connection in connections]
    assert sorted(found) == [200] * 3 + [503] * 27


def status(address: Address, path: str) -> int:
    connection = HTTPConnection(address.host, address.port)
    connection.request("GET", path)
    return connection.getresponse().status


def test_who_does_not_read_is_dropped_and_comes_back_with_its_position(
    live: Live, shop: Shop
) -> None:
    address = live(inbox_client_seconds_max="1", inbox_streams_max="1")
    with listening(address) as reading:
        first = shop.fire(1)
        assert reading.items(1) == first
        position = reading.position
    until(lambda: status(address, "/events/stream?name=noticed&since=x") == 400)
    with socket.create_connection((address.host, address.port)) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(b"GET /events/stream?name=noticed HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: status(address, "/events/stream?name=noticed&since=x") == 503)
        many = shop.fire(10_000)
        until(lambda: status(address, "/events/stream?name=noticed&since=x") == 400)
    with listening(address, since=position) as back:
        assert back.items(len(many)) == many


def test_listen_prints_a_line_for_each_and_goes_on_behind_its_position(
    url: str, shop: Shop, store: SqlStore
) -> None:
    def listen(*words: str, code: int = 0) -> list[Any]:
        found = CliRunner().invoke(main, ["listen", *words, "--once", "--json", "--store", url])
        assert found.exit_code == code, found.output
        return [json.loads(line) for line in found.stdout.splitlines()]

    assert listen("noticed", "--since", "earliest") == []
    told = shop.fire(3)
    lines = listen("noticed", "--since", "earliest")
    assert [line["firing_id"] for line in lines] == told
    shown = [{**firing, "position": None} for firing in store.of("shop").firings.listed()]
    assert [{**line, "position": None} for line in lines] == json.loads(json.dumps(shown))
    for n, line in enumerate(lines):
        assert listen("noticed", "--since", line["position"]) == lines[n + 1 :]
    assert listen("noticed") == []
    listen("placed", code=1)
    listen("nobody", code=1)
    listen("noticed", "--since", "never", code=1)
    listen("noticed", "--since", "00000000-1-0", code=3)


def test_listen_tells_people_where_to_go_on(url: str, shop: Shop) -> None:
    (first, _) = shop.fire(2)
    words = ["listen", "noticed", "--since", "earliest", "--once", "--store", url]
    found = CliRunner().invoke(main, words)
    assert first[:8] in found.stdout
    assert f"--since {shop.store.id[:8]}-1-2" in found.stderr


def test_a_signal_can_be_waited_for(url: str, shop: Shop, store: SqlStore) -> None:
    raised = make.signal("s1", fields={"atm_id": 4, "amount": "1.00"})
    store.of("shop").signals.raise_signal(raised)
    plan = make.plan(rulebook="shop", signals=(make.signal("s1", instant=make.BEGIN + 7),))
    make.commit(store, shop.epoch, plan)
    words = ["listen", "atm_empty", "--since", "earliest", "--once", "--store", url]
    found = CliRunner().invoke(main, words)
    line = '2026-03-02T09:00:00.000007Z atm_empty {"id":"s1","bucket":1,"amount":"1.00","atm_id":4}'
    assert found.stdout.splitlines() == [line]
