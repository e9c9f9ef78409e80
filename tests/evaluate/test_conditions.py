"""Expressions of the list are answered without Spark; whatever else is asked goes on to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from tests.support.rulebooks import HERE
from tidegate.engine.core.values import Answers, Failure, Question
from tidegate.engine.evaluate.conditions import LocalConditions
from tidegate.rules.model import Condition

RELATION = pa.table({"firing_id": ["a", "a", "b"], "k": [1, 1, 2], "n": [5, 7, None]})


class Spark:
    """Remembers the texts it was asked, says that all firings hold, and fails for `boom()`."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def hold(self, questions: Sequence[Question]) -> Answers:
        assert questions
        said = Answers()
        for question in questions:
            text = question.condition.text
            self.asked.append(text)
            ids = frozenset(question.relation["firing_id"].to_pylist())
            failed = {question.asked: Failure("it raised")} if "boom" in text else {}
            said = said.also(Answers(frozenset() if failed else ids, failed))
        return said

    def sample(self, text: str, pinned: Mapping[str, int]) -> pa.Scalar | Failure | None:
        return pa.scalar(f"{text} {dict(pinned)}")


def question(text: str, *, query: bool = False, asks: str = "if", rule: str = "r") -> Question:
    condition = Condition(text, query, HERE)
    return Question(rule, condition, ("k",), frozenset(), RELATION, asks=asks)


def test_g30_an_expression_of_the_list_costs_no_spark_job() -> None:
    spark = Spark()
    said = LocalConditions(spark).hold(
        [
            question("sum(n) > 10"),
            question("k = 2 and count(n) = 0", rule="s"),
            question("max(n) = 7", asks="fire"),
            question("max(n) is null", asks="rearm"),
        ]
    )
    assert said == Answers(held=frozenset("ab"), fires=frozenset("a"), rearms=frozenset("b"))
    assert spark.asked == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("SELECT firing_id FROM event", True),
        ("sum(n) > 10", True),
        ("stddev(n) > 1", False),
        ("1 / count(n) > 0", False),  # of b there is none
        ("n > 1", False),
    ],
)
def test_g30_what_arrow_cannot_decide_is_asked_of_spark(text: str, query: bool) -> None:
    spark = Spark()
    said = LocalConditions(spark).hold([question("sum(n) > 99"), question(text, query=query)])
    assert (said.held, spark.asked) == (frozenset("ab"), [text])


def test_a_question_that_fails_keeps_its_failure_and_the_others_their_answers() -> None:
    failing = question("boom()", rule="s")
    said = LocalConditions(Spark()).hold([question("k = 1"), failing])
    assert said.held == {"a"}
    assert said.failed == {failing.asked: Failure("it raised")}


def test_samples_are_asked_of_spark() -> None:
    assert LocalConditions(Spark()).sample("SELECT 1", {"t": 3}) == pa.scalar("SELECT 1 {'t': 3}")
