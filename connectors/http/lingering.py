"""A connection that is closed while its client may still be sending.

To close a socket with unread bytes resets the connection, and a client that is reset loses the
answer that it has not read yet (RFC 9112, section 9.6). So our side is closed for writing only;
what still comes is dropped until the client closes too, or is given up.
"""

from __future__ import annotations

import asyncio
from typing import Any


class Lingering:
    """A transport whose `close` leaves time to read the answer. `seconds_max`: 0 leaves none."""

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
        if not self._closing:
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
