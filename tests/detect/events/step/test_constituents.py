"""The detections of a rule as occurrences of an event type (S8)."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidegate import detect
from tidegate.engine.detect.events.occurrences.occurrences import Occurrences
from tidegate.engine.detect.events.step import constituents

BOOK = """\
rulebook: one
events: {a: {signal: {k: bigint, v: bigint}}, b: {signal: {k: bigint, v: bigint}}}
rules:
  pair: {on: a and b, per: k, context: unrestricted}
  some: {on: "A*(a, b, a)", per: k, context: unrestricted}
  used: {on: "any(2, pair, some)", per: k}
"""


@pytest.mark.parametrize("seed", range(4))
def test_detections_of_equal_values_are_one_occurrence_by_one_comparison(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    rows = [(draw.choice("ab"), draw.randrange(4), draw.randrange(2), n % 2) for n in range(36)]
    names = ("event", "time", "v", "k")
    lines: Any = dict(zip(names, map(pa.array, zip(*rows, strict=True)), strict=True))
    occurrences = pa.table(lines)
    given: dict[str, np.ndarray] = {}
    orders: list[int] = []
    add, order = Occurrences.add_detections, constituents._order

    def added(self: Occurrences, rule: str, end: Any, own: Any, parts: Any) -> Any:
        given[rule] = own
        return add(self, rule, end, own, parts)

    def ordered(row: Any, of: Occurrences) -> Any:
        orders.append(len(row))
        return order(row, of)

    monkeypatch.setattr(Occurrences, "add_detections", added)
    monkeypatch.setattr(constituents, "_order", ordered)
    found = detect(BOOK, occurrences)
    assert len(orders) < 20, "a few for each rule, however many detections there are"
    values = occurrences.select(["time", "event", "v", "k"]).to_pylist()
    for rule in ("pair", "some"):
        mine = [row for row in found.to_pylist() if row["rule"] == rule]
        said = [
            (row["k"], row["start"], row["end"], [values[n] for n in row["constituents"]])
            for row in mine
        ]
        assert len(said) == len(given[rule]) > 5
        numbers = given[rule].tolist()
        places = sorted(range(len(said)), key=lambda n: (said[n][2], said[n][1], said[n][0], n))
        told = [said[n] for n in places]
        changes = [one != two for one, two in pairwise(told)]
        assert 0 < sum(changes) < len(changes)
        steps = [two - one for one, two in pairwise(numbers[n] for n in places)]
        assert steps == [int(change) for change in changes]
