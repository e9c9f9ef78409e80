"""A condition that ends Java or outlasts its deadline takes no other rule's firings with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from tests.quarantine.poison import Engine, PoisonConditions, Spark
from tidegate.engine.core.ports import StoppedError
from tidegate.engine.core.values import Answers, Failure, Question
from tidegate.engine.quarantine.conditions import WatchedConditions
from tidegate.rules.errors import Place
from tidegate.rules.model import Condition


def questions(rules: str, bucket: str = "1") -> list[Question]:
    """A question for each letter, of a firing of its own."""
    return [
        Question(
            rule,
            Condition(f"{rule} > 0", False, Place("b.yaml", 1, 1, f"rules.{rule}.if")),
            (),
            frozenset(),
            pa.table({"firing_id": [f"{rule}{bucket}"]}),
        )
        for rule in rules
    ]


def hold(engine: Engine, conditions: PoisonConditions, asked: Sequence[Question]) -> Answers:
    def call() -> Answers:
        return WatchedConditions(conditions, engine.quarantine).hold(asked)

    return engine.through(call)


def failed(said: Answers) -> set[str]:
    return {asked.rule for asked in said.failed}


def test_healthy_conditions_are_asked_in_one_job() -> None:
    conditions = PoisonConditions(Spark(), {})
    assert hold(Engine(), conditions, questions("abc")).held == {"a1", "b1", "c1"}
    assert conditions.jobs == [("a", "b", "c")]


def test_a_stop_asks_no_further_condition() -> None:
    """Queries are asked one after the other."""
    conditions, asked = PoisonConditions(Spark(), {}), questions("abcd")
    queries = [replace(q, condition=replace(q.condition, query=True)) for q in asked]
    watched = WatchedConditions(conditions, Engine().quarantine, lambda: len(conditions.jobs) >= 2)
    with pytest.raises(StoppedError):
        watched.hold(queries)
    assert conditions.jobs == [("a",), ("b",)]
    with pytest.raises(StoppedError):
        watched.hold(asked)
    with pytest.raises(StoppedError):
        watched.sample("SELECT 1", {})
    assert len(conditions.jobs) == 2


@pytest.mark.parametrize("kind", ["death", "overrun"])
def test_g13_the_one_that_harms_spark_is_told_and_its_firings_are_dead(kind: str) -> None:
    spark = Spark()
    engine, conditions = Engine(), PoisonConditions(spark, {"b": kind})
    said = hold(engine, conditions, questions("abc"))
    assert said.held == {"a1", "c1"}
    assert failed(said) == {"b"}
    [why] = said.failed.values()
    assert "the condition of rule b" in why.error
    assert "2 times" in why.error
    assert why.lasting
    assert why.quarantined
    assert (spark.deaths, spark.overruns) == ((2, 0) if kind == "death" else (0, 2))
    assert ("a", "c") not in conditions.jobs or kind == "death"


def test_conditions_of_others_are_asked_together_again_in_the_next_bucket() -> None:
    engine, conditions = Engine(), PoisonConditions(Spark(), {"b": "overrun"})
    hold(engine, conditions, questions("abc"))
    conditions.jobs.clear()
    said = hold(engine, conditions, questions("abc", "2"))
    assert conditions.jobs == [("a", "c"), ("b",)]
    assert said.held == {"a2", "c2"}
    assert failed(said) == {"b"}


def test_a_condition_that_always_ends_java_is_asked_no_more_until_it_is_released() -> None:
    spark = Spark()
    engine, conditions = Engine(most=4), PoisonConditions(spark, {"b": "death"})
    for bucket in "123456":
        assert failed(hold(engine, conditions, questions("b", bucket))) == {"b"}
    assert spark.deaths == 4
    engine.quarantine.release(["a"])
    assert failed(hold(engine, conditions, questions("b", "7"))) == {"b"}
    assert spark.deaths == 4
    engine.quarantine.release(["b"])
    conditions.does = {}
    assert hold(engine, conditions, questions("b", "8")).held == {"b8"}


def test_one_death_with_others_proves_nothing() -> None:
    """Java was killed by somebody else: whoever ran then runs once more, and is no suspect."""
    spark = Spark()
    engine, conditions = Engine(), PoisonConditions(spark, {"a": "death"})

    class Once(PoisonConditions):
        def hold(self, asked: Sequence[Question]) -> Answers:
            if spark.deaths:
                self.does = {}
            return super().hold(asked)

    once = Once(spark, conditions.does)
    assert hold(engine, once, questions("abc")).held == {"a1", "b1", "c1"}
    assert spark.deaths == 1
    assert not engine.store.struck


@pytest.mark.parametrize("kind", ["death", "overrun"])
def test_g13_a_sample_that_harms_spark_fails_for_good(kind: str) -> None:
    engine, conditions = Engine(), PoisonConditions(Spark(), {"SELECT 1": kind})
    watched = WatchedConditions(conditions, engine.quarantine)
    found = engine.through(lambda: watched.sample("SELECT 1", {"t": 3}))
    assert isinstance(found, Failure)
    assert found.lasting
    assert "`SELECT 1`" in found.error
    assert watched.sample("SELECT 2", {"t": 3}).as_py() == 7  # type: ignore[union-attr]


def test_a_redriven_entry_asks_a_condition_that_its_bucket_has_given_up() -> None:
    spark = Spark()
    engine, conditions = Engine(), PoisonConditions(spark, {"b": "death"})
    assert failed(hold(engine, conditions, questions("b"))) == {"b"}
    conditions.does = {}
    assert failed(hold(engine, conditions, questions("b"))) == {"b"}  # not asked
    again = [replace(one, entry=12) for one in questions("b")]
    assert hold(engine, conditions, again).held == {"b1"}


def test_g13_an_edited_condition_is_asked_again() -> None:
    engine, conditions = Engine(most=2), PoisonConditions(Spark(), {"b": "death"})
    assert {q.rule for q in hold(engine, conditions, questions("b")).failed} == {"b"}
    conditions.does = {}
    assert {q.rule for q in hold(engine, conditions, questions("b", "2")).failed} == {"b"}
    (asked,) = questions("b", "3")
    edited = replace(asked, condition=replace(asked.condition, text="b > 1"))
    assert hold(engine, conditions, [edited]).held == {"b3"}


def test_g13_a_query_that_ends_java_strikes_no_other_condition() -> None:
    spark = Spark()
    engine, conditions = Engine(), PoisonConditions(spark, {"q": "death"})
    (query,) = questions("q")
    query = replace(query, condition=replace(query.condition, query=True))
    said = hold(engine, conditions, [query, *questions("ab")])
    assert (said.held, {q.rule for q in said.failed}) == ({"a1", "b1"}, {"q"})
    assert conditions.jobs == [("a", "b"), ("q",), ("a", "b"), ("q",), ("a", "b")]


def test_g13_conditions_that_were_in_time_are_no_suspects() -> None:
    class SomeLate(PoisonConditions):
        def hold(self, asked: Sequence[Question]) -> Answers:
            late = [q for q in asked if q.rule == "b"]
            others = [q for q in asked if q.rule != "b"]
            self.jobs.append(tuple(q.rule for q in asked))
            held = frozenset(q.relation["firing_id"][0].as_py() for q in others)
            return Answers(held, {q.asked: Failure("late", overrun=True) for q in late})

    engine, conditions = Engine(), SomeLate(Spark(), {})
    assert hold(engine, conditions, questions("abc")).held == {"a1", "c1"}
    assert conditions.jobs == [("a", "b", "c"), ("b",)]
    conditions.jobs.clear()
    hold(engine, conditions, questions("abc", "2"))
    assert conditions.jobs == [("a", "c"), ("b",)]


def test_g13_a_sample_that_is_given_up_at_one_version_is_taken_at_the_next() -> None:
    engine, conditions = Engine(), PoisonConditions(Spark(), {"SELECT 1": "death"})
    watched = WatchedConditions(conditions, engine.quarantine)
    assert isinstance(engine.through(lambda: watched.sample("SELECT 1", {"t": 3})), Failure)
    conditions.does = {}
    assert isinstance(watched.sample("SELECT 1", {"t": 3}), Failure)
    assert watched.sample("SELECT 1", {"t": 4}).as_py() == 7  # type: ignore[union-attr]
