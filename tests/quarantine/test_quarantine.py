"""Strikes are stored, and what ran when a process ended counts for little."""

from __future__ import annotations

import pytest

from tests.quarantine.poison import LOST, Engine
from tests.support.quarantine import Healthy
from tidegate.engine.suspect import ENDS_PER_STRIKE, STRIKES_MAX, Suspect
from tidegate.rules.errors import EngineError

ONE = Suspect("action", "pay/0", "text", "12", told="action 1 of rule pay")
OTHER = Suspect("action", "pay/0", "text", "13", told="action 1 of rule pay")


class Killed(BaseException):
    """The process ends here."""


def dies(engine: Engine, suspect: Suspect) -> None:
    with pytest.raises(EngineError, match="Spark is gone"), engine.quarantine.run(suspect):
        raise LOST


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
        with pytest.raises(Killed), engine.quarantine.run(ONE):
            raise Killed
        engine.begin()
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
