"""A connection's deadlines: for a request's headers to come, for what is sent to be taken."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidegate.engine.inbox.refusal import Refusal, refused


class Connection(HttpToolsProtocol):
    """uvicorn's, which by itself waits for a silent client for as long as it likes."""

    client_seconds_max: float  # set by the class of a server

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._deadlines: dict[str, asyncio.TimerHandle] = {}
        super().connection_made(transport)
        self._expect("headers")

    def connection_lost(self, exc: Exception | None) -> None:
        for what in list(self._deadlines):
            self._met(what)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect("headers")

    def on_headers_complete(self) -> None:
        self._met("headers")
        super().on_headers_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect("reader")

    def resume_writing(self) -> None:
        self._met("reader")
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        response = refused(Refusal(400, "bad-request", msg.rstrip(".").lower(), close=True))
        head = [b"HTTP/1.1 400 Bad Request"]
        head += [b"%s: %s" % header for header in response.raw_headers]
        self.transport.write(b"\r\n".join([*head, b"", bytes(response.body)]))
        self.transport.close()

    def _expect(self, what: str) -> None:
        self._met(what)
        self._deadlines[what] = self.loop.call_later(self.client_seconds_max, self.transport.abort)

    def _met(self, what: str) -> None:
        if deadline := self._deadlines.pop(what, None):
            deadline.cancel()


def connections(client_seconds_max: float) -> type[asyncio.Protocol]:
    """Connections of a server with that deadline."""
    members: dict[str, Any] = {"client_seconds_max": client_seconds_max}
    return type("Connection", (Connection,), members)
