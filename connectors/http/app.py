"""The inbox as an ASGI application: what each address answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tidegate.connectors.http.body import Declared, read_signals
from tidegate.connectors.http.credentials import Guard, Key
from tidegate.connectors.http.limits import Rates
from tidegate.connectors.http.metrics import CONTENT_TYPE, Metrics
from tidegate.connectors.http.openapi import openapi
from tidegate.connectors.http.refusal import Refusal, answer, refused
from tidegate.connectors.http.requests import Bodies, busy, check_type
from tidegate.connectors.http.rulebooks import Source
from tidegate.connectors.http.stream import Streams
from tidegate.connectors.http.writer import FullError, Writer
from tidegate.engine.control.signals import declared_signals
from tidegate.engine.core.signing import SIGNATURE
from tidegate.engine.store.posts import Posted, Taken
from tidegate.rules.errors import EngineError, InputError, TidegateError
from tidegate.rules.model import Settings

BYTES_IN_LOOP = 16_384  # larger bodies are read in a thread, for others not to wait
READERS = 2

Endpoint = Callable[[Request], Awaitable[Response]]


class App:
    """Requests in, answers out. `waits`: whether the engines of this process wait for others;
    `starting`: its rulebooks that no engine has taken a first look for."""

    def __init__(
        self,
        source: Source,
        writer: Writer,
        guard: Guard,
        settings: Settings,
        waits: Callable[[], bool] = lambda: False,
        starting: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._waits = waits
        self._starting = starting
        self._source = source
        self._writer = writer
        self._guard = guard
        self._settings = settings
        self._rates = Rates(settings.inbox_requests_per_second_max)
        self._bodies = Bodies(settings.inbox_bytes_max, settings.inbox_client_seconds_max)
        self._readers = anyio.CapacityLimiter(READERS)
        self._metrics = Metrics(source)
        self.streams = Streams(source, settings.inbox_streams_max)
        routes = {
            "/signals/{event}": ("POST", self._post),
            "/events/stream": ("GET", self._stream),
            "/openapi.json": ("GET", self._openapi),
            "/metrics": ("GET", self._show_metrics),
            "/healthz": ("GET", self._healthy),
            "/readyz": ("GET", self._ready),
        }
        self.asgi = Starlette(
            routes=[
                Route(path, partial(self._answer, endpoint), methods=[method])
                for path, (method, endpoint) in routes.items()
            ],
            exception_handlers={HTTPException: self._not_there, Exception: self._failed},
        )
        self.asgi.router.redirect_slashes = False
        for route in self.asgi.routes:
            route.methods.discard("HEAD")  # type: ignore[attr-defined]  # a stream has no end

    async def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        try:
            response = await endpoint(request)
        except Refusal as refusal:
            response = refused(refusal)
        except asyncio.CancelledError:  # the server's time to end is over
            response = refused(busy("the inbox ends; what was sent may still be written"))
        self._metrics.answered(response.status_code)
        return response

    async def _not_there(self, _: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101, the handler of these
        code = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "refused")
        hint = "GET /openapi.json lists what is there"
        self._metrics.answered(error.status_code)
        headers = dict(error.headers or {})
        return refused(Refusal(error.status_code, code, error.detail, hint, headers=headers))

    async def _failed(self, _: Request, _error: Exception) -> Response:
        self._metrics.answered(500)
        return refused(Refusal(500, "failed", "an error nobody foresaw", "its log says more"))

    async def _post(self, request: Request) -> Response:
        key = self._admit(request)
        event = request.path_params["event"]
        declared = None if key is None else await self._declared(key, event)
        check_type(request)
        body = await self._bodies.read(request)
        try:
            if declared is None:
                key = self._admit(request, body)
                declared = await self._declared(key, event)
            posted = await self._read(declared, body, ids_needed=self._is_signed(request))
        finally:
            self._bodies.release(body)
        await self._write(posted)
        return answer({"ids": posted.ids, "rulebooks": sorted(posted.texts)}, 202)

    def _admit(self, request: Request, body: bytes | None = None) -> Key | None:
        """Who sends it; None: to be asked again with the body. Raises Refusal."""
        address = request.client.host if request.client else ""
        try:
            key = self._guard.admit(request, body)
        except Refusal as refusal:
            self._limit(f"@{address}")
            raise refusal from None
        if key is not None:
            self._limit(key.name or f"@{address}")
        return key

    def _limit(self, client: str) -> None:
        if not self._rates.take(client):
            most = self._settings.inbox_requests_per_second_max
            message = f"more than {most:,} requests a second (inbox_requests_per_second_max)"
            hint = "wait a second; send arrays of signals"
            headers = {"retry-after": "1"}
            raise Refusal(429, "too-many-requests", message, hint, headers=headers, close=True)

    def _is_signed(self, request: Request) -> bool:
        return bool(self._guard.keys) and SIGNATURE in request.headers

    async def _declared(self, key: Key | None, event: str) -> Declared:
        """The signal of that name, which the key may raise."""
        books = await self._source.books()
        allowed = None if key is None else key.raises
        try:
            declared = declared_signals(books, event, allowed)
        except InputError as error:
            (problem,) = error.problems
            raise Refusal(404, problem.code, problem.message, problem.hint, close=True) from None
        if key is None or (allowed is not None and event not in allowed):
            message = f"this key may not raise `{event}`"
            hint = "the operator's policy lists what it may: inbox_keys"
            raise Refusal(403, "not-allowed", message, hint, close=True)
        return declared

    async def _read(self, declared: Declared, body: bytes, *, ids_needed: bool) -> Posted:
        most = self._settings.inbox_batch_max
        read = partial(read_signals, declared, body, most, ids_needed=ids_needed)
        if len(body) <= BYTES_IN_LOOP:
            return read()
        return await anyio.to_thread.run_sync(read, limiter=self._readers)

    async def _write(self, posted: Posted) -> None:
        """Once this returns, the signals are in the store."""
        try:
            written = await self._writer.submit(posted)
        except FullError:
            raise busy("too many signals wait to be written") from None
        except EngineError:
            raise busy("the store cannot be written now") from None
        if isinstance(written, Taken):
            path = f"[{written.number}]" if len(posted.ids) > 1 else ""
            message = f"id {written.id!r} stands for another event or other fields"
            hint = "an id means one occurrence: give a new one, or none"
            raise Refusal(409, "signal-conflict", message, hint, path)
        self._metrics.wrote(written, len(posted.ids) - written)

    async def _stream(self, request: Request) -> Response:
        key = self._known(request)
        return await self.streams.open(request, key)

    def _known(self, request: Request) -> Key:
        """Who asks, of what has no body to sign."""
        key = self._admit(request, b"")
        assert key is not None  # noqa: S101, with a body it is known
        return key

    async def _openapi(self, request: Request) -> Response:
        if self._known(request).only_monitors:
            hint = "it reads /metrics; the policy's inbox_keys and listen_keys may do more"
            raise Refusal(403, "not-allowed", "this key may only monitor", hint)
        return answer(openapi(await self._source.books(), self._settings, self._guard.keys))

    async def _show_metrics(self, request: Request) -> Response:
        self._known(request)
        status = await self._asked()
        text = await asyncio.to_thread(self._metrics.text, status)
        return Response(text, media_type=CONTENT_TYPE)

    async def _healthy(self, _: Request) -> Response:
        return answer({"status": "ok"})

    async def _ready(self, _: Request) -> Response:
        if await self._asked() is None:
            message = "the store cannot be asked, or does not know the rulebook"
            raise Refusal(503, "not-ready", message, "its log says more")
        if self._waits():
            message = "another engine runs the rulebook; this one takes over when that ends"
            raise Refusal(503, "standby", message, "its signals are taken here, too")
        if names := self._starting():
            message = f"no first look was taken yet for: {', '.join(names)}"
            raise Refusal(503, "starting", message, "`tidegate status` says what is done")
        return answer({"status": "ready"})

    async def _asked(self) -> dict[str, dict[str, Any]] | None:
        """The rulebooks' status, None while it cannot be had."""
        try:
            return await self._source.status.get()
        except TidegateError:
            return None
