"""What is carried over 10M occurrences is the static bound, and memory stays where it is."""

from __future__ import annotations

import pytest

from benchmarks.bounds import EXPRESSIONS, measure


@pytest.mark.long
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_key_carries_its_bound_and_no_more(expression: str) -> None:
    found = measure(expression, 10_000_000)
    assert found.instances == (found.bound.instances_max,) * 2
    assert found.occurrences == (found.bound.occurrences_max,) * 2
    assert found.grown_mb < 16
