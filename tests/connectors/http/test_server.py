"""The inbox on a socket, and as a process: ended, killed, and by clients that mean no good."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.connectors.http.conftest import BOOK, until
from tidegate.connectors.http import Address, Inbox, parse_address, server
from tidegate.engine.cli.main import main
from tidegate.engine.core.policy import Policy
from tidegate.engine.store import SqlStore, open_store
from tidegate.rules.errors import EngineError

Live = Callable[..., Address]
JSON = {"content-type": "application/json"}
CUT = b"POST /signals/rung HTTP/1.1\r\nHost: lo"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def told(address: Address, sent: bytes, *more: bytes) -> bytes:
    """All that comes back of raw bytes, until the server ends."""
    with socket.create_connection((address.host, address.port), timeout=20) as client:
        try:
            for part in (sent, *more):
                client.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        found = b""
        try:
            while got := client.recv(65_536):
                found += got
        except ConnectionResetError:
            pass
        return found


def head(*lines: str) -> bytes:
    first = ("POST /signals/rung HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    return "\r\n".join((*first, *lines, "", "")).encode()


def ended(client: socket.socket) -> bool:
    """Whether the server has closed a connection on which nothing was to come."""
    client.setblocking(False)
    try:
        return client.recv(65_536) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


@contextmanager
def lock_of(file: Path) -> Iterator[None]:
    """Another program writes."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def test_what_is_no_request_is_answered_and_ended(live: Live, tmp_path: Path) -> None:
    address = live(inbox_bytes_max="1000", inbox_client_seconds_max="1")
    chunk = b"ffff\r\n" + b" " * 65_535 + b"\r\n"
    refused = (
        ([b"nonsense\r\n\r\n"], 400),
        ([head("Content-Length: -1")], 400),
        ([head("Content-Length: 1", "Content-Length: 2")], 400),
        ([head("Content-Length: x")], 400),
        ([head("Content-Length: 99999999999999999999")], 400),
        ([head("Content-Length: 1001")], 413),
        ([head("Transfer-Encoding: chunked"), *[chunk] * 50], 413),
        ([head("Transfer-Encoding: chunked"), b"zz\r\n"], 400),
        ([head("Content-Length: 10"), b"{}"], 408),
        ([head("Connection: Upgrade", "Upgrade: h2c", "Content-Length: 2"), b"{}"], 400),
        ([head()[:-2], *[b"X: y" + b" " * 65_535 + b"\r\n"] * 50], 431),
        ([head("Transfer-Encoding: chunked"), b"0\r\nX: ", *[b"y" * 65_536] * 50], 431),
        ([b"GET /" + b"x" * 65_536, *[b"x" * 65_536] * 50], 431),
        ([b"PUT /healthz HTTP/1.1\r\nContent-Length: 9\r\n\r\n", b"{"], 405),  # and then nothing
    )
    with ThreadPoolExecutor(len(refused)) as clients:  # some of them wait for a second
        answers = [clients.submit(told, address, *parts) for parts, _ in refused]
        cut = [clients.submit(told, address, sent) for sent in (CUT, b"")]  # and then nothing
    for (parts, status), answer in zip(refused, answers, strict=True):
        found = answer.result()
        assert found.startswith(b"HTTP/1.1 %d " % status), (parts[0], found[:200])
        body = found.partition(b"\r\n\r\n")[2].partition(b"HTTP/1.1")[0]
        assert json.loads(body)["error"]["code"]
    with lock_of(tmp_path / "store.db"):
        begun = head("Content-Length: 2") + b"{}"
        assert told(address, begun, b"nonsense\r\n\r\n") == b""  # no answer to the first
    assert [each.result() for each in cut] == [b"", b""]


def test_a_refusal_reaches_a_client_that_is_still_sending(live: Live) -> None:
    address = live(inbox_client_seconds_max="1")
    with socket.create_connection((address.host, address.port), timeout=20) as client:
        client.sendall(head("Connection: Upgrade", "Upgrade: h2c", "Content-Length: 2000000"))
        assert client.recv(1, socket.MSG_PEEK)  # the answer is there, the body is not
        for _ in range(20):
            client.sendall(b" " * 100_000)
        assert client.recv(65_536).startswith(b"HTTP/1.1 400 ")
    with socket.create_connection((address.host, address.port), timeout=20) as client:
        client.sendall(b"nonsense\r\n\r\n")
        while client.recv(65_536):
            pass
        with pytest.raises((BrokenPipeError, ConnectionResetError)):  # noqa: PT012 - the first fills
            for _ in range(1_000):
                client.sendall(b" " * 1_000)
                time.sleep(0.01)


