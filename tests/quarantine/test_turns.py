"""A suspect has Spark for itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tidegate.engine.quarantine.turns import DEATHS_IN_A_ROW_MAX, Gate
from tidegate.rules.errors import EngineError


class Turn:
    """A turn in a thread of its own, until it is told to end."""

    error: EngineError

    def __init__(
        self, gate: Gate, *, alone: bool = False, stop: threading.Event | None = None
    ) -> None:
        self.begun, self.failed, self._end = (threading.Event() for _ in range(3))
        self._gate, self._alone, self._stop = gate, alone, stop or threading.Event()
        self._looks = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        until(lambda: self._looks > 0 or self.begun.is_set())  # it stands in its queue

    def _run(self) -> None:
        try:
            with self._gate.turn(alone=self._alone, stopped=self._stopped) as self.replaced:
                self.begun.set()
                self._end.wait(30)
        except EngineError as error:
            self.error = error
            self.failed.set()

    def end(self) -> None:
        self._end.set()
        self._thread.join(30)

    def _stopped(self) -> bool:
        """It has found that it is not free."""
        self._looks += 1
        return self._stop.is_set()

    @property
    def waits(self) -> bool:
        """Whether it goes on waiting when it looks again; one look may be under way."""
        enough = self._looks + 2
        until(lambda: self._looks >= enough or self.begun.is_set())
        return not self.begun.is_set()


def until(true: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if true():
            return
        time.sleep(0.001)
    raise AssertionError("it never came true")


def looking(clock: Callable[[], float] = time.monotonic) -> Gate:
    """A gate at which those who wait look all the time."""
    return Gate(clock, 0.001)


@pytest.mark.parametrize("look_seconds", [0.001, 60.0])
def test_a_suspect_waits_for_all_and_all_who_come_later_wait_for_it(look_seconds: float) -> None:
    """Whoever ends wakes them: they need not look."""
    gate, looks = Gate(look_seconds=look_seconds), look_seconds < 1
    first, second = Turn(gate), Turn(gate)
    assert first.begun.wait(10)
    assert second.begun.wait(10)
    suspect = Turn(gate, alone=True)
    assert not looks or suspect.waits
    later = Turn(gate)
    assert not looks or later.waits
    first.end()
    assert not looks or suspect.waits
    second.end()
    assert suspect.begun.wait(10)
    assert not looks or later.waits
    suspect.end()
    assert later.begun.wait(10)
    later.end()


def test_who_waits_for_a_suspect_runs_before_the_next_one() -> None:
    gate = looking()
    first = Turn(gate, alone=True)
    assert first.begun.wait(10)
    others = [Turn(gate), Turn(gate)]
    assert all(other.waits for other in others)
    second, third = Turn(gate, alone=True), Turn(gate, alone=True)
    assert second.waits
    first.end()
    assert all(other.begun.wait(10) for other in others)
    assert second.waits
    last = Turn(gate)
    assert last.waits
    for other in others:
        other.end()
    assert second.begun.wait(10)
    assert third.waits
    second.end()
    assert last.begun.wait(10)
    assert third.waits
    last.end()
    assert third.begun.wait(10)
    third.end()


def test_one_suspect_after_another_keeps_nobody_waiting() -> None:
    """A suspect's rows are asked in slices, each of which is a suspect."""
    gate, end, turns = Gate(), threading.Event(), [0, 0]

    def slices() -> None:
        while not end.is_set():
            with gate.turn(alone=True):
                turns[0] += 1
                time.sleep(0.01)

    suspect = threading.Thread(target=slices, daemon=True)
    suspect.start()
    while turns[0] < 30 and turns[1] < 30:
        with gate.turn(alone=False):
            turns[1] += 1
    end.set()
    suspect.join(10)
    assert turns[1] >= 10


def test_those_who_come_later_wait_five_seconds_of_thirty_for_a_suspect_that_waits() -> None:
    now = [0.0]
    gate = looking(lambda: now[0])
    long = Turn(gate)
    assert long.begun.wait(10)
    suspect = Turn(gate, alone=True)
    for second, begins in ((4, False), (6, True), (29, True), (31, False), (3_590, True)):
        assert suspect.waits
        now[0] = float(second)
        other = Turn(gate)
        assert other.waits is not begins
        now[0] = 10.0
        assert other.begun.wait(10)
        other.end()
    now[0] = 3_610.0
    last = Turn(gate)
    assert last.waits
    long.end()
    assert suspect.begun.wait(10)
    assert last.waits
    suspect.end()
    assert last.begun.wait(10)
    last.end()


def test_a_suspect_that_comes_later_holds_nobody_for_five_seconds_more() -> None:
    now = [0.0]
    gate = looking(lambda: now[0])
    long = Turn(gate)
    assert long.begun.wait(10)
    first = Turn(gate, alone=True)
    assert first.waits
    now[0] = 10.0
    second = Turn(gate, alone=True)
    assert second.waits
    now[0] = 12.0
    other = Turn(gate)
    assert other.begun.wait(10)
    for turn in (other, long, first, second):
        turn.end()


@pytest.mark.parametrize("alone", [True, False])
def test_a_stop_ends_the_waiting_for_a_turn(alone: bool) -> None:
    gate, stop = looking(), threading.Event()
    running = Turn(gate, alone=not alone)
    assert running.begun.wait(10)
    waiting = Turn(gate, alone=alone, stop=stop)
    assert waiting.waits
    stop.set()
    assert waiting.failed.wait(10)
    assert waiting.error.code == "stopped"
    after = Turn(gate)  # no suspect waits any more
    assert after.waits is not alone
    running.end()
    assert after.begun.wait(10)
    after.end()
    with gate.turn(alone=True, stopped=lambda: True):
        pass  # it need not wait


def test_what_ran_while_spark_was_ended_on_purpose_is_told_so() -> None:
    gate = Gate()
    before = Turn(gate)
    assert before.begun.wait(10)
    gate.replace()
    after = Turn(gate)
    assert after.begun.wait(10)
    assert before.replaced()
    assert not after.replaced()
    before.end()
    after.end()
    assert gate.take_blame()  # so that the next start costs nothing
    assert not gate.take_blame()


def test_one_end_of_spark_is_one_death_however_many_ran() -> None:
    gate = Gate()
    for _ in range(DEATHS_IN_A_ROW_MAX):
        gate.died()
    assert gate.take_blame()


def test_a_start_is_blamed_on_suspects_until_too_many_deaths_in_a_row() -> None:
    gate = Gate()
    assert not gate.take_blame()
    for _ in range(DEATHS_IN_A_ROW_MAX - 1):
        gate.died()
        assert gate.take_blame()
        assert not gate.take_blame()
    gate.died()
    assert not gate.take_blame()
    gate.clean()
    gate.died()
    assert gate.take_blame()
    with gate.turn(alone=False):
        assert gate.take_blame()  # what runs has not noticed yet
