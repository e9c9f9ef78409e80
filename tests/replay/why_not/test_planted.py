"""Planted misses: the first no is the rung for which they were planted."""

from __future__ import annotations

from random import Random

import pytest

from tests.replay.why_not.misses import MAKERS, Miss
from tidegate.engine.replay.why_not.ladder import RUNGS, ladder, why_not

PLANTED = 24
"""Misses of each rung, at least; each maker is asked as often as that takes."""


def check(miss: Miss, rung: str) -> None:
    rungs = ladder(miss.evidence, "r", miss.key, miss.instant, miss.since)
    last = rungs[-1]
    assert (last.name, last.ok) == (rung, False), last
    assert [one.name for one in rungs] == [*RUNGS[: len(rungs)]]
    assert all(words in last.sentence for words in miss.says), last.sentence
    found = {name: last.evidence.get(name) for name in miss.figures or {}}
    assert found == dict(miss.figures or {}), last
    said = why_not(miss.evidence, "r", miss.key, miss.instant, miss.since)
    assert said == last.sentence


@pytest.mark.parametrize("rung", RUNGS[:-1])
def test_planted_misses_are_named(rung: str) -> None:
    makers = MAKERS[rung]
    for number in range(max(PLANTED, 3 * len(makers))):
        make = makers[number % len(makers)]
        check(make(Random(f"{rung} {number}")), rung)
