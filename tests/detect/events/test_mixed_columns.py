"""Columns of one name that differ in type between event types: what is taken of them is the same
however the history is cut, as a step may have the rows of one event type alone."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest

from tests.reference.evaluate import Line
from tests.support.history import run
from tidegate import rules
from tidegate.rules.errors import InputError
from tidegate.rules.model import Rulebook

SECOND = 1_000_000
CUTS = [time * SECOND + SECOND // 2 for time in range(1, 4)]
SAFE = [
    ("tinyint", "bigint", (1, 2, 3, 1)),
    ("int", "smallint", (1, 2, 3, 1)),
    ("decimal(10,2)", "decimal(12,2)", ("0.10", "0.20", "0.30", "0.10")),
    ("double", "float", (0.1, 0.25, 0.7, 0.2)),
]


def book(one: str, other: str, rule: str) -> Rulebook:
    events = (
        f'{{a: {{signal: {{v: "{one}"}}}}, b: {{signal: {{v: "{other}"}}}}, c: {{signal: {{}}}}}}'
    )
    return rules.load(f"rulebook: r\nevents: {events}\nrules: {{r: {rule}}}")


def over(fire: str) -> str:
    return f"{{on: {{over: {{window: 10 s, of: [a, b], fire: {fire}}}}}}}"


def told(of: Rulebook, values: tuple[Any, ...]) -> set[tuple[int, ...]]:
    """The firings, by the instants of their constituents, under every way to cut the history."""
    kinds = [event.fields["v"] for event in (of.events["a"], of.events["b"])]
    lines: list[Line] = [
        (name, time * SECOND, {"v": Decimal(v) if "decimal" in kind else v})
        for time, (name, kind, v) in enumerate(
            zip("abab", (kinds * 2), values, strict=True), start=1
        )
    ]
    lines.append(("c", 5 * SECOND, {}))
    found = {
        tuple(run(of, lines, list(cuts)))
        for count in range(len(CUTS) + 1)
        for cuts in combinations(CUTS, count)
    }
    (firings,) = found  # one answer
    times = [[each["time"] for each in json.loads(line)["constituents"]] for line in firings]
    return {tuple(each) for each in times}


@pytest.mark.parametrize(("one", "other", "values"), SAFE)
@pytest.mark.parametrize("asked", ["sum(v)", "avg(v)", "max(v)", "min(v)"])
def test_types_that_go_together_are_the_same_in_every_cut(
    one: str, other: str, values: tuple[Any, ...], asked: str
) -> None:
    for first, second in ((one, other), (other, one)):
        least = values[0]
        assert told(book(first, second, over(f"{asked} >= {least}e0")), values)


@pytest.mark.parametrize("fire", ["max(v) > avg(v)", "min(v) < avg(v)"])
def test_an_extreme_of_floats_is_a_double(fire: str) -> None:
    """As the average is that it is compared with, where a step has floats alone, too."""
    (one, other, values) = SAFE[-1]
    for first, second in ((one, other), (other, one)):
        assert told(book(first, second, over(fire)), values) == {(1, 2)}


@pytest.mark.parametrize(("one", "other", "values"), SAFE)
def test_a_label_is_compared_the_same_in_every_cut(
    one: str, other: str, values: tuple[Any, ...]
) -> None:
    on = '"(x:(a) or x:(b)) ; c within 10 s"'
    for first, second in ((one, other), (other, one)):
        of = book(first, second, f"{{on: {on}, context: unrestricted, where: x.v > {values[0]}}}")
        assert {times[0] for times in told(of, values)} >= {2, 3}


def test_a_bigint_beside_a_decimal_has_the_digits_that_spark_gives_it() -> None:
    fits = book("bigint", "decimal(17,8)", over("sum(v) > 3"))
    assert told(fits, (1, "2.5", 3, "4"))
    with pytest.raises(InputError, match="do not compare: bigint, decimal"):
        book("bigint", "decimal(38,19)", over("sum(v) > 3"))
    with pytest.raises(InputError, match="may take 39 digits"):
        book("bigint", "decimal(18,9)", over("sum(v) > 3"))


@pytest.mark.parametrize("asked", ["sum(v) > 0.3", "avg(v) > 0.3", "max(v) > 0.3"])
def test_exact_numbers_beside_doubles_are_refused(asked: str) -> None:
    """Doubles 0.1 + 0.2 are above 0.3, and decimals are not."""
    for exact in ("decimal(10,2)", "bigint"):
        for near in ("double", "float"):
            with pytest.raises(InputError, match="of several types, which do not compare"):
                book(exact, near, over(asked))


def test_a_label_of_exact_numbers_and_doubles_is_refused() -> None:
    on = '"(x:(a) or x:(b)) ; c within 10 s"'
    with pytest.raises(InputError, match=r"x\.v is of several types") as refused:
        book("decimal(10,2)", "double", f"{{on: {on}, where: x.v > 0.3}}")
    (problem,) = refused.value.problems
    assert problem.place.path == "rules.r.where"
    assert problem.hint is not None
    assert problem.hint.startswith("label the parts apart")
