"""Who is logged in to the console. A session is known by a cookie, ends by itself, and there are so
many at most. It lives in memory: a restart asks everybody again."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from tidegate.connectors.http.credentials import Key

TOKEN_BYTES = 32
COOKIE, SECURE_COOKIE = "tidegate_console", "__Host-tidegate_console"
SECONDS_PER_MINUTE = 60


@dataclass(frozen=True, slots=True)
class Session:
    """A login of a key. `token`: stands in each form of its pages, so that no other site can fill
    one in. `ends`: on the clock of `Sessions`, seconds."""

    key: Key
    token: str = field(repr=False)
    ends: float


class Sessions:
    """The sessions of a server, by a digest of what their cookies hold."""

    def __init__(
        self, sessions_max: int, minutes: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max = sessions_max
        self._seconds = minutes * SECONDS_PER_MINUTE
        self._clock = clock
        self._known: OrderedDict[bytes, Session] = OrderedDict()  # those that end first are first
        self._lock = threading.Lock()

    def begin(self, key: Key) -> tuple[str, Session]:
        """A new session, and what its cookie holds. Where there are too many, the oldest one of the
        key that has most ends: nobody can end the sessions of others by logging in often."""
        id_, now = secrets.token_urlsafe(TOKEN_BYTES), self._clock()
        made = Session(key, secrets.token_urlsafe(TOKEN_BYTES), now + self._seconds)
        with self._lock:
            self._forget(now)
            while len(self._known) >= self._max:
                del self._known[self._surplus(key)]
            self._known[_digest(id_)] = made
        return id_, made

    def of(self, request: Request) -> Session | None:
        """The session of a request; None: it has none, or it has ended."""
        with self._lock:
            self._forget(self._clock())
            return self._known.get(_digest(_id_of(request)))

    def end(self, request: Request) -> None:
        """End the session of a request, also one whose cookie counts for nothing beside another."""
        with self._lock:
            for name in (SECURE_COOKIE, COOKIE):
                self._known.pop(_digest(request.cookies.get(name, "")), None)

    def _surplus(self, own: Key) -> bytes:
        """The oldest session of the key that has most; of several such keys, of `own` first."""
        count = Counter(session.key.name for session in self._known.values())
        most = max(count, key=lambda name: (count[name], name == own.name))
        return next(id_ for id_, one in self._known.items() if one.key.name == most)

    def _forget(self, now: float) -> None:
        while self._known and next(iter(self._known.values())).ends <= now:
            self._known.popitem(last=False)


def set_cookie(response: Response, id_: str, path: str, *, secure: bool) -> None:
    """Have the browser keep a session until it is closed. `secure`: it came by https, and keeps the
    cookie from other hosts of its domain, too."""
    response.set_cookie(
        SECURE_COOKIE if secure else COOKIE,
        id_,
        path="/" if secure else path,
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def drop_cookies(response: Response, path: str) -> None:
    """Have the browser forget its session."""
    response.delete_cookie(COOKIE, path, httponly=True, samesite="strict")
    response.delete_cookie(SECURE_COOKIE, "/", secure=True, httponly=True, samesite="strict")


def _id_of(request: Request) -> str:
    return request.cookies.get(SECURE_COOKIE) or request.cookies.get(COOKIE) or ""


def _digest(id_: str) -> bytes:
    return hashlib.sha256(id_.encode("utf-8", "surrogateescape")).digest()