def test_silent_connections_do_not_keep_others_out(live: Live, tmp_path: Path) -> None:
    """Those that have been silent for longest make room; a request in hand does not."""
    address = live(inbox_connections_max="8")
    place = (address.host, address.port)
    with ExitStack() as stack:

        def opened(sent: bytes = b"") -> socket.socket:
            made = stack.enter_context(socket.create_connection(place, timeout=20))
            made.sendall(sent)
            return made

        idle = opened(HEALTH)
        assert b"200 OK" in idle.recv(65_536)
        silent = [opened(CUT if n % 2 else b"") for n in range(30)]
        assert post(address, {"id": "a"})
        assert ended(idle)
        assert all(map(ended, silent[:20]))
        assert not any(map(ended, silent[-4:]))
        with lock_of(tmp_path / "store.db"):
            held = opened(head("Content-Length: 11") + b'{"id": "b"}')
            for _ in range(30):
                assert b"200 OK" in opened(HEALTH).recv(65_536)
        assert held.recv(65_536).startswith(b"HTTP/1.1 202 ")


def test_a_request_behind_another_is_in_hand_too(live: Live, tmp_path: Path) -> None:
    """Both came at once; the first is answered, the second waits for the store."""
    address = live(inbox_connections_max="8")
    place = (address.host, address.port)
    with ExitStack() as stack:
        held = stack.enter_context(socket.create_connection(place, timeout=20))
        with lock_of(tmp_path / "store.db"):
            held.sendall(HEALTH + head("Content-Length: 11") + b'{"id": "b"}')
            assert b"200 OK" in held.recv(65_536)
            for _ in range(30):
                other = stack.enter_context(socket.create_connection(place, timeout=20))
                other.sendall(HEALTH)
                assert b"200 OK" in other.recv(65_536)
        assert held.recv(65_536).startswith(b"HTTP/1.1 202 ")


def test_requests_whose_bodies_never_come_keep_nobody_out(live: Live) -> None:
    """Whose head promises a body; without keys, or with a signature, nobody is turned away yet."""
    address = live(inbox_connections_max="8")
    place = (address.host, address.port)
    with ExitStack() as stack:
        for _ in range(30):
            made = stack.enter_context(socket.create_connection(place, timeout=20))
            made.sendall(head("Content-Length: 11"))
        # The server may still be ending those that have made room.
        until(lambda: post(address, {"id": "a"}, 202, 503))


def test_g28_a_signature_is_not_good_for_longer_than_ids_are_known(live: Live) -> None:
    assert live(history_retention_days="1", inbox_window_seconds="43200").port
    with pytest.raises(EngineError, match="its ids are forgotten, 1 days"):
        live(history_retention_days="1", inbox_window_seconds="43201")  # by a clock that is ahead


def test_what_is_written_wakes_who_waits_for_it(url: str, store: SqlStore) -> None:
    assert store.rulebooks()
    written = threading.Event()
    with Inbox(parse_address("127.0.0.1:0"), Policy()) as inbox:
        inbox.begin(url, "shop", on_written=written.set)
        post(inbox.address, {"id": "a"})
        assert written.is_set()


def test_an_inbox_alone_follows_the_rulebook_that_is_registered(url: str, store: SqlStore) -> None:
    with Inbox(parse_address("127.0.0.1:0"), Policy()) as inbox:
        address = inbox.begin(url, "shop").address
        store.of("shop").versions.register("rulebook: [broken", None)
        post(address, {"id": "a"})
        store.of("shop").versions.register(
            BOOK.replace("rung: {signal: {}}", "rung: {signal: {n: int}}"), None
        )
        until(lambda: post(address, {"id": "b", "n": 1}, 202, 400))
        assert store.of("shop").signals.unplaced(["rung"], 0, 9).signals[-1].fields == {"n": 1}


