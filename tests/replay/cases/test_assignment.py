"""As many rows as possible are found; the nearest of those that are left are paired."""

from __future__ import annotations

from itertools import combinations, permutations

from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tidegate.engine.replay.cases.assignment import assigned, nearest

PAIRS = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)))


@example_count(400)
@given(PAIRS, st.integers(0, 5), st.integers(0, 5))
def test_no_assignment_has_more(fitting: set[tuple[int, int]], wanted: int, found: int) -> None:
    pairs = assigned(wanted, found, lambda a, b: (a, b) in fitting)
    assert {*pairs.items()} <= fitting
    assert len({*pairs.values()}) == len(pairs)
    size = min(wanted, found)
    most = max(
        sum(pair in fitting for pair in zip(rows, taken, strict=True))
        for rows in permutations(range(wanted), size)
        for taken in combinations(range(found), size)
    )
    assert len(pairs) == most


def test_rows_in_order_are_asked_once() -> None:
    asked: list[tuple[int, int]] = []

    def fits(a: int, b: int) -> bool:
        asked.append((a, b))
        return a == b

    assert len(assigned(1_000, 1_000, fits)) == 1_000
    assert len(asked) == 1_000


def test_the_nearest_come_first_and_those_unlike_not_at_all() -> None:
    scores = {(0, 5): 1, (1, 5): 3, (1, 6): 4, (2, 6): 0}
    found = nearest([0, 1, 2], [5, 6], lambda a, b: scores.get((a, b), 0))
    assert found == {1: 6, 0: 5}
