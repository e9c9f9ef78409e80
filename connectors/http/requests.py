"""Reads the body of a request within limits of size, time and memory."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request

from tidegate.connectors.http.refusal import JSON, Refusal

HELD_BODIES = 16  # all bodies together are at most so many of the largest size


class Bodies:
    """The bodies that are in memory at the same time. `limit`: what their size is bound by."""

    def __init__(self, bytes_max: int, seconds_max: float, limit: str = "inbox_bytes_max") -> None:
        self._bytes_max = bytes_max
        self._limit = limit
        self._seconds_max = seconds_max
        self._held = 0

    async def read(self, request: Request) -> bytes:
        """The body of a request; `release` it. Raises Refusal."""
        declared = request.headers.get("content-length", "")
        if declared.isascii() and declared.isdigit() and len(declared) < 20:
            self._check(int(declared))
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._seconds_max):
                async for chunk in request.stream():
                    size += len(chunk)
                    self._held += len(chunk)
                    self._check(size)
                    chunks.append(chunk)
        except BaseException as error:
            self._held -= size
            if isinstance(error, TimeoutError):
                message = f"the body did not come within {self._seconds_max:g} s"
                raise Refusal(408, "too-slow", message, close=True) from None
            if isinstance(error, ClientDisconnect):
                message = "the client has gone before its request was whole"
                raise Refusal(400, "gone", message, close=True) from None
            raise
        return b"".join(chunks)

    def release(self, body: bytes) -> None:
        self._held -= len(body)

    def _check(self, size: int) -> None:
        if size > self._bytes_max:
            message = f"the body is larger than {self._bytes_max:,} bytes ({self._limit})"
            raise Refusal(413, "too-large", message, "send less at a time", close=True)
        if self._held > HELD_BODIES * self._bytes_max:
            raise busy("too much is being sent at a time")


def busy(message: str, hint: str = "send it again in a second, with the same ids") -> Refusal:
    """The refusal of a request that may succeed if it is sent again, with the same ids."""
    headers = {"retry-after": "1"}
    return Refusal(503, "busy", message, hint, headers=headers, close=True)


def check_type(request: Request) -> None:
    """Raises Refusal unless the headers name a JSON body: a browser lets no page of another site
    send that unasked. A request to change the protocol is refused too."""
    if "upgrade" in request.headers.get("connection", "").lower():
        message = "the request asks for another protocol, so that its body is not read"
        hint = "send it without the header Upgrade; Java's client: version(HTTP_1_1)"
        raise Refusal(400, "no-upgrade", message, hint, close=True)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = request.headers.get("content-encoding", "identity").lower()
    if kind != JSON or encoding != "identity":
        message = "the body is no plain JSON by its headers"
        hint = f"send it with `Content-Type: {JSON}`, not compressed"
        raise Refusal(415, "no-json", message, hint, close=True)
