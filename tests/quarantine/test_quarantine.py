"""Strikes are stored, and what ran when a process ended counts for little."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.quarantine.poison import LOST, Engine
from tests.support.memorystore import MemoryLedger, MemoryStore
from tidegate.engine.core.ports import OutageError
from tidegate.engine.core.suspect import ENDS_PER_STRIKE, STRIKES_MAX, Suspect
from tidegate.engine.quarantine.quarantine import Quarantine
from tidegate.engine.quarantine.turns import DEATHS_IN_A_ROW_MAX, Gate
from tidegate.engine.replay.memory.opening import Healthy
from tidegate.rules.errors import EngineError

ONE = Suspect("action", "pay/0", "text", "12", told="action 1 of rule pay")
OTHER = Suspect("action", "pay/0", "text", "13", told="action 1 of rule pay")
BESIDE = Suspect("condition", "well", "text", "1", told="the condition of rule well")
SLICE = Suspect("where", "t", "text", "version 3", "version 3:0-64", "`where: x` of `e`")


class AwayLedger(MemoryLedger):
    def strike(self, *given: object) -> None:  # type: ignore[override] # noqa: ARG002
        raise OutageError("store-unreachable", "the store is away", "wait")


class Away(MemoryStore):
    """Away whenever a strike is to be stored."""

    def of(self, rulebook: str, epoch: int = 0) -> MemoryLedger:  # noqa: ARG002
        return AwayLedger(self, epoch)


class Killed(BaseException):
    """The process ends here."""


def dies(engine: Engine, suspect: Suspect) -> None:
    with pytest.raises(EngineError, match="Spark is gone"), engine.quarantine.run(suspect):
        raise LOST


def is_killed(engine: Engine, *suspects: Suspect) -> None:
    """The process ends while these run, one inside the other, and another one begins."""

    def run() -> None:
        with ExitStack() as stack:
            for suspect in suspects:
                stack.enter_context(engine.quarantine.run(suspect))
            raise Killed

    with pytest.raises(Killed):
        run()
    engine.begin()


def test_g13_a_suspect_with_two_deaths_is_refused_for_its_item_and_alone_for_another() -> None:
    engine = Engine()
    for _ in range(STRIKES_MAX):
        assert engine.quarantine.refuses(ONE) is None
        dies(engine, ONE)
    assert engine.quarantine.refuses(ONE) == "action 1 of rule pay ended Spark's Java 2 times"
    assert engine.quarantine.refuses(OTHER) is None
    dies(engine, OTHER)
    assert engine.quarantine.refuses(OTHER) is not None


def test_strikes_outlive_the_process_and_end_with_a_clean_run() -> None:
    engine = Engine()
    dies(engine, ONE)
    engine.begin()
    assert engine.quarantine.of(ONE).deaths == 1
    with engine.quarantine.run(ONE):
        pass
    engine.quarantine.forgive(ONE)
    engine.begin()
    assert not engine.quarantine.of(ONE).suspected


def test_ends_of_the_whole_process_count_a_third_of_a_death() -> None:
    engine = Engine()
    for ends in range(1, STRIKES_MAX * ENDS_PER_STRIKE + 1):
        is_killed(engine, ONE)
        assert engine.quarantine.of(ONE).ends == ends
        refused = engine.quarantine.refuses(ONE) is not None
        assert refused == (ends == STRIKES_MAX * ENDS_PER_STRIKE)


def test_what_has_ended_before_the_process_is_not_counted() -> None:
    engine = Engine()
    with engine.quarantine.run(ONE):
        pass
    with pytest.raises(ValueError, match="wrong"), engine.quarantine.run(OTHER):
        raise ValueError("wrong")
    engine.begin()
    assert not engine.store.struck


def test_what_spark_is_ended_for_on_purpose_is_no_fault_of_who_runs_beside() -> None:
    class Held(Healthy):
        def overrun(self) -> tuple[bool, EngineError | None]:
            return False, LOST

    engine = Engine(health=Held())
    late = Suspect("condition", "slow", "text", "1", told="the condition of rule slow")

    def beside() -> None:
        with pytest.raises(EngineError):
            engine.quarantine.overran([late], "it took longer")
        raise LOST

    with pytest.raises(EngineError), engine.quarantine.run(ONE):
        beside()
    assert not engine.quarantine.of(ONE).suspected
    assert engine.quarantine.of(late).overruns == 1


def test_in_a_users_spark_a_task_that_nobody_can_end_is_enough() -> None:
    class Users(Healthy):
        def overrun(self) -> tuple[bool, EngineError | None]:
            return True, None

    engine = Engine(health=Users())
    engine.quarantine.overran([ONE], "it took longer")
    assert engine.quarantine.refuses(ONE) is not None


def test_all_that_ran_when_the_process_ended_are_known() -> None:
    engine = Engine()
    is_killed(engine, ONE, BESIDE)
    assert [engine.quarantine.of(one).ends for one in (ONE, BESIDE)] == [1, 1]


@pytest.mark.parametrize("happens", [dies, is_killed])
@pytest.mark.parametrize(
    ("struck", "again"), [(ONE, ONE), (ONE, OTHER), (SLICE, replace(SLICE, part="version 4:0-9"))]
)
def test_a_text_that_has_done_harm_waits_until_nothing_else_runs(
    happens: Callable[[Engine, Suspect], None], struck: Suspect, again: Suspect
) -> None:
    engine, begun = Engine(), threading.Event()
    happens(engine, struck)

    def run() -> None:
        with engine.quarantine.run(again):
            begun.set()

    with engine.quarantine.run(BESIDE):
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        assert not begun.wait(0.2)
    assert begun.wait(30)
    thread.join(30)


def test_whoever_is_stopped_while_he_waits_runs_nothing() -> None:
    gate = Gate()
    made = Quarantine(MemoryStore().of("waits").suspects, gate, Healthy(), 10, lambda: True)
    with gate.turn(alone=True), pytest.raises(EngineError, match="stopped"), made.run(ONE):
        raise AssertionError
    with made.run(ONE):
        pass
    assert not made.of(ONE).suspected


def test_a_death_has_a_suspect_unless_many_follow_one_another() -> None:
    """So that Spark's next start costs nothing: for years, with clean runs between the deaths."""
    gate = Gate()
    made = Quarantine(MemoryStore().of("poison").suspects, gate, Healthy(), 1_000)
    for _ in range(2 * DEATHS_IN_A_ROW_MAX):
        with pytest.raises(EngineError), made.run(ONE):
            raise LOST
        assert gate.take_blame()
        with made.run(BESIDE):
            pass


