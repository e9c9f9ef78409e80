"""A server on this machine that takes webhooks, and answers as it is told."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

RESET, HANG, DRIP, GARBAGE = "reset", "hang", "drip", "garbage"


@dataclass(frozen=True)
class Received:
    """A request that was taken whole; names of headers are in small letters."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def fields(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def key(self) -> str:
        return self.headers["idempotency-key"]


@dataclass
class Receiver:
    """`answer` says what becomes of a request: a status, a status and headers, or how the
    connection is broken."""

    answer: Callable[[Received], int | tuple[int, Mapping[str, str]] | str] = lambda _: 200
    tls: ssl.SSLContext | None = None
    received: list[Received] = field(default_factory=list)
    most_at_once: int = 0
    connections: int = 0
    port: int = 0

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        begun = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(begun,), daemon=True)
        self._thread.start()
        assert begun.wait(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def hosts(self) -> dict[str, bool]:
        """What a policy says to let it be called."""
        return {f"127.0.0.1:{self.port}": True}

    @property
    def keys(self) -> list[str]:
        """The idempotency keys that came, in order."""
        return [one.key for one in self.received]

    def _run(self, begun: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        serving = asyncio.start_server(self._connection, "127.0.0.1", 0, ssl=self.tls)
        server = self._loop.run_until_complete(serving)
        self.port = server.sockets[0].getsockname()[1]
        self._open = 0
        begun.set()
        self._loop.run_forever()
        server.close()
        for task in (tasks := asyncio.all_tasks(self._loop)):
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._request(reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        named = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in named}
        body = await reader.readexactly(int(headers["content-length"]))
        assert head[0].startswith("POST ")
        one = Received(head[0].split()[1], headers, body)
        self.received.append(one)
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        await asyncio.sleep(0.001)
        told = self.answer(one)
        self._open -= 1
        if told == RESET:
            writer.transport.abort()
            return False
        if told == HANG:
            await asyncio.sleep(60)
        if told == DRIP:
            writer.write(b"HTTP/1.1 200 Said\r\nX-More: ")
            for _ in range(600):
                writer.write(b"x")
                await asyncio.sleep(0.1)
        if told == GARBAGE:
            writer.write(b"220 mail.example.org ESMTP\r\n\r\n")
            return False
        status, more = (told, {}) if isinstance(told, int) else told
        lines = "".join(f"{name}: {value}\r\n" for name, value in dict(more).items())
        rest = f"{lines}\r\n" if status == 204 else f"Content-Length: 2\r\n{lines}\r\nok"
        writer.write(f"HTTP/1.1 {status} Said\r\n{rest}".encode())
        await writer.drain()
        return True
