"""Sliding windows: the detector finds what the reference finds, however the history is cut."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.cuts import cuts
from tests.reference.examples import example_count
from tests.reference.strategies import SECOND, expected
from tests.reference.windows.histories import (
    CASES_AN_EXAMPLE,
    books,
    by_case,
    ends,
    histories,
    side_by_side,
)
from tests.support.history import run
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w

DAY = 86_400 * SECOND
SPRING = int(datetime(2026, 3, 28, 22, tzinfo=UTC).timestamp()) * SECOND
"""Before the clocks of Berlin, and those of Santiago, are changed."""
LENGTHS = {
    "fixed": [x.Duration(0, n * SECOND) for n in (1, 2, 3, 5, 7)],
    "days": [x.Duration(0, n * DAY) for n in (1, 2, 7)] + [x.Duration(1, 0)],
    "mixed": [x.Duration(0, n * DAY // 4) for n in (1, 3, 4, 8)],
}
ZONES = {"fixed": ["UTC"], "days": ["UTC", "Europe/Berlin", "America/Santiago"]}


def check(kind: str, data: st.DataObject) -> Counter[str]:
    """Compares one rulebook over histories: whole, and cut anywhere, its state in parts or not."""

    def made(part: x.Expression) -> st.SearchStrategy[w.Window]:
        lengths = st.sampled_from(LENGTHS[kind])
        pairs = st.tuples(lengths, lengths)
        usual = pairs.map(lambda pair: sorted(pair, key=approximate, reverse=True))
        chosen = st.one_of(usual, usual, usual, pairs)
        return chosen.map(lambda pair: w.Sliding(part, *pair)).filter(allowed)

    rulebook = data.draw(books(made, ZONES.get(kind, ZONES["days"])))
    window = rulebook.rules["r"].pattern.on
    assert isinstance(window, w.Sliding)
    lengths = [window.length.micros or 28 * DAY, window.every.micros or 31 * DAY]
    begin = 0 if kind == "fixed" else SPRING
    history = data.draw(side_by_side(rulebook, histories(lengths, begin)))
    until = data.draw(ends(history, lengths))
    cut = data.draw(cuts(rulebook, history))
    answer = expected(rulebook, history, until=until)
    assert run(rulebook, history, until=until) == answer
    partitions = data.draw(st.sampled_from([None, 4]))
    assert run(rulebook, history, cut, until, partitions=partitions) == answer
    firings = [found for line in answer if (found := json.loads(line))["rule"] == "r"]
    seen = Counter[str]()
    for found in by_case(rulebook, firings, lambda firing: firing["key"]):
        seen += Counter(cases=1, fired=bool(found), slid=slid(found))
    return seen


def slid(firings: list[dict[str, Any]]) -> bool:
    """Whether a row is in several windows."""
    ticks = defaultdict[str, set[float]](set)
    for firing in firings:
        for row in firing["constituents"]:
            ticks[json.dumps(row)].add(firing["end"])
    return any(len(of_row) > 1 for of_row in ticks.values())


def approximate(length: x.Duration) -> int:
    return length.micros + 30 * DAY * length.months


def allowed(window: w.Sliding) -> bool:
    return w.calendar(window.every) or not window.length.months


def many(kind: str, count: int) -> None:
    seen = Counter[str]()

    @given(data=st.data())
    @example_count(count, least=count // 24)
    def some(data: st.DataObject) -> None:
        seen.update(check(kind, data))

    some()
    print(kind, dict(seen))
    assert 2 * seen["fired"] > seen["cases"]
    assert 5 * seen["slid"] > seen["cases"]


@pytest.mark.parametrize("kind", LENGTHS)
def test_what_slides_is_what_the_reference_finds(kind: str) -> None:
    many(kind, 80)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", LENGTHS)
def test_in_twenty_thousand_cases(kind: str) -> None:
    many(kind, 20_000 // 3 // CASES_AN_EXAMPLE + 1)
