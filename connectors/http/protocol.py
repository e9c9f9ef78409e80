"""Limits of a connection: seconds for a request's headers to arrive, seconds for the client to read
an answer, bytes of headers; and which connection is closed where there are too many."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidegate.connectors.http.refusal import Refusal, refused

HEAD_BYTES_MAX = 65_536  # of a request without its body; the piece that it begins in is not counted


class Connection(HttpToolsProtocol):
    """uvicorn's connection with deadlines: uvicorn itself waits for a silent client for ever."""

    client_seconds_max: float  # set by the class of a server
    connections_max: int
    silent: dict[Connection, None]
    """The connections without a whole request, in order of the last byte that came: the one that
    has been silent for longest is first."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._deadlines: dict[str, asyncio.TimerHandle] = {}
        self._head_bytes = 0  # since a request began, or a part of its body came
        self._lingering = Lingering(transport, self.client_seconds_max)
        super().connection_made(self._lingering)  # type: ignore[arg-type]
        self._make_room()
        self.silent[self] = None
        self._expect("headers")

    def connection_lost(self, exc: Exception | None) -> None:
        self.silent.pop(self, None)
        for what in list(self._deadlines):
            self._met(what)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        self._lingering.seconds_max = 0
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > HEAD_BYTES_MAX and not self.transport.is_closing():
            message = f"the request's headers are larger than {HEAD_BYTES_MAX:,} bytes"
            self._refuse(b"431 Request Header Fields Too Large", "headers-too-large", message)

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        super().on_message_begin()
        self._expect("headers")

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        self._heard()
        self._met("headers")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        self._heard()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self.silent.pop(self, None)
        self._met("rest")
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if not self.pipeline:
            self.silent[self] = None
        super().on_response_complete()
        if self.cycle.more_body and self.cycle.response_complete:
            self._expect("rest")  # of a request that was answered before it was whole

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect("reader")

    def resume_writing(self) -> None:
        self._met("reader")
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        self._refuse(b"400 Bad Request", "bad-request", msg.rstrip(".").lower())

    def _refuse(self, status: bytes, code: str, message: str) -> None:
        """Close the connection. The error is sent unless an earlier request still waits for its
        answer: the client would take the error for that answer."""
        cycle = self.cycle
        is_this_one = cycle is not None and cycle.more_body and not cycle.response_started
        if cycle is None or cycle.response_complete or (is_this_one and not self.pipeline):
            response = refused(Refusal(int(status[:3]), code, message, close=True))
            head = [b"HTTP/1.1 " + status]
            head += [b"%s: %s" % header for header in response.raw_headers]
            self.transport.write(b"\r\n".join([*head, b"", bytes(response.body)]))
        self.transport.close()

    def _heard(self) -> None:
        """Note that a part of a request has come: the connection is the last of the silent ones."""
        if self.silent.pop(self, self) is None:
            self.silent[self] = None

    def _make_room(self) -> None:
        """Close the connections that have been silent for longest until there is room for another.
        At its limit uvicorn would answer every request with 503."""
        while self.silent and len(self.connections) >= self.connections_max:
            longest = next(iter(self.silent))
            del self.silent[longest]
            self.connections.discard(longest)
            longest.transport.abort()

    def _expect(self, what: str) -> None:
        self._met(what)
        self._deadlines[what] = self.loop.call_later(self.client_seconds_max, self.transport.abort)

    def _met(self, what: str) -> None:
        if deadline := self._deadlines.pop(what, None):
            deadline.cancel()


def connections(client_seconds_max: float, connections_max: int) -> type[asyncio.Protocol]:
    """The class of a server's connections, with its deadline and its limit."""
    members: dict[str, Any] = {
        "client_seconds_max": client_seconds_max,
        "connections_max": connections_max,
        "silent": {},
    }
    return type("Connection", (Connection,), members)


class Lingering:
    """A transport whose `close` leaves the client time to read the answer.

    Closing a socket that has unread bytes resets the connection. A client that is reset loses the
    answer that it has not read yet (RFC 9112, section 9.6). Hence our side is closed for writing
    only. What still comes is dropped until the client closes too, for at most `seconds_max`; 0
    closes at once.
    """

    def __init__(self, transport: asyncio.Transport, seconds_max: float) -> None:
        self.seconds_max = seconds_max
        self._transport = transport
        self._closing = False

    def close(self) -> None:
        if self.is_closing():
            return
        self._closing = True
        if not self.seconds_max or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._transport.write_eof()
        self._transport.resume_reading()
        asyncio.get_running_loop().call_later(self.seconds_max, self._transport.abort)

    def is_closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        if not self.is_closing():  # requests behind an unread answer go on
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