def test_what_cannot_be_written_before_the_end_is_told_so(
    url: str, store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.rulebooks()
    monkeypatch.setattr(server, "STOP_SECONDS", 0.2)
    inbox = Inbox(parse_address("127.0.0.1:0"), Policy())
    inbox.begin(url, "shop")
    with lock_of(tmp_path / "store.db"):
        connection = HTTPConnection(inbox.address.host, inbox.address.port, timeout=20)
        connection.request("POST", "/signals/rung", '{"id": "a"}', JSON)
        ending = threading.Thread(target=inbox.close)
        ending.start()
        response = connection.getresponse()
        assert response.status == 503, response.read()
        assert "may still be written" in json.loads(response.read())["error"]["message"]
    ending.join()


def test_a_store_that_is_removed_takes_nothing_more(
    live: Live, store: SqlStore, tmp_path: Path
) -> None:
    address = live()
    assert post(address, {"id": "a"})
    for file in tmp_path.glob("store.db*"):
        file.rename(tmp_path / f"away-{file.name}")
    assert not post(address, {"id": "b"}, 503)
    with pytest.raises(EngineError, match="was removed or replaced while it was open"):
        store.rulebooks()
    for file in tmp_path.glob("away-*"):
        file.rename(tmp_path / file.name.removeprefix("away-"))
    assert post(address, {"id": "b"})
    assert [s.id for s in store.of("shop").signals.unplaced(["rung"], 0, 9).signals] == ["a", "b"]


def post(address: Address, body: Any, *statuses: int) -> bool:
    """Whether it was taken."""
    connection = HTTPConnection(address.host, address.port, timeout=20)
    connection.request("POST", "/signals/rung", json.dumps(body), JSON)
    response = connection.getresponse()
    assert response.status in (statuses or (202,)), response.read()
    return response.status == 202


@contextmanager
def process(*words: str) -> Iterator[tuple[subprocess.Popen[str], Address]]:
    """`tidegate serve` as a process of its own."""
    command = [sys.executable, "-m", "tidegate", "serve", "--http", "127.0.0.1:0", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as serving:
        assert serving.stderr is not None
        try:
            said = serving.stderr.readline()
            found = re.search(r"inbox of shop at http://(\S+)", said)
            assert found, said + serving.stderr.read()
            yield serving, parse_address(found[1])
        finally:
            if serving.poll() is None:
                serving.kill()


def answered(address: Address, name: str, ids: list[str]) -> None:
    """Posts until the server is gone; `ids` are those that were answered as taken."""
    draw = random.Random(name)
    connection = HTTPConnection(address.host, address.port, timeout=20)
    try:
        for n in range(1_000_000):
            many = draw.randint(1, 20)
            body = [{"id": f"{name}-{n}-{k}"} for k in range(many)]
            connection.request("POST", "/signals/rung", json.dumps(body), JSON)
            response = connection.getresponse()
            assert response.status == 202
            ids += json.loads(response.read())["ids"]
    except (HTTPException, OSError):
        return


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_g28_what_was_answered_is_in_the_store_once_however_it_ends(
    tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(BOOK)
    ids: list[list[str]] = [[] for _ in range(6)]
    with process("--rulebook-file", str(file)) as (serving, address):
        clients = [
            threading.Thread(target=answered, args=(address, f"c{n}", found))
            for n, found in enumerate(ids)
        ]
        for client in clients:
            client.start()
        while min(map(len, ids)) < 20:
            clients[0].join(0.02)
        serving.send_signal(number)
        for client in clients:
            client.join()
        code = serving.wait(timeout=30)
        assert serving.stdout is not None
        assert serving.stdout.read() == ""
    if number == signal.SIGTERM:
        assert code == 0
    with open_store(f"sqlite:///{tmp_path / 'shop.db'}", create=False) as store:
        stored = [s.id for s in store.of("shop").signals.unplaced(["rung"], 0, 10**6).signals]
    taken = {one for found in ids for one in found}
    assert len(stored) == len(set(stored))
    assert taken <= set(stored)
    if number == signal.SIGTERM:
        assert taken == set(stored)  # and nothing that was not answered


def test_a_port_that_is_taken_is_said_before_anything_is_begun(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(BOOK)
    with Inbox(parse_address("127.0.0.1:0"), Policy()) as inbox:
        for words in (["run"], ["serve", "--rulebook-file"]):
            found = CliRunner().invoke(main, [*words, str(file), "--http", str(inbox.address)])
            assert found.exit_code == 3
            assert f"cannot listen on {inbox.address}" in found.stderr
            assert not (tmp_path / "shop.db").exists()
    for words, code in (
        (["serve", "--http", "8080"], 2),
        (["serve", "--http", "0.0.0.0:0", "--rulebook-file", str(file)], 2),
        (["serve", "--http", "nowhere.invalid:80", "--rulebook-file", str(file)], 2),
        (["serve", "--http", "127.0.0.1:0"], 2),
    ):
        found = CliRunner().invoke(main, words, env={"TIDEGATE_STORE": ""})
        assert (found.exit_code, found.stdout) == (code, ""), found.output
