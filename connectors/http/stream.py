"""Streams to listening programs: what a rule detects, as server-sent events, from a position on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

import anyio
import orjson
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tidegate.connectors.http.credentials import Key
from tidegate.connectors.http.refusal import Refusal
from tidegate.connectors.http.requests import busy
from tidegate.connectors.http.rulebooks import LOOK_SECONDS, Source
from tidegate.engine.control.listen import heard
from tidegate.engine.core.text.json_text import plain
from tidegate.engine.core.types.fields import SHOWN_MAX
from tidegate.engine.store.tail import Tail
from tidegate.rules.errors import EngineError, InputError
from tidegate.rules.model import Rulebook

KEEPALIVE_SECONDS = 15.0
PULSE_SECONDS = 5.0  # a page takes its stream for lost after a few of them
_STATUS = {"bad-position": 400, "position-gone": 410}
READERS = 4  # threads for streams alone, so that no signal waits behind them
PAGE_ITEMS = 100  # a stream holds no more in memory: the store is its buffer


class Streams:
    """All streams of a server. The connection of a client that stops reading is closed."""

    def __init__(self, source: Source, streams_max: int) -> None:
        self._source = source
        self._streams_max = streams_max
        self._readers = anyio.CapacityLimiter(READERS)
        self.open_count = 0
        self.stopping = False

    async def open(self, request: Request, key: Key) -> StreamingResponse:
        """A stream from `Last-Event-ID` on, else from `since`, else from now. Raises Refusal."""
        self._count_one()  # before the first await: other streams open meanwhile
        try:
            return _Stream(self, self._events(*await self._tail(request, key)))
        except BaseException:
            self.open_count -= 1
            raise

    def watch(self, may: Callable[[], bool]) -> StreamingResponse:
        """A stream that says, without values, when any rulebook has a new bucket: `changed`. It
        says `alive` each `PULSE_SECONDS`. It ends when who listens `may` no more. Raises
        Refusal."""
        self._count_one()
        return _Stream(self, self._changes(may))

    def _count_one(self) -> None:
        if self.open_count >= self._streams_max:
            message = f"{self._streams_max} streams are open already (inbox_streams_max)"
            raise busy(message, "come back in a second, or close another one")
        self.open_count += 1

    async def _tail(self, request: Request, key: Key) -> tuple[str, Tail]:
        name = request.query_params.get("name", "")
        since = request.headers.get("last-event-id") or request.query_params.get("since")
        books = await self._source.books()
        try:
            wanted = heard(_chosen(books, request), name, "name", key.hears)
            if key.hears is not None and name not in key.hears:
                hint = "the operator's policy lists what it may: listen_keys"
                raise Refusal(403, "not-allowed", f"this key may not wait for `{name}`", hint)
            begin = partial(Tail, self._source.store, wanted, since)
            tail = await anyio.to_thread.run_sync(begin, limiter=self._readers)
            return wanted.rulebook, tail
        except InputError as error:
            (problem,) = error.problems
            status = 404 if problem.code == "unknown-name" else 400
            raise Refusal(status, problem.code, problem.message, problem.hint) from None
        except EngineError as error:
            if error.code not in _STATUS:
                raise busy("the store cannot be read now") from None
            raise Refusal(_STATUS[error.code], error.code, error.message, error.hint) from None

    async def _take(self, tail: Tail) -> list[bytes]:
        """The next items as events; or that some are passed over, as their rows are gone: who
        listens hears all others."""

        def take() -> list[bytes]:
            before = tail.position
            try:
                return [_event(position, item) for position, item in tail.take(PAGE_ITEMS)]
            except EngineError as error:
                if error.code != "state-file":
                    raise
                bucket = tail.pass_over()
                said = f"what is left of bucket {bucket} is passed over: {error.message}"
                hint = f"{error.hint}. Position {before} stands before it"
                return [_error(EngineError(error.code, said, hint), tail.position)]

        return await anyio.to_thread.run_sync(take, limiter=self._readers)

    async def _events(self, rulebook: str, tail: Tail) -> AsyncIterator[bytes]:
        """Items as they come; in silence, now and then the position."""
        yield _block(f"retry: 1000\nid: {tail.position}")
        told = time.monotonic()
        try:
            while not self.stopping:
                last = await self._source.last_bucket(rulebook)
                if events := await self._take(tail):
                    yield b"".join(events)
                    told = time.monotonic()
                    continue
                while not self.stopping and await self._source.last_bucket(rulebook) == last:
                    if time.monotonic() - told > KEEPALIVE_SECONDS:
                        yield _block(f": keepalive\nid: {tail.position}")
                        told = time.monotonic()
                    await asyncio.sleep(LOOK_SECONDS)
        except EngineError as error:  # the client comes back, and is told again
            gone = error.code == "position-gone"
            yield _error(error if gone else EngineError("busy", "the store cannot be read now", ""))

    async def _changes(self, may: Callable[[], bool]) -> AsyncIterator[bytes]:
        last, said = await self._look({}), "alive"  # before the page is told to look
        while not self.stopping and may():
            yield _block(f"event: {said}\ndata: {len(last)}")
            told, said = time.monotonic(), "alive"
            while not self.stopping and may() and time.monotonic() - told < PULSE_SECONDS:
                await asyncio.sleep(LOOK_SECONDS)
                before, last = last, await self._look(last)
                if last != before:
                    said = "changed"
                    break

    async def _look(self, last: Mapping[str, int]) -> Mapping[str, int]:
        """The last bucket of each rulebook; `last` while the store cannot be read."""
        try:
            names = await self._source.books()
            return {name: await self._source.last_bucket(name) for name in names}
        except EngineError:
            return last


class _Stream(StreamingResponse):
    """Counted until it ends."""

    def __init__(self, streams: Streams, events: AsyncIterator[bytes]) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(events, headers=headers, media_type="text/event-stream")
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.open_count -= 1


def _chosen(books: Mapping[str, Rulebook], request: Request) -> Mapping[str, Rulebook]:
    """All rulebooks, or the one that `rulebook` names. Raises Refusal."""
    name = request.query_params.get("rulebook")
    if name is None:
        return books
    if name not in books:
        said = f"there is no rulebook `{name[:SHOWN_MAX]}`"
        raise Refusal(404, "no-rulebook", said, f"known: {', '.join(sorted(books))}")
    return {name: books[name]}


def _event(position: str, item: Mapping[str, Any]) -> bytes:
    return b"id: %s\ndata: %s\n\n" % (position.encode(), orjson.dumps(item, default=plain))


def _error(error: EngineError, position: str | None = None) -> bytes:
    """`position`: who comes back goes on from there."""
    said = {"code": error.code, "message": error.message, "hint": error.hint}
    at = "" if position is None else f"id: {position}\n"
    return f"{at}event: error\ndata: {orjson.dumps(said).decode()}\n\n".encode()


def _block(lines: str) -> bytes:
    return f"{lines}\n\n".encode()
