"""Carlson & Lisper's laws hold of `[[E]]`, and in `restricted` on starts and ends (Cor. 4.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import assume, given, settings

from tests.laws.drawn import CASES, Case, each_law
from tests.laws.table import sides
from tests.reference.contexts import detections
from tests.reference.meaning import TooLargeError, World
from tests.reference.strategies import NAMES, SECOND
from tests.reference.values import Instance, Occurrence, distinct
from tidegate.rules.expression import Expression, Name
from tidegate.rules.laws import LAWS, Law
from tidegate.rules.model import Context


def world(history: Iterable[tuple[str, int]]) -> World:
    found: dict[Any, list[Occurrence]] = {name: [] for name in NAMES}
    for name, second in history:
        found[name].append(Occurrence(name, name, second * SECOND, second * SECOND))
    return World(found, 10 * SECOND, instances_max=1_000)


def seen(instances: Iterable[Instance]) -> set[Any]:
    return {(i.start, i.end, i.constituents()) for i in distinct(instances)}


def spans(instances: Iterable[Instance]) -> list[tuple[int, int]]:
    return [(i.start, i.end) for i in instances]


def agree(law: Law, left: Expression, right: Expression, seeing: World) -> None:
    """Assert what the law says of one history."""
    try:
        if law.instances:
            both = [detections(e, seeing, Context.UNRESTRICTED) for e in (left, right)]
            assert seen(both[0]) == seen(both[1])
        both = [detections(e, seeing, Context.RESTRICTED) for e in (left, right)]
        assert spans(both[0]) == spans(both[1])
    except TooLargeError:
        assume(False)


def test_there_are_36_laws_each_with_its_own_name() -> None:
    assert len({law.name for law in LAWS}) == len(LAWS) == 36


@each_law
@given(case=CASES)
@settings(max_examples=25, deadline=None)
def test_law(law: Law, case: Case) -> None:
    left, right = case.sides(law)
    agree(law, left, right, world(case.history))


def test_and_is_idempotent_in_restricted_only() -> None:
    """S9: `a and a` is not `a`."""
    seeing = world([("a", 1), ("a", 2)])
    law = next(law for law in LAWS if law.name == "and-idempotent")
    left, right = sides(law, {"x": Name("a")}, 0, 0)
    assert seen(detections(left, seeing, Context.UNRESTRICTED)) != seen(
        detections(right, seeing, Context.UNRESTRICTED)
    )
