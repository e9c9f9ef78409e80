"""Requests of webhooks over real sockets: what comes of them, where they may go (G29)."""

from __future__ import annotations

import hashlib
import hmac
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.receiver import DRIP, GARBAGE, HANG, RESET, Receiver
from tidegate.connectors.http.webhooks import WebhookPoster
from tidegate.engine.core.policy import Answer, Post, allowed
from tidegate.engine.core.ports import SinkError

SECRET = b"0123456789abcdef"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        yield opened


@pytest.fixture
def poster_of() -> Iterator[Callable[..., WebhookPoster]]:
    made = []

    def make(
        hosts: Mapping[str, bool], in_flight: int = 4, seconds: float = 5, **more: Any
    ) -> WebhookPoster:
        made.append(WebhookPoster(hosts, in_flight, seconds, **more))
        return made[-1]

    yield make
    for poster in made:
        poster.close()


def posts(url: str, count: int = 1) -> list[Post]:
    return [Post(url, {"Idempotency-Key": f"{n}/0"}, b"{}") for n in range(count)]


@pytest.mark.parametrize(
    ("told", "error", "lasting"),
    [
        (200, None, False),
        (204, None, False),
        (301, "127.0.0.1 answered 301: redirects are not followed", True),
        (400, "127.0.0.1 answered 400", True),
        (401, "127.0.0.1 answered 401", True),
        (429, "127.0.0.1 answered 429", False),
        (503, "127.0.0.1 answered 503", False),
        (RESET, "127.0.0.1 ended the connection before it answered", False),
        (HANG, "127.0.0.1 did not answer within 0.3 s", False),
        (DRIP, "127.0.0.1 did not answer within 0.3 s", False),
        (GARBAGE, "127.0.0.1 did not answer in HTTP (ClientResponseError)", False),
    ],
)
def test_g29_what_an_answer_says(
    receiver: Receiver, poster_of: Any, told: Any, error: str | None, lasting: bool
) -> None:
    receiver.answer = lambda _: told
    poster = poster_of(receiver.hosts, seconds=0.3)
    assert poster.post(posts(receiver.url)) == [Answer(error, lasting)]
    assert receiver.keys == ["0/0"]


def test_g29_redirects_are_not_followed(receiver: Receiver, poster_of: Any) -> None:
    with Receiver() as other:
        receiver.answer = lambda _: (307, {"Location": other.url})
        [answer] = poster_of({**receiver.hosts, **other.hosts}).post(posts(receiver.url))
        assert (answer.lasting, other.received) == (True, [])


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        ("7", 7, 7),
        (timedelta(hours=2), 3_600, 3_600),
        (timedelta(hours=-2), 0, 0),
        ("99999999999", 3_600, 3_600),
        ("soon", 0, 0),
    ],
)
def test_when_it_may_be_sent_again(
    receiver: Receiver, poster_of: Any, asked: str | timedelta, least: float, most: float
) -> None:
    """A number of seconds, or a time so far from now."""
    if isinstance(asked, timedelta):
        asked = format_datetime(datetime.now(UTC) + asked, usegmt=True)
    receiver.answer = lambda _: (503, {"Retry-After": asked})
    [answer] = poster_of(receiver.hosts).post(posts(receiver.url))
    assert least <= answer.after_seconds <= most


