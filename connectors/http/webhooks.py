"""Sends the requests of webhooks, many at a time, from one thread. Implements
`engine.core.policy.Poster`.

The address is checked at each connection: a name may resolve to another address each time.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
from yarl import URL

from tidegate.engine.core.addresses import public
from tidegate.engine.core.policy import Answer, Post, allowed, entry_of
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.signing import SIGNATURE, signature
from tidegate.rules.analysis.webhooks import host_of

ANSWER_BYTES_MAX = 65_536  # of an answer are read, so that the connection can be used again
RETRY_AFTER_SECONDS_MAX = 3_600.0
UNSENT = Answer("not sent before the engine was stopped", sent=False)
_LATER = frozenset({408, 425, 429})  # of the statuses below 500


class _PrivateError(OSError):
    """The address is not a public one of the internet."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "private")


class WebhookPoster:
    """Sends requests. `hosts`: those that may be called, see `engine.core.policy.Policy`.
    `in_flight_max`: requests at a time, of all callers together. `seconds_max`: how long an answer
    may take. `tls`: by default the system's certificates are trusted. `stopped`: whether the engine
    was asked to stop."""

    def __init__(
        self,
        hosts: Mapping[str, bool],
        in_flight_max: int,
        seconds_max: float,
        tls: ssl.SSLContext | None = None,
        *,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._hosts = hosts
        self._in_flight_max = in_flight_max
        self._seconds_max = seconds_max
        self._stopped = stopped
        self._tls = tls
        self._begin = threading.Lock()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._targets: dict[str, tuple[str, int, bool | None, URL]] = {}
        self._sessions: dict[bool, aiohttp.ClientSession] = {}  # by: may an address be private

    def post(self, posts: Sequence[Post]) -> Sequence[Answer]:
        """See `engine.core.policy.Poster`. After `in_flight_max` failures in a row the rest is not
        sent: a host that is away would keep all others waiting. Nor is it sent once the engine was
        asked to stop."""
        loop = self._running()
        try:
            return asyncio.run_coroutine_threadsafe(self._all(posts), loop).result()
        except CancelledError:
            raise SinkError("[webhook-ended] the engine ended before an answer came") from None

    def close(self) -> None:
        """End the requests in flight, and send nothing more. May be called from any thread."""
        with self._begin:
            self._closed = True
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._begin:
            if self._closed:
                raise SinkError("[webhook-ended] the engine has ended")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._slots = asyncio.Semaphore(self._in_flight_max)
                given = (self._loop,)
                threading.Thread(target=self._run, args=given, name="webhooks", daemon=True).start()
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        for task in (tasks := asyncio.all_tasks(loop)):
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        for session in self._sessions.values():
            loop.run_until_complete(session.close())
        loop.close()

    def _session(self, *, private: bool) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=self._in_flight_max,
            ssl=self._tls or True,
            socket_factory=None if private else _public_socket,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self._seconds_max),
            headers={"User-Agent": "tidegate"},
            skip_auto_headers=("Accept-Encoding",),
            auto_decompress=False,
        )

    async def _all(self, posts: Sequence[Post]) -> list[Answer]:
        if not self._sessions:  # a session is made in the loop that it runs in
            self._sessions = {kind: self._session(private=kind) for kind in (False, True)}
        answers: list[Answer] = [Answer("not sent")] * len(posts)
        waiting = iter(range(len(posts)))
        in_a_row = 0

        async def work() -> None:
            nonlocal in_a_row
            for n in waiting:
                if in_a_row >= self._in_flight_max:
                    answers[n] = Answer("not sent, after so many failures in a row")
                    continue
                async with self._slots:
                    if self._stopped():
                        answers[n] = UNSENT
                        continue
                    answers[n] = answer = await self._send(posts[n])
                failed = answer.error is not None and not answer.lasting
                in_a_row = in_a_row + 1 if failed else 0

        await asyncio.gather(*(work() for _ in range(min(self._in_flight_max, len(posts)))))
        return answers

    async def _send(self, post: Post) -> Answer:
        host, port, private, url = self._target(post.url)
        if private is None:
            return Answer(f"the policy does not let webhooks call {host}:{port}", lasting=True)
        headers = dict(post.headers)
        if post.secret is not None:
            headers[SIGNATURE] = signature(
                post.secret, int(time.time()), "POST", url.raw_path_qs, post.body
            )
        try:
            async with self._sessions[private].post(
                url, data=post.body, headers=headers, allow_redirects=False
            ) as response:
                answer = _answer(host, response)
                with suppress(aiohttp.ClientError, TimeoutError):
                    await _read(response)
                return answer
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return self._failure(host, post.url, error)

    def _target(self, url: str) -> tuple[str, int, bool | None, URL]:
        """Host and port of a URL; whether the policy allows private addresses for them, None where
        it does not list them; and the URL itself."""
        if url not in self._targets:
            self._targets[url] = (
                *host_of(url),
                allowed(self._hosts, url),
                URL(url, encoded=True),
            )
        return self._targets[url]

    def _failure(self, host: str, url: str, error: Exception) -> Answer:
        """Why there is no answer. It names the host only: the rest of a URL may be secret."""
        match error:
            case TimeoutError():
                return Answer(f"{host} did not answer within {self._seconds_max:g} s")
            case aiohttp.ClientConnectorDNSError():
                return Answer(f"the name {host} cannot be resolved")
            case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
                return Answer(f"{host} has no certificate that is trusted")
            case aiohttp.ClientConnectorError(os_error=_PrivateError()):
                said = "has a private address, which the policy does not allow"
                return Answer(f"{host} {said}: {entry_of(url, private=True)}", lasting=True)
            case aiohttp.ClientConnectorError(os_error=refused):
                return Answer(f"no connection to {host}: {_named(refused)}")
            case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError():
                return Answer(f"{host} ended the connection before it answered")
            case aiohttp.InvalidURL():
                return Answer(f"{host} is neither the name of a host nor an address", lasting=True)
        return Answer(f"{host} did not answer in HTTP ({type(error).__name__})")


def _answer(host: str, response: aiohttp.ClientResponse) -> Answer:
    status = response.status
    if 200 <= status < 300:
        return Answer()
    said = f"{host} answered {status}"
    if status >= 500 or status in _LATER:
        return Answer(said, after_seconds=_after_seconds(response.headers.get("Retry-After", "")))
    return Answer(f"{said}: redirects are not followed" if status < 400 else said, lasting=True)


def _after_seconds(text: str) -> float:
    """How long `Retry-After` asks to wait: it holds seconds, or a time."""
    seconds = 0.0
    with suppress(ValueError):
        if text.isascii() and text.isdigit():
            seconds = float(text[:9])
        elif text:
            at = parsedate_to_datetime(text)
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
            seconds = (at - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), RETRY_AFTER_SECONDS_MAX)


async def _read(response: aiohttp.ClientResponse) -> None:
    """Read an answer to its end; close the connection if it is too long."""
    left = ANSWER_BYTES_MAX
    async for chunk in response.content.iter_any():
        left -= len(chunk)
        if left < 0:
            response.close()
            return


def _named(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


def _public_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket for a public address. Raises _PrivateError for any other."""
    family, kind, proto, _, sockaddr = address
    if not public(str(sockaddr[0])):
        raise _PrivateError
    return socket.socket(family, kind, proto)
