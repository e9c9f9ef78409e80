"""Crossings: the detector finds what the reference finds, however the history is cut; what `fire`
says is what the evaluator of `if` says."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.load import PLACE
from tests.reference.cuts import cuts
from tests.reference.examples import example_count
from tests.reference.strategies import SECOND, expected
from tests.reference.windows.histories import (
    AS_EVENT,
    CASES_AN_EXAMPLE,
    books,
    cases,
    ends,
    histories,
    side_by_side,
)
from tests.reference.windows.texts import conditions
from tests.support.history import run
from tidegate.engine.detect.events.graph.operators import crossing
from tidegate.engine.detect.events.graph.operators.crossing import BLOCK_ROWS
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.aggregate_parser import parse_aggregates
from tidegate.rules.model import Rulebook

COLUMNS = ["v", "x", "m"]
WINDOWS = ["r", "r2", "r3"]


def over_rows(text: str) -> w.Asked:
    return w.Asked(parse_aggregates(text), text, PLACE)


def made(part: x.Expression) -> st.SearchStrategy[w.Window]:
    texts = conditions(COLUMNS)
    if part == x.Name(AS_EVENT):  # the rows are detections, which have no columns
        texts = st.sampled_from(["count(*) > 1", "count(*) >= 1", "count(*) = 2", "sum(v) > 1"])
    length = st.integers(1, 6).map(lambda n: x.Duration(0, n * SECOND))
    rearm = st.one_of(st.none(), texts.map(over_rows))
    return st.builds(w.Crossing, st.just(part), length, texts.map(over_rows), rearm)


def check(data: st.DataObject) -> Counter[str]:
    """Compares one rulebook over histories: whole, and cut anywhere, its state in parts or not."""
    rulebook = data.draw(books(made, windows=WINDOWS))
    lengths = [window.length.micros for window in crossings(rulebook)]
    history = data.draw(side_by_side(rulebook, histories(lengths)))
    until = data.draw(ends(history, lengths))
    cut = data.draw(cuts(rulebook, history))
    answer = expected(rulebook, history, until=until)
    partitions = data.draw(st.sampled_from([None, 4]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossing, "BLOCK_ROWS", data.draw(st.sampled_from([1, 3, BLOCK_ROWS])))
        assert run(rulebook, history, until=until) == answer
        assert run(rulebook, history, cut, until, partitions=partitions) == answer
    found = [json.loads(line) for line in answer]
    seen = Counter[str](cases=cases(rulebook) * len(WINDOWS))
    for window in WINDOWS:
        firings = [firing for firing in found if firing["rule"] == window]
        without = [f for f in firings if f["end"] > max(c["time"] for c in f["constituents"])]
        several = Counter(json.dumps(firing["key"]) for firing in firings)
        seen += Counter(
            windows=1,
            fired=bool(firings),
            rearmed=max(several.values(), default=0) > 1,
            without_a_row=bool(without),
        )
    return seen


def crossings(rulebook: Rulebook) -> list[w.Crossing]:
    windows = [rulebook.rules[name].pattern.on for name in WINDOWS]
    return [window for window in windows if isinstance(window, w.Crossing)]


def many(count: int) -> None:
    seen = Counter[str]()

    @given(data=st.data())
    @example_count(count)
    def some(data: st.DataObject) -> None:
        seen.update(check(data))

    some()
    print(dict(seen))
    assert 3 * seen["fired"] > seen["windows"]
    assert 16 * seen["rearmed"] > seen["windows"]
    assert 20 * seen["without_a_row"] > seen["windows"]


def test_what_crosses_is_what_the_reference_finds() -> None:
    many(200)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_in_twenty_thousand_cases() -> None:
    many(20_000 // CASES_AN_EXAMPLE // len(WINDOWS))
