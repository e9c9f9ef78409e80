"""A Spark that has ended is started again, so often and by one engine only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.engine.app import sessions as module
from tidegate.engine.app.sessions import HOUR_SECONDS, Sessions
from tidegate.engine.quarantine.turns import Gate
from tidegate.rules.errors import EngineError

GONE = EngineError("spark-lost", "Spark is gone: killed", "run again")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sessions that were started; those that were forgotten say so."""
    found: list[Any] = []

    def start(*_: object) -> Any:
        found.append(SimpleNamespace(forgotten=False, stopped=False, watched=False))
        return found[-1]

    monkeypatch.setattr(module, "start_session", start)
    monkeypatch.setattr(module, "check_session", lambda _: None)
    monkeypatch.setattr(module, "watched", lambda one: setattr(one, "watched", True))
    monkeypatch.setattr(module, "why_lost", lambda _: GONE)

    def discard(one: Any, *, with_java: bool) -> None:
        one.forgotten = not with_java

    monkeypatch.setattr(module, "discard_session", discard)
    monkeypatch.setattr(module, "stop_session", lambda one: setattr(one, "stopped", True))
    monkeypatch.setattr(module, "SparkSession", SimpleNamespace(getActiveSession=lambda: None))
    return found


def test_engines_that_lose_one_session_get_one_other(started: list[Any]) -> None:
    shared = Sessions(None, {})
    first = shared.get()
    assert shared.get() is first
    second = shared.again(first, GONE, 1)
    assert shared.again(first, GONE, 1) is second  # the other engine, later
    assert [one.forgotten for one in started] == [True, False]
    shared.close()
    assert [one.stopped for one in started] == [False, True]


def test_there_are_so_many_in_an_hour(started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    shared = Sessions(None, {})
    last = shared.get()
    for _ in range(2):
        last = shared.again(last, GONE, 2)
        now[0] += 60
    with pytest.raises(EngineError) as refused:
        shared.again(last, GONE, 2)
    assert refused.value is GONE
    now[0] = 1000.0 + HOUR_SECONDS
    shared.again(last, GONE, 2)
    assert len(started) == 4


def test_a_users_session_is_not_started_again(started: list[Any]) -> None:
    users: Any = SimpleNamespace(stopped=False)
    shared = Sessions(users, {})
    assert shared.get() is users
    with pytest.raises(EngineError):
        shared.again(users, GONE, 3)
    shared.close()
    assert not users.stopped
    assert not started


def test_g13_a_start_whose_suspect_is_known_costs_nothing(
    started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    monkeypatch.setattr(module, "GATE", gate)
    shared = Sessions(None, {})
    last = shared.get()
    for _ in range(5):
        gate.died()
        last = shared.again(last, GONE, 1)
    last = shared.again(last, GONE, 1)  # nobody is suspected of this one
    with pytest.raises(EngineError):
        shared.again(last, GONE, 1)
    assert len(started) == 7
    gate.died()
    with pytest.raises(EngineError):
        shared.again(last, GONE, 0)  # never, it says


def test_a_session_that_is_active_already_is_the_users(
    started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither watched, whose end is to kill Java, nor started again, nor stopped."""
    active = SimpleNamespace(getActiveSession=lambda: SimpleNamespace())
    monkeypatch.setattr(module, "SparkSession", active)
    shared = Sessions(None, {})
    users = shared.get()
    with pytest.raises(EngineError):
        shared.again(users, GONE, 3)
    shared.close()
    assert [(one.watched, one.stopped) for one in started] == [(False, False)]


def test_g13_a_java_whose_slots_are_held_ends_with_its_session(
    started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks end only with it; one that has ended by itself is only forgotten."""
    ended: list[bool] = []
    monkeypatch.setattr(module, "discard_session", lambda _, *, with_java: ended.append(with_java))
    shared = Sessions(None, {})
    last = shared.get()
    for runs in (True, False):
        monkeypatch.setattr(module, "why_lost", lambda _, runs=runs: None if runs else GONE)
        last = shared.again(last, GONE, 2)
    assert ended == [True, False]
    assert all(one.watched for one in started)
