"""The console as a part of the inbox's application: its paths, and what each answers."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import resources
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlencode

import anyio
import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tidegate.connectors.http.console import pages
from tidegate.connectors.http.console.entrance import (
    FORM,
    FORM_BYTES_MAX,
    NOBODY,
    Entrance,
    LoginNeeded,
    is_secure,
    read_form,
)
from tidegate.connectors.http.console.headers import HEADERS, REPORT_POLICY
from tidegate.connectors.http.console.operations import OPERATIONS, Operation, asker
from tidegate.connectors.http.console.pages import Asked, Page, Told, key_in
from tidegate.connectors.http.console.rendering import environment
from tidegate.connectors.http.console.sessions import Session, Sessions, drop_cookies, set_cookie
from tidegate.connectors.http.credentials import Guard
from tidegate.connectors.http.inbox_limits import Rates
from tidegate.connectors.http.refusal import Refusal, refused
from tidegate.connectors.http.requests import Bodies
from tidegate.connectors.http.rulebooks import Source
from tidegate.connectors.http.stream import Streams
from tidegate.engine.core.policy import OPERATE
from tidegate.engine.core.text.json_text import plain
from tidegate.engine.core.text.layout import counted
from tidegate.rules.errors import EngineError, InputError
from tidegate.rules.model import Settings

log = logging.getLogger(__name__)
ROOT = "/console"
READERS = 4  # threads that read the store for pages
TOO_MANY = 429
LOGGED_PER_SECOND = 1  # lines of logins that were refused
_STATUS = dict.fromkeys(("firing-gone", "firing-unclear", "no-rulebook", "no-report"), 404)
_NEXT = re.compile(rf"{ROOT}(/[\w-][\w.-]*)*(\?[\w.%&=+:-]*)?", re.ASCII)
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
Endpoint = Callable[[Request], Awaitable[Response]]


class Console:
    """Answers requests under `ROOT`. `told`: what tells of rules, firings and
    backtests. `on_asked`: called after each request to an
    engine. `reports`: the folder of backtests that it lists."""

    def __init__(
        self,
        source: Source,
        streams: Streams,
        guard: Guard,
        settings: Settings,
        told: Told,
        on_asked: Callable[[], None] = lambda: None,
        reports: Path | None = None,
    ) -> None:
        self._told, self._on_asked = told, on_asked
        self._source, self._streams, self._reports = source, streams, reports
        sessions = Sessions(settings.console_sessions_max, settings.console_session_minutes)
        self._entrance = Entrance(guard, sessions)
        self._bodies = Bodies(
            FORM_BYTES_MAX, settings.inbox_client_seconds_max, "of a form of the console"
        )
        self._log_rate, self._refused_logins = Rates(LOGGED_PER_SECOND), 0
        self._readers = anyio.CapacityLimiter(READERS)
        self._templates = environment()
        self._static = dict(_static_files())

    def paths(self) -> Iterable[tuple[str, str, Endpoint]]:
        """The paths of the console: (path, method, what answers it)."""
        yield "/", "GET", self._home
        yield ROOT, "GET", self._home
        for page in pages.PAGES:
            yield f"{ROOT}/{page.path}.json", "GET", partial(self._json, page)
            yield f"{ROOT}/{page.path}", "GET", partial(self._page, page)
        for one in OPERATIONS:
            yield f"{ROOT}/{one.path}", "GET", partial(self._ask, one)
            yield f"{ROOT}/{one.path}", "POST", partial(self._carry_out, one)
        yield f"{ROOT}/reports/{{report}}", "GET", self._report
        yield f"{ROOT}/live", "GET", self._live
        yield f"{ROOT}/static/{{file}}", "GET", self._file
        yield f"{ROOT}/login", "GET", self._ask_login
        yield f"{ROOT}/login", "POST", self._login
        yield f"{ROOT}/logout", "POST", self._logout
        yield f"{ROOT}/{{rest:path}}", "GET", self._nowhere

    async def answer(self, endpoint: Endpoint, request: Request) -> Response:
        """The answer of an endpoint; or the refusal, as a page, or as JSON where that is asked for.
        Each has the headers of the console."""
        try:
            response = await endpoint(request)
        except LoginNeeded:
            response = await self._login_needed(request)
        except (Refusal, InputError, EngineError) as error:
            response = await self._refused(request, _refusal(error))
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    async def _home(self, request: Request) -> Response:
        self._entrance.visitor(request)
        return RedirectResponse(f"{ROOT}/overview", 303)

    async def _nowhere(self, request: Request) -> Response:
        self._entrance.visitor(request)
        raise Refusal(404, "not-found", "the console has no such page", "see the overview")

    async def _json(self, page: Page, request: Request) -> Response:
        self._entrance.visitor(request)
        found = await self._values(page, request, _filters(page, request))
        return Response(orjson.dumps(found, default=plain), media_type="application/json")

    async def _page(self, page: Page, request: Request) -> Response:
        session = self._entrance.visitor(request)
        chosen = _filters(page, request)
        found = await self._values(page, request, chosen)
        return await self._rendered(request, page.template, session, it=found, given=chosen)

    async def _values(
        self, page: Page, request: Request, chosen: Mapping[str, str]
    ) -> Mapping[str, Any]:
        """What a page shows, as its JSON has it."""
        asked = await self._asked(request, chosen)
        found: Mapping[str, Any] = await self._in_thread(partial(page.values, asked))
        return found

    async def _asked(self, request: Request, chosen: Mapping[str, str]) -> Asked:
        books = await self._source.books()
        return Asked(
            self._source.store, books, self._told, request.path_params, chosen, self._reports
        )

    async def _ask(self, operation: Operation, request: Request) -> Response:
        """What a button would do, with a form that asks."""
        session = self._entrance.visitor(request)
        asked = await self._asked(request, key_in(request.query_params.multi_items()))
        question = await self._in_thread(partial(operation.question, asked))
        given = {"it": question, "back": f"{ROOT}/{operation.back}"}
        return await self._rendered(request, "ask.html", session, **given)

    async def _carry_out(self, operation: Operation, request: Request) -> Response:
        """Ask the engine for it; the audit page shows what comes of it."""
        form = await self._form(request)
        session = self._entrance.operator(request, form)
        asked, by = await self._asked(request, key_in([*form.items()])), asker(session.key.name)
        subject = await self._in_thread(partial(operation.carry_out, asked, form, by))
        self._on_asked()
        named = {"rulebook": asked.book.name, "kind": operation.kind}
        named |= {"subject": subject} if subject else {"by": by}
        return RedirectResponse(f"{ROOT}/audit?{urlencode(named)}", 303)

    async def _report(self, request: Request) -> Response:
        """A report of a backtest, as it was written."""
        self._entrance.visitor(request)
        name = request.path_params["report"]
        text = await self._in_thread(partial(self._told.report, self._reports, name))
        headers = {"content-security-policy": REPORT_POLICY}
        return Response(text, media_type="text/html", headers=headers)

    async def _rendered(
        self, request: Request, template: str, session: Session, status: int = 200, **given: Any
    ) -> Response:
        """A template, filled in."""
        frame = {
            "root": ROOT,
            "path": request.url.path,
            "address": _address(request),
            "who": session.key.name,
            "token": session.token,
            "operates": OPERATE in session.key.console and bool(session.token),
            "asks": self._entrance.asks,
        }
        chosen = defaultdict(str, given.pop("given", {}))
        found = self._templates.get_template(template)
        text = await self._in_thread(partial(found.render, **frame, **given, given=chosen))
        return Response(text, status, media_type="text/html")

    async def _refused(self, request: Request, refusal: Refusal) -> Response:
        if request.url.path.endswith(".json") or refusal.status == TOO_MANY:
            return refused(refusal)  # who asks too often waits for no thread that writes pages
        try:
            session = self._entrance.visitor(request)
        except (Refusal, LoginNeeded):
            session = NOBODY
        given = {"refusal": refusal, "inside": session is not NOBODY or not self._entrance.asks}
        status = refusal.status
        page = await self._rendered(request, "refused.html", session, status, **given)
        page.headers.update(refusal.all_headers)
        return page

    async def _login_needed(self, request: Request) -> Response:
        """The way to the login; for what a page's script fetches, a refusal."""
        if request.method != "GET" or request.url.path.endswith(".json"):
            hint = f"log in at {ROOT}/login"
            return refused(Refusal(401, "unauthorised", "nobody is logged in", hint))
        if request.headers.get("hx-request"):
            return Response(status_code=401)
        return RedirectResponse(f"{ROOT}/login?{urlencode({'next': _address(request)})}", 303)

    async def _ask_login(self, request: Request) -> Response:
        self._entrance.check(request)
        if not self._entrance.asks:
            return RedirectResponse(f"{ROOT}/overview", 303)
        return await self._login_page(request, request.query_params.get("next", ""))

    async def _login_page(self, request: Request, next_: str, failed: str = "") -> Response:
        status = 403 if failed else 200
        given = {"next": _own(next_), "failed": failed}
        return await self._rendered(request, "login.html", NOBODY, status, **given)

    async def _login(self, request: Request) -> Response:
        form = await self._form(request)
        id_ = self._entrance.login(request, form)
        if id_ is None:
            self._note_refused(form)
            return await self._login_page(request, form.get("next", ""), "No key has this secret.")
        response = RedirectResponse(_own(form.get("next", "")), 303)
        set_cookie(response, id_, ROOT, secure=is_secure(request))
        return response

    def _note_refused(self, form: Mapping[str, str]) -> None:
        """Log that logins were refused, so often that who tries many fills no disk."""
        self._refused_logins += 1
        if self._log_rate.take(""):
            name = self._entrance.known_name(form)  # any other may be a secret in the wrong field
            many = counted(self._refused_logins, "login")
            log.warning("console: %s refused, the last as %s", many, name or "nobody it knows")
            self._refused_logins = 0

    async def _logout(self, request: Request) -> Response:
        self._entrance.logout(request, await self._form(request))
        response = RedirectResponse(f"{ROOT}/login", 303)
        drop_cookies(response, ROOT)
        return response

    async def _form(self, request: Request) -> Mapping[str, str]:
        """The fields of a form. Raises Refusal."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != FORM:
            raise Refusal(415, "no-form", "this is no form", "send it from its page", close=True)
        body = await self._bodies.read(request)
        try:
            return read_form(body)
        finally:
            self._bodies.release(body)

    async def _live(self, request: Request) -> Response:
        self._entrance.visitor(request)
        return self._streams.watch(partial(self._entrance.lets_in, request))

    async def _file(self, request: Request) -> Response:
        """A file of the console itself; there is no other."""
        self._entrance.check(request)
        name = request.path_params["file"]
        if name not in self._static:
            raise Refusal(404, "not-found", "there is no such file", "")
        kind = _KINDS[PurePath(name).suffix]
        headers = {"cache-control": "private, max-age=300"}
        return Response(self._static[name], media_type=kind, headers=headers)

    async def _in_thread(self, call: Callable[[], Any]) -> Any:
        return await anyio.to_thread.run_sync(call, limiter=self._readers)


def _refusal(error: Refusal | InputError | EngineError) -> Refusal:
    """An error as the console answers it."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, EngineError):
        status = _STATUS.get(error.code, 503)
        return Refusal(status, error.code, error.message, error.hint)
    problem = error.problems[0]
    status = 404 if problem.code.startswith(("unknown-", "no-")) else 400
    more = error.problems if len(error.problems) > 1 else ()
    return Refusal(status, problem.code, problem.message, problem.hint, problem.place.path, more)


def _address(request: Request) -> str:
    """The path of a request with its query."""
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def _filters(page: Page, request: Request) -> dict[str, str]:
    """What a page is filtered by. Raises InputError."""
    return page.chosen(request.query_params.multi_items())


def _own(address: str) -> str:
    """An address of the console; the first page in place of any other."""
    return address if _NEXT.fullmatch(address) else f"{ROOT}/overview"


def _static_files() -> Iterator[tuple[str, bytes]]:
    folder = resources.files("tidegate.connectors.http.console").joinpath("static")
    for file in folder.iterdir():
        if PurePath(file.name).suffix in _KINDS:
            yield file.name, file.read_bytes()
