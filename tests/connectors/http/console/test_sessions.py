"""Sessions: how long they last, and how many there are."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request

from tidegate.connectors.http.console.sessions import COOKIE, SECURE_COOKIE, Sessions
from tidegate.connectors.http.credentials import ANYBODY, Key

ADA, BOB = Key("ada"), Key("bob")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def with_cookies(cookies: Mapping[str, str]) -> Request:
    text = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return Request({"type": "http", "headers": [(b"cookie", text.encode())]})


def test_a_session_ends_after_its_minutes_used_or_not() -> None:
    clock = Clock()
    sessions = Sessions(10, 2, clock)
    id_, made = sessions.begin(ADA)
    request = with_cookies({COOKIE: id_})
    for clock.now in (0.0, 60.0, 119.9):
        assert sessions.of(request) is made
    clock.now = 120.0
    assert sessions.of(request) is None
    clock.now = 0.0
    assert sessions.of(request) is None  # it is forgotten


def test_the_oldest_ends_where_there_are_too_many() -> None:
    sessions = Sessions(3, 10, Clock())
    ids = [sessions.begin(ADA)[0] for _ in range(5)]
    assert [sessions.of(with_cookies({COOKIE: i})) is not None for i in ids] == [False] * 2 + [
        True
    ] * 3


def test_who_logs_in_often_ends_the_own_sessions() -> None:
    sessions = Sessions(3, 10, Clock())
    of_bob = with_cookies({COOKIE: sessions.begin(BOB)[0]})
    of_ada = [with_cookies({COOKIE: sessions.begin(ADA)[0]}) for _ in range(5)]
    assert sessions.of(of_bob) is not None
    assert [sessions.of(one) is not None for one in of_ada] == [False] * 3 + [True] * 2
    sessions.begin(Key("eve"))
    assert sessions.of(of_bob) is not None
    assert [sessions.of(one) is not None for one in of_ada] == [False] * 4 + [True]


def test_both_cookies_of_a_request_end() -> None:
    sessions = Sessions(10, 10, Clock())
    plain, secure = sessions.begin(ADA)[0], sessions.begin(ADA)[0]
    sessions.end(with_cookies({COOKIE: plain, SECURE_COOKIE: secure}))
    assert sessions.of(with_cookies({COOKIE: plain})) is None
    assert sessions.of(with_cookies({SECURE_COOKIE: secure})) is None


def test_no_two_sessions_share_an_id_or_a_token() -> None:
    sessions = Sessions(100, 10, Clock())
    made = [sessions.begin(BOB) for _ in range(50)]
    assert len({id_ for id_, _ in made} | {session.token for _, session in made}) == 100
    assert made[0][1].token not in repr(made[0][1])


def test_the_cookie_of_https_comes_first() -> None:
    """A host beside this one cannot set it, nor put another in its place."""
    sessions = Sessions(10, 10, Clock())
    own, planted = sessions.begin(ADA)[0], sessions.begin(ANYBODY)[0]
    found = sessions.of(with_cookies({COOKIE: planted, SECURE_COOKIE: own}))
    assert found is not None
    assert found.key is ADA
    sessions.end(with_cookies({SECURE_COOKIE: own}))
    assert sessions.of(with_cookies({SECURE_COOKIE: own})) is None
    assert sessions.of(with_cookies({COOKIE: planted})) is not None
