"""Who may see a page of the console, and who may press a button there (G28).

A browser carries the cookies of its user wherever a page sends it. So a request counts only if the
browser says, or the request shows, that one of the console's own pages has sent it: by the headers
`Sec-Fetch-Site` or `Origin`, by a cookie that no other site's request brings, and, where something
is asked for, by the session's token in the form.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from tidegate.connectors.http.console.sessions import Session, Sessions
from tidegate.connectors.http.credentials import ANYBODY, Guard
from tidegate.connectors.http.refusal import Refusal
from tidegate.engine.core.policy import OPERATE, VIEW

FORM = "application/x-www-form-urlencoded"
FORM_BYTES_MAX = 65_536
FIELDS_MAX = 100
TOKEN = "token"  # noqa: S105, the name of a field
NOBODY = Session(ANYBODY, "", float("inf"))
"""Where there are no keys: this machine's user, who may view."""


class LoginNeeded(Exception):
    """No session, or one that has ended: the login page is shown."""


class Entrance:
    """Lets requests in. Without keys the request must name this machine as its host, which a page
    from elsewhere cannot forge, and it may view only."""

    def __init__(self, guard: Guard, sessions: Sessions) -> None:
        self._guard = guard
        self._sessions = sessions

    @property
    def asks(self) -> bool:
        """Whether keys are asked for."""
        return bool(self._guard.keys)

    def check(self, request: Request) -> None:
        """What anybody may see: the login, and the console's own files. Raises Refusal."""
        self._guard.check_host(request)
        check_embedding(request)

    def visitor(self, request: Request) -> Session:
        """Who looks at a page. Programs may send `Authorization: Bearer SECRET`. Raises Refusal,
        LoginNeeded."""
        self.check(request)
        if not self.asks:
            return NOBODY
        if "authorization" in request.headers:
            key = self._guard.admit(request, b"")
            session = Session(key or ANYBODY, "", 0.0)
        else:
            found = self._sessions.of(request)
            if found is None:
                raise LoginNeeded
            session = found
        if VIEW not in session.key.console:
            raise _not_allowed("see the console", VIEW)
        return session

    def lets_in(self, request: Request) -> bool:
        """Whether who has sent a request may still look: a stream outlives a login."""
        try:
            self.visitor(request)
        except (LoginNeeded, Refusal):
            return False
        return True

    def operator(self, request: Request, form: Mapping[str, str]) -> Session:
        """Who presses a button. Raises Refusal, LoginNeeded."""
        self._guard.check_host(request)
        check_own_page(request)
        if not self.asks:
            message = "the console only shows: no key is configured"
            hint = "the policy says who may operate: console_keys: {ada: [view, operate]}"
            raise Refusal(403, "not-allowed", message, hint)
        session = self._sessions.of(request)
        if session is None:
            raise LoginNeeded
        check_token(session, form)
        if OPERATE not in session.key.console:
            raise _not_allowed("operate from the console", OPERATE)
        return session

    def login(self, request: Request, form: Mapping[str, str]) -> str | None:
        """What the cookie of a new session holds; None: there is no such key. Raises Refusal."""
        self._guard.check_host(request)
        check_own_page(request)
        secret = form.get("secret", "").encode("utf-8", "surrogateescape")
        key = self._guard.owner(secret) if secret else None
        if key is None or not key.console or key.name != form.get("name"):
            return None
        self._sessions.end(request)
        return self._sessions.begin(key)[0]

    def known_name(self, form: Mapping[str, str]) -> str | None:
        """The name in a form of a login, if a key has it."""
        return next((k.name for k in self._guard.keys if k.name == form.get("name")), None)

    def logout(self, request: Request, form: Mapping[str, str]) -> None:
        """End a session. Raises Refusal."""
        self._guard.check_host(request)
        check_own_page(request)
        session = self._sessions.of(request)
        if session is not None:
            check_token(session, form)
            self._sessions.end(request)


def check_embedding(request: Request) -> None:
    """Raises Refusal where a page of another site loads this one as a part of itself: as a frame, a
    picture, a script, or by its own script. It may link to it."""
    site = request.headers.get("sec-fetch-site", "none")
    mode, into = (request.headers.get(f"sec-fetch-{name}") for name in ("mode", "dest"))
    links = mode == "navigate" and into in (None, "document")
    if site not in ("none", "same-origin") and not links:
        raise _foreign()


def check_own_page(request: Request) -> None:
    """Raises Refusal unless one of the console's own pages has sent a form."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        if site != "same-origin":
            raise _foreign()
        return
    origin = request.headers.get("origin", "").partition("://")[2].lower()
    if not origin or origin != request.headers.get("host", "").lower():
        raise _foreign()


def check_token(session: Session, form: Mapping[str, str]) -> None:
    """Raises Refusal where a form lacks its session's token."""
    given = form.get(TOKEN, "").encode("utf-8", "surrogateescape")
    if not hmac.compare_digest(given, session.token.encode()):
        message = "the form is not of this login"
        raise Refusal(403, "stale-form", message, "open the page again, and send it from there")


def is_secure(request: Request) -> bool:
    """Whether the browser has come by https, as it says itself."""
    return request.headers.get("origin", "").startswith("https://")


def read_form(body: bytes) -> dict[str, str]:
    """The fields of a form. Raises Refusal."""
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"
        )
    except ValueError:
        raise Refusal(400, "bad-form", "the form cannot be read", "send it from its page") from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Refusal(400, "bad-form", "the form has a field twice", "send it from its page")
    return found


def _foreign() -> Refusal:
    message = "another site has sent this request"
    return Refusal(403, "foreign-site", message, "open the console itself, and do it there")


def _not_allowed(what: str, right: str) -> Refusal:
    hint = f"the policy says what it may: console_keys: {{NAME: [{right}]}}"
    return Refusal(403, "not-allowed", f"this key may not {what}", hint)