def test_nobody_there(poster_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        poster = poster_of({f"127.0.0.1:{port}": True, "nowhere.invalid": False})
        [answer] = poster.post(posts(f"http://127.0.0.1:{port}/"))
        assert answer == Answer("no connection to 127.0.0.1: ECONNREFUSED")

    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    [answer] = poster.post(posts("https://nowhere.invalid/"))
    assert answer == Answer("the name nowhere.invalid cannot be resolved")


def test_g29_a_request_is_signed_when_it_is_sent(receiver: Receiver, poster_of: Any) -> None:
    body = b'{"a": 1}'
    headers = {"Content-Type": "application/json", "X-Own": "1"}
    before = int(time.time())
    url = f"{receiver.url}/a%2fb?c=%C3%A9&d"
    assert poster_of(receiver.hosts).post([Post(url, headers, body, SECRET)]) == [Answer()]
    [got] = receiver.received
    at, _, digest = got.headers["x-tidegate-signature"].partition(",v2=")
    assert before <= int(at.removeprefix("t=")) <= time.time()
    target = "/hook/a%2fb?c=%C3%A9&d"
    signed = f"{at.removeprefix('t=')}\nPOST\n{target}\n".encode() + body
    assert digest == hmac.new(SECRET, signed, hashlib.sha256).hexdigest()
    assert (got.path, got.body) == (target, body)
    assert (got.headers["x-own"], got.headers["content-type"]) == ("1", "application/json")
    assert got.headers["user-agent"] == "tidegate"


def test_so_many_at_a_time_of_all_callers_and_answers_in_the_order_given(
    receiver: Receiver, poster_of: Any
) -> None:
    receiver.answer = lambda one: 400 if one.key == "7/0" else 200
    poster = poster_of(receiver.hosts, in_flight=5)
    answers: list[list[Answer]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(poster.post(posts(receiver.url, 40))))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [[n for n, a in enumerate(got) if a.error] for got in answers] == [[7], [7]]
    assert receiver.most_at_once == 5
    assert receiver.connections <= 6  # they are used again; one more where a 400 came first


def test_a_host_that_fails_all_the_time_is_given_up_and_does_not_keep_others(
    receiver: Receiver, poster_of: Any
) -> None:
    receiver.answer = lambda _: 503
    answers = poster_of(receiver.hosts, in_flight=4).post(posts(receiver.url, 100))
    assert len(receiver.received) < 12
    assert {a.error for a in answers} == {
        "127.0.0.1 answered 503",
        "not sent, after so many failures in a row",
    }
    assert not any(a.lasting for a in answers)


def test_the_end_of_the_engine_ends_what_is_under_way(receiver: Receiver, poster_of: Any) -> None:
    receiver.answer = lambda _: HANG
    poster = poster_of(receiver.hosts, seconds=30)
    threading.Timer(0.2, poster.close).start()
    with pytest.raises(SinkError, match="the engine ended before an answer came"):
        poster.post(posts(receiver.url))
    with pytest.raises(SinkError, match="the engine has ended"):
        poster.post(posts(receiver.url))


def test_g29_what_the_policy_does_not_list_is_not_called(
    receiver: Receiver, poster_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = receiver.url
    [unlisted] = poster_of({"127.0.0.1": True}).post(posts(url))
    assert unlisted.error == f"the policy does not let webhooks call 127.0.0.1:{receiver.port}"
    [private] = poster_of(dict.fromkeys(receiver.hosts, False)).post(posts(url))
    assert private.error
    assert "has a private address" in private.error

    # A name that is resolved to another address from one time to the next.
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *more, **n: real("127.0.0.1", *more, **n))
    named = f"http://ops.example.org:{receiver.port}/hook"
    [rebound] = poster_of({f"ops.example.org:{receiver.port}": False}).post(posts(named))
    assert [a.lasting for a in (unlisted, private, rebound)] == [True, True, True]
    assert (receiver.received, receiver.connections) == ([], 0)
    let = poster_of({f"*.example.org:{receiver.port}": True})
    assert let.post(posts(named)) == [Answer()]
    assert receiver.received[0].headers["host"] == f"ops.example.org:{receiver.port}"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate")
def test_g29_a_certificate_is_that_of_the_host_and_trusted(
    tmp_path: Path, poster_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, pem = tmp_path / "key.pem", tmp_path / "cert.pem"
    asked = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    names = ["-subj", "/CN=ops.example.org", "-addext", "subjectAltName=DNS:ops.example.org"]
    files = ["-keyout", str(key), "-out", str(pem), "-days", "2"]
    subprocess.run(["openssl", "req", *asked, *names, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    trusting = ssl.create_default_context(cafile=str(pem))
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *more, **n: real("127.0.0.1", *more, **n))
    with Receiver(tls=context) as receiver:
        port = receiver.port
        hosts = {f"ops.example.org:{port}": True, f"other.example.org:{port}": True}
        urls = [f"https://{host}/x" for host in hosts]
        [ours] = poster_of(hosts, tls=trusting).post(posts(urls[0]))
        [other] = poster_of(hosts, tls=trusting).post(posts(urls[1]))
        [unknown] = poster_of(hosts).post(posts(urls[0]))
        assert ours == Answer()
        assert other == Answer("other.example.org has no certificate that is trusted")
        assert unknown == Answer("ops.example.org has no certificate that is trusted")
        assert len(receiver.received) == 1


def test_g29_hosts_of_a_policy() -> None:
    hosts = {"Ops.example.org": False, "*.example.com:8443": False, "[::1]:80": True}
    for url, found in {
        "https://ops.example.org/x": False,
        "https://ops.example.org:443/x": False,
        "https://ops.example.org:8443/x": None,
        "https://a.ops.example.org/": None,
        "https://ops.example.org.evil.org/": None,
        "https://a.b.example.com:8443": False,
        "https://example.com:8443": None,
        "https://a.example.com": None,
        "http://[::1]/": True,
        "https://[::1]/": None,
    }.items():
        assert allowed(hosts, url) is found, url
