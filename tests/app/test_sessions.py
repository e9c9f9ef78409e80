"""A Spark that has ended is started again, so often and by one engine only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.engine.app.sessions import HOUR_SECONDS, Lifecycle, Sessions
from tidegate.engine.quarantine.turns import Gate
from tidegate.rules.errors import EngineError

GONE = EngineError("spark-lost", "Spark is gone: killed", "run again")


class Java:
    """Starts sessions that say what became of them."""

    def __init__(self, *, active: bool = False) -> None:
        self.started: list[Any] = []
        self.with_java: list[bool] = []  # of the sessions that were forgotten
        self.runs = False  # whether Java goes on where its session is of no use
        self.lifecycle = Lifecycle(
            active=lambda: SimpleNamespace() if active else None,  # type: ignore[arg-type]
            start=self.start,
            check=lambda _: None,
            watch=self.watch,
            why_lost=lambda _: None if self.runs else GONE,
            discard=self.discard,
            stop=self.stop,
        )

    def start(self, *_: object) -> Any:
        self.started.append(SimpleNamespace(forgotten=False, stopped=False, watched=False))
        return self.started[-1]

    def watch(self, one: Any) -> None:
        one.watched = True

    def discard(self, one: Any, *, with_java: bool) -> None:
        one.forgotten = True
        self.with_java.append(with_java)

    def stop(self, one: Any) -> None:
        one.stopped = True


def test_engines_that_lose_one_session_get_one_other() -> None:
    java = Java()
    shared = Sessions(None, {}, java.lifecycle)
    first = shared.get()
    assert shared.get() is first
    second = shared.again(first, GONE, 1)
    assert shared.again(first, GONE, 1) is second  # the other engine, later
    assert [one.forgotten for one in java.started] == [True, False]
    assert java.with_java == [False]
    shared.close()
    assert [one.stopped for one in java.started] == [False, True]


def test_there_are_so_many_in_an_hour() -> None:
    java, now = Java(), [1000.0]
    shared = Sessions(None, {}, java.lifecycle, clock=lambda: now[0])
    last = shared.get()
    for _ in range(2):
        last = shared.again(last, GONE, 2)
        now[0] += 60
    with pytest.raises(EngineError) as refused:
        shared.again(last, GONE, 2)
    assert refused.value is GONE
    now[0] = 1000.0 + HOUR_SECONDS
    shared.again(last, GONE, 2)
    assert len(java.started) == 4


def test_a_users_session_is_not_started_again() -> None:
    java, users = Java(), SimpleNamespace(stopped=False)
    shared = Sessions(users, {}, java.lifecycle)  # type: ignore[arg-type]
    assert shared.get() is users  # type: ignore[comparison-overlap]
    with pytest.raises(EngineError):
        shared.again(users, GONE, 3)  # type: ignore[arg-type]
    shared.close()
    assert not users.stopped
    assert not java.started


def test_g13_a_start_whose_suspect_is_known_costs_nothing() -> None:
    java, gate = Java(), Gate()
    shared = Sessions(None, {}, java.lifecycle, gate)
    last = shared.get()
    for _ in range(5):
        gate.died()
        last = shared.again(last, GONE, 1)
    last = shared.again(last, GONE, 1)  # nobody is suspected of this one
    with pytest.raises(EngineError):
        shared.again(last, GONE, 1)
    assert len(java.started) == 7
    gate.died()
    with pytest.raises(EngineError):
        shared.again(last, GONE, 0)  # never, it says


def test_a_session_that_is_active_already_is_the_users() -> None:
    """It is neither watched, whose end is to kill Java, nor started again, nor stopped."""
    java = Java(active=True)
    shared = Sessions(None, {}, java.lifecycle)
    users = shared.get()
    with pytest.raises(EngineError):
        shared.again(users, GONE, 3)
    shared.close()
    assert [(one.watched, one.stopped) for one in java.started] == [(False, False)]


def test_g13_a_java_whose_slots_are_held_ends_with_its_session() -> None:
    """Its tasks end only with it; one that has ended by itself is only forgotten."""
    java = Java()
    shared = Sessions(None, {}, java.lifecycle)
    last = shared.get()
    for java.runs in (True, False):
        last = shared.again(last, GONE, 2)
    assert java.with_java == [True, False]
    assert all(one.watched for one in java.started)