def test_a_death_while_the_store_is_away_is_one_of_spark_and_counts_all_the_same() -> None:
    engine = Engine(Away())
    dies(engine, ONE)
    assert engine.quarantine.of(ONE).deaths == 1


def test_what_two_strikes_quarantine_can_be_enabled_by_its_rule_alone() -> None:
    engine = Engine()
    seal = Suspect("seal", "pay/seal", "out", "12", told="the seal of entry 12 on out")
    for _ in range(STRIKES_MAX):
        assert engine.quarantine.rules(["pay", "well"]) == frozenset()
        dies(engine, seal)
    assert engine.quarantine.rules(["pay", "well"]) == {"pay"}
    engine.quarantine.release(["well"])
    assert engine.quarantine.refuses(seal) is not None
    engine.quarantine.release(["pay"])
    assert engine.quarantine.refuses(seal) is None


def test_a_strike_counts_also_where_the_store_is_away_when_it_happens() -> None:
    engine = Engine()
    engine.store = Away()
    engine.begin()
    for _ in range(STRIKES_MAX):
        assert engine.quarantine.refuses(ONE) is None
        dies(engine, ONE)
    assert engine.quarantine.refuses(ONE) is not None


def test_what_spark_is_ended_for_is_said_before_the_store_is_asked() -> None:
    """Its answer may take its time, and may be an outage: others must not be blamed meanwhile."""

    class Held(Healthy):
        def overrun(self) -> tuple[bool, EngineError | None]:
            return False, LOST

    engine = Engine(health=Held())
    engine.store = Away()
    engine.begin()
    late = Suspect("condition", "slow", "text", "1", told="the condition of rule slow")

    def beside() -> None:
        with pytest.raises(OutageError):
            engine.quarantine.overran([late], "it took longer")
        raise LOST

    with pytest.raises(EngineError), engine.quarantine.run(ONE):
        beside()
    assert not engine.quarantine.of(ONE).suspected


def test_a_java_that_ends_while_the_engine_is_stopped_is_nobodys_fault() -> None:
    """A service manager sends its signal to the engine and to its Java alike."""
    engine = Engine()
    engine.begin(stopped=True)
    dies(engine, ONE)
    engine.begin()
    assert not engine.quarantine.of(ONE).suspected
