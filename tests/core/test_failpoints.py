"""Failpoints fail where and when they are told to, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.engine.core import failpoints
from tidegate.engine.core.failpoints import (
    COMMITTED,
    EXIT_CODE,
    VARIABLE,
    FailpointError,
    arm,
    failpoint,
)
from tidegate.engine.store import open_store
from tidegate.rules.errors import EngineError


@pytest.fixture(autouse=True)
def disarm() -> Iterator[None]:
    yield
    arm("")


def passes(name: str, count: int) -> list[int]:
    """The numbers of the passes that raise."""
    raised = []
    for n in range(1, count + 1):
        try:
            failpoint(name)
        except FailpointError:
            raised.append(n)
    return raised


def test_unarmed_points_let_everything_pass() -> None:
    assert passes("commit.before", 3) == []


def test_an_armed_point_fails_at_its_pass_only() -> None:
    arm("first=raise, third=raise:3")
    assert passes("first", 4) == [1]
    assert passes("third", 4) == [3]
    assert passes("other", 4) == []


def test_a_point_may_fail_at_several_passes() -> None:
    arm("first=raise:2x3")
    assert passes("first", 6) == [2, 3, 4]


def test_an_answer_is_lost_after_the_next_commit(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/store.db", create=True) as store:
        arm("first=late")
        failpoint("first")
        with pytest.raises(FailpointError, match=COMMITTED):
            store.of("bank").controls.ask("enable", "a")
        store.of("bank").controls.ask("enable", "b")
        assert [asked.subject for asked in store.of("bank").controls.pending()] == ["a", "b"]


def test_a_point_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(failpoints, "_wait", slept.append)
    arm("first=delay:2")
    assert passes("first", 3) == []
    assert slept == [failpoints.DELAY_SECONDS]


def test_arming_again_forgets_what_was_armed() -> None:
    arm("first=raise")
    arm("second=raise")
    assert passes("first", 1) == []


@pytest.mark.parametrize(
    "bad", ["first", "first=stop", "first=exit:0", "first=exit:x", "=exit", "first=exitx0"]
)
def test_what_cannot_be_read_is_refused(bad: str) -> None:
    with pytest.raises(EngineError, match=f"{VARIABLE}: '{bad}' is no failpoint"):
        arm(f"fine=raise,{bad}")


def test_exit_ends_the_process_without_clean_up() -> None:
    script = (
        "from tidegate.engine.core.failpoints import failpoint\n"
        "try:\n"
        "    failpoint('point'); print('first', flush=True); failpoint('point')\n"
        "finally:\n"
        "    print('clean-up', flush=True)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, VARIABLE: "point=exit:2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == EXIT_CODE
    assert ended.stdout == "first\n"
