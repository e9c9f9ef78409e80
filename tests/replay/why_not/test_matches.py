"""The rung `where` of a rule with a `where`: which matches there were, and which term failed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.replay.why_not.misses import book, line
from tests.replay.why_not.runs import Line, at, run
from tidegate.engine.replay.why_not.evidence import Rung
from tidegate.engine.replay.why_not.ladder import ladder

PAIR = "x:(a) ; y:(b) within 10 min"


def last(on: str, where: str, lines: list[Line], more: str = "", until: float = 500) -> Rung:
    quoted = f"where: '{where}'{', ' + more if more else ''}"
    evidence = run(book(on, quoted), lines, 900)
    return ladder(evidence, "r", {"k": 7}, at(until))[-1]


def test_the_term_that_failed_is_told_with_its_values() -> None:
    found = last(PAIR, "y.v > x.v and y.v > 2", [line("a", 10, v=5), line("b", 20, v=3)])
    assert (found.name, found.ok) == ("where", False)
    assert found.sentence == (
        "There is 1 match of `x:(a) ; y:(b) within 10 min` for k 7, between 09:00:10 and 09:00:20,"
        " but the rule's `where` is not true of it: `y.v > x.v` is not true (y.v is 3, x.v is 5)."
    )
    assert found.evidence["failed"] == ["y.v > x.v"]
    assert found.evidence["values"] == {"y.v": 3, "x.v": 5}
    assert found.evidence["terms"] == [
        {"text": "y.v > x.v", "true_of": 0},
        {"text": "y.v > 2", "true_of": 1},
    ]


def test_of_several_matches_the_nearest_is_told() -> None:
    lines = [line("a", 10, v=5), line("a", 20, v=9), line("b", 30, v=7), line("b", 40, v=1)]
    found = last(PAIR, "y.v > 10 and y.v > x.v", lines)
    assert "There are 4 matches" in found.sentence
    assert "is true of none" in found.sentence
    assert found.evidence["failed"] == ["y.v > 10"]
    assert found.evidence["values"] == {"y.v": 7}  # of a at 10 and b at 30: but one term failed
    candidates = [(each["start"], each["end"]) for each in found.evidence["candidates"]]
    assert candidates == [
        (at(first), at(then)) for first, then in ((10, 30), (20, 30), (10, 40), (20, 40))
    ]


@pytest.mark.parametrize(
    ("on", "where", "lines", "values"),
    [
        # null is not true, and an absent part of an `or` is null
        (PAIR, "y.v > x.v", [line("a", 10), ("b", 20, {"k": 7})], {"y.v": None, "x.v": 1}),
        ("(x:(a) or z:(c)) ; y:(b) within 10 min", "z.v > 0",
         [line("a", 10), line("b", 20)], {"z.v": None}),
        # named by the event type; negated parts see all
        ("not(c)[a, b] within 10 min", "a.v = b.v",
         [line("a", 10, v=1), line("b", 20, v=2)], {"a.v": 1, "b.v": 2}),
        ("any(2, a, b, c) within 10 min", "a.v > 4", [line("a", 10), line("b", 20)], {"a.v": 1}),
    ],
)  # fmt: skip
def test_values_are_those_of_the_named_parts(
    on: str, where: str, lines: list[Line], values: dict[str, Any]
) -> None:
    found = last(on, where, lines)
    assert (found.name, found.ok) == ("where", False), found
    assert found.evidence["values"] == values


def test_what_no_operator_lets_through_is_no_match() -> None:
    lines = [line("a", 10, v=5), line("b", 900, v=3)]
    assert last("x:(a) ; y:(b) within 1 min", "y.v > x.v", lines, until=900).name == "parts"


def test_a_match_that_the_context_did_not_choose_is_the_contexts() -> None:
    lines = [line("a", 10, v=1), line("b", 20, v=2), line("b", 30, v=3)]
    evidence = run(book(PAIR, "where: y.v > x.v, context: chronicle"), lines, 900)
    rungs = ladder(evidence, "r", {"k": 7}, at(30), at(25))
    assert (rungs[-1].name, rungs[4].ok) == ("context", True)
    assert "`a` of 09:00:10 was used up by the detection at 09:00:20" in rungs[-1].sentence


def test_a_match_of_another_key_or_time_is_not_told() -> None:
    lines = [line("a", 10, 8, v=1), line("b", 20, 8, v=2), line("a", 10, v=5), line("b", 20, v=3)]
    evidence = run(book(PAIR, "where: y.v > x.v"), lines, 900)
    assert ladder(evidence, "r", {"k": 7}, at(500))[-1].evidence["matches"] == 1
    assert ladder(evidence, "r", {"k": 8}, at(500))[-1].ok
    assert ladder(evidence, "r", {"k": 7}, at(500), at(400))[-1].name == "parts"


def test_many_occurrences_are_bounded() -> None:
    lines = [line("a", n / 10, v=5) for n in range(300)]
    lines += [line("b", 100 + n / 10, v=3) for n in range(300)]
    found = last(PAIR, "y.v > x.v", lines)
    assert found.name == "where"
    assert 1_000 <= found.evidence["matches"] <= 10_000
    assert len(found.evidence["candidates"]) == 10


def test_a_part_that_some_matches_lack_is_null_in_these() -> None:
    lines = [line("a", 10), line("b", 20), line("c", 30, v=1)]
    found = last("a ; (y:(b) or z:(c)) within 10 min", "z.v > 5", lines)
    values = [each["values"] for each in found.evidence["candidates"]]
    assert values == [{"z.v": None}, {"z.v": 1}]
