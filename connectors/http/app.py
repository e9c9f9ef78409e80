"""The inbox as an ASGI application: its paths and what each answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tidegate.connectors.http.body import Declared, read_signals
from tidegate.connectors.http.console import Console, Told
from tidegate.connectors.http.credentials import Guard, Key
from tidegate.connectors.http.inbox_limits import Rates
from tidegate.connectors.http.metrics import CONTENT_TYPE, Metrics
from tidegate.connectors.http.openapi import openapi
from tidegate.connectors.http.refusal import Refusal, answer, refused
from tidegate.connectors.http.requests import Bodies, busy, check_type
from tidegate.connectors.http.rulebooks import Source
from tidegate.connectors.http.stream import Streams
from tidegate.connectors.http.writer import FullError, Writer
from tidegate.engine.control.signals import declared_signals
from tidegate.engine.core.lifecycle import STARTING, STOPPING, Activity
from tidegate.engine.core.signing import SIGNATURE
from tidegate.engine.store.posts import IdConflict, Posted
from tidegate.rules.errors import EngineError, InputError, TidegateError
from tidegate.rules.model import Rulebook, Settings, SignalEvent

BYTES_IN_LOOP = 16_384  # larger bodies are read in a thread, so that other requests go on
READERS = 2

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Beside:
    """The engines in the inbox's own process. `waits`: whether all of them are standbys that wait.
    `activities`: what each of them does, by rulebook. `checking`: rulebooks whose tables and SQL
    are being checked; they are not registered yet."""

    waits: Callable[[], bool] = lambda: False
    activities: Callable[[], Mapping[str, Activity]] = dict
    checking: Callable[[], Iterable[Rulebook]] = tuple


ALONE = Beside()


@dataclass(frozen=True, slots=True)
class Shown:
    """That there is a console. `told`: what tells of rules and firings. `on_asked`: called after
    each request to an engine. `reports`: the folder of backtests that it lists."""

    told: Told
    on_asked: Callable[[], None] = lambda: None
    reports: Path | None = None


class App:
    """Answers the requests of the inbox."""

    def __init__(
        self,
        source: Source,
        writer: Writer,
        guard: Guard,
        settings: Settings,
        beside: Beside = ALONE,
        console: Shown | None = None,
    ) -> None:
        self._beside = beside
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
        answers = [(path, method, endpoint) for path, (method, endpoint) in routes.items()]
        if console is not None:
            pages = Console(
                source,
                self.streams,
                guard,
                settings,
                console.told,
                console.on_asked,
                console.reports,
            )
            limited = [(p, m, partial(self._limited, answer)) for p, m, answer in pages.paths()]
            answers += [(p, m, partial(pages.answer, answer)) for p, m, answer in limited]
        self.asgi = Starlette(
            routes=[
                Route(path, partial(self._answer, endpoint), methods=[method])
                for path, method, endpoint in answers
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
            is_signed = bool(self._guard.keys) and SIGNATURE in request.headers
            posted = await self._read(declared, body, ids_needed=is_signed)
        finally:
            self._bodies.release(body)
        await self._write(posted)
        return answer({"ids": posted.ids, "rulebooks": sorted(posted.texts)}, 202)

    def _admit(self, request: Request, body: bytes | None = None) -> Key | None:
        """The key of the sender; None: it is signed, so that the body is needed. Raises Refusal."""
        address = request.client.host if request.client else ""
        try:
            key = self._guard.admit(request, body)
        except Refusal as refusal:
            self._limit(f"@{address}")
            raise refusal from None
        if key is not None:
            self._limit(key.name or f"@{address}")
        return key

    async def _limited(self, endpoint: Endpoint, request: Request) -> Response:
        """Of a page, which each address may ask for as often as a program may call."""
        self._limit(f"@{request.client.host if request.client else ''}")
        return await endpoint(request)

    def _limit(self, client: str) -> None:
        if not self._rates.take(client):
            most = self._settings.inbox_requests_per_second_max
            message = f"more than {most:,} requests a second (inbox_requests_per_second_max)"
            hint = "wait a second; send arrays of signals"
            headers = {"retry-after": "1"}
            raise Refusal(429, "too-many-requests", message, hint, headers=headers, close=True)

    async def _declared(self, key: Key | None, event: str) -> Declared:
        """The declarations of a signal. Raises Refusal where the key may not raise it."""
        books = await self._source.books()
        allowed = None if key is None else key.raises
        if key is not None and (allowed is None or event in allowed):
            self._check_known(books, event)
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

    def _check_known(self, books: Mapping[str, Rulebook], event: str) -> None:
        """Raises Refusal where a rulebook that is being checked declares a signal otherwise than
        the store does: which of the two will run is not known yet."""
        for book in self._beside.checking():
            if _fields(book, event) != _fields(books.get(book.name), event):
                message = f"rulebook {book.name} is being checked, and declares `{event}` anew"
                hint, headers = "send it again in a few seconds", {"retry-after": "5"}
                raise Refusal(503, STARTING, message, hint, headers=headers, close=True)

    async def _read(self, declared: Declared, body: bytes, *, ids_needed: bool) -> Posted:
        most = self._settings.inbox_batch_max
        read = partial(read_signals, declared, body, most, ids_needed=ids_needed)
        if len(body) <= BYTES_IN_LOOP:
            return read()
        return await anyio.to_thread.run_sync(read, limiter=self._readers)

    async def _write(self, posted: Posted) -> None:
        """Write the signals. They are in the store when this returns."""
        try:
            written = await self._writer.submit(posted)
        except FullError:
            raise busy("too many signals wait to be written") from None
        except EngineError:
            raise busy("the store cannot be written now") from None
        if isinstance(written, IdConflict):
            path = f"[{written.number}]" if len(posted.ids) > 1 else ""
            message = f"id {written.id!r} stands for another event or other fields"
            hint = "an id means one occurrence: give a new one, or none"
            raise Refusal(409, "signal-conflict", message, hint, path)
        self._metrics.wrote(written, len(posted.ids) - written)

    async def _stream(self, request: Request) -> Response:
        return await self.streams.open(request, self._known(request))

    def _known(self, request: Request) -> Key:
        """The key of a request without a body."""
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
        """GET /healthz: the process answers; what its engines do."""
        found = {name: _shown(one) for name, one in self._beside.activities().items()}
        return answer({"status": "ok", **({"rulebooks": found} if found else {})})

    async def _ready(self, _: Request) -> Response:
        activities = self._beside.activities()
        if stopping := _telling(activities, STOPPING):
            message = f"the engine was asked to stop: {stopping}"
            raise Refusal(503, STOPPING, message, "signals are taken until it ends")
        if self._beside.waits():
            message = "another engine runs the rulebook; this one takes over when that ends"
            raise Refusal(503, "standby", message, "its signals are taken here, too")
        if starting := _telling(activities, STARTING):
            message = f"no first look was taken yet for: {starting}"
            raise Refusal(503, STARTING, message, "`tidegate status` says what is done")
        if await self._asked() is None:
            message = "the store cannot be asked, or does not know the rulebook"
            raise Refusal(503, "not-ready", message, "its log says more")
        return answer({"status": "ready"})

    async def _asked(self) -> dict[str, dict[str, Any]] | None:
        """The status of the rulebooks; None while the store cannot be asked."""
        try:
            await self._source.books()  # one may be new
            return await self._source.status.get()
        except TidegateError:
            return None


def _fields(book: Rulebook | None, event: str) -> Mapping[str, str] | None:
    """The fields that a rulebook declares for a signal; None where it has no such signal."""
    declared = None if book is None else book.events.get(event)
    return declared.fields if isinstance(declared, SignalEvent) else None


def _shown(activity: Activity) -> dict[str, str]:
    """An activity for anybody to see: without a text that may hold a path or an address."""
    safe = activity.doing if activity.state in (STARTING, STOPPING) else ""
    return {"state": activity.state, **({"doing": safe} if safe else {})}


def _telling(activities: Mapping[str, Activity], state: str) -> str:
    """The rulebooks whose engines are in a state, with what they do: `bank (starting Spark)`."""
    found = {name: one.doing for name, one in activities.items() if one.state == state}
    return ", ".join(f"{name} ({doing})" if doing else name for name, doing in found.items())
