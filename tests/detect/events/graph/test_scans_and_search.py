"""Scans and nodes detect what the exact search does: the same rows in the same order, for any
cut. Both ways are forced for one rule, on histories too long for the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.detect.events.graph.flat.test_flat_node import chained, filtered
from tests.detect.events.graph.flat.test_windows import WINDOWS
from tests.detect.events.graph.search.test_singles import SINGLE
from tests.reference.cuts import watermarks
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, drawn_for, resuming, saw, stepped
from tests.reference.strategies import SECOND, UNTIMED, expressions, written
from tests.support.history import batches, buckets, searched, through_ipc
from tests.support.rulebooks import over_signals
from tidegate.engine.core.values import FOREVER, Batch, Carried
from tidegate.engine.detect.events.graph.search.choice import Choice
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions.nodes import Expression, Own, Periodic, PeriodicStar, Plus
from tidegate.rules.expressions.parser import parse
from tidegate.rules.model import Context, Rulebook

Found = tuple[int, str, int, list[int]]
"""End, key, start and the positions of the constituents in the history."""
SIMPLE = ("b ; a", "a and b", "a ; b ; c", "any(2, a, b, c)", "any(3, a*)", "not(b)[a, c]")


@st.composite
def histories(draw: st.DrawFn, keys: int) -> list[Line]:
    """40 to 150 lines of a, b, c, d in order of time; many are simultaneous, and many are equal."""
    count, random = draw(st.integers(40, 150)), np.random.default_rng(draw(st.integers(0, 2**32)))
    names = draw(st.sampled_from(["abcd", "ab", "aabbc", "abc", "aaabbbcccd"]))
    seconds = np.sort(random.integers(0, draw(st.integers(5, 40)), count))
    values = random.integers(0, draw(st.integers(1, 2)), count)
    own = random.integers(0, keys, count)
    return [
        (names[n], int(second) * SECOND, {"k": int(k), "v": int(v)})
        for n, second, k, v in zip(
            random.integers(0, len(names), count), seconds, own, values, strict=True
        )
    ]


def shapes(context: Context) -> st.SearchStrategy[Expression]:
    """What a scan, or nodes without a search, detect in a context."""
    single = st.sampled_from(SINGLE).map(parse)
    if context is Context.UNRESTRICTED:
        return single
    flat = filtered(recent=context is Context.RECENT)
    simple = st.sampled_from([*SIMPLE, *WINDOWS]).map(parse)
    found = st.one_of(flat, flat, chained(), simple, simple, single).map(written)
    return found.filter(lambda on: not searches(over_signals(on, context)))


def numbered(rulebook: Rulebook, lines: Sequence[tuple[int, Line]]) -> dict[str, Batch]:
    """The lines of a bucket; the position in the history is the id of an occurrence, which nothing
    is compared by."""
    found = batches(rulebook, [line for _, line in lines])
    for name in rulebook.events:
        at = np.array([n for n, line in lines if line[0] == name], dtype=np.uint64)
        ids = {"position": np.stack([at, np.zeros_like(at)], axis=1)}
        found[name] = replace(found[name], ids=ids)
    return found


def positions(rulebook: Rulebook, history: Sequence[Line], cuts: Sequence[int] = ()) -> list[Found]:
    """What is detected, in its order, in buckets that end at the `cuts`."""
    first, last = history[0][1], history[-1][1]
    detector = Detector(rulebook, {"r": first})
    carried, found, at = Carried(), list[Found](), 0
    for watermark, bucket in buckets(history, {*cuts, last, FOREVER}):
        given = numbered(rulebook, [*enumerate(bucket, start=at)])
        at += len(bucket)
        before = carried
        detected, carried, _ = detector.step(carried, given, watermark, min(watermark, last))
        if bucket or detected:
            stepped(before.tables.values())
        carried = through_ipc(carried)
        for each in detected:
            ids = [each.batches[event].ids_by("position")[:, 0] for event in each.events]
            entries = zip(each.event_code, each.event_row, strict=True)
            row = [int(ids[code][at]) for code, at in entries]
            keys = [str(key) for key in each.keys.to_pylist()] or [""] * len(each)
            spans = zip(each.end.tolist(), keys, each.start.tolist(), strict=True)
            found += [
                (*span, row[each.offsets[i] : each.offsets[i + 1]]) for i, span in enumerate(spans)
            ]
    return found


def searches(rulebook: Rulebook) -> bool:
    nodes = Detector(rulebook, {"r": 0}).graph.nodes.values()
    return any(isinstance(node.shape, Choice) for node in nodes)


@pytest.mark.parametrize("context", Context)
@resuming
@detecting
def test_s05_a_scan_detects_the_rows_that_the_search_does(context: Context) -> None:
    @drawn_for(context)
    @given(data=st.data())
    @example_count(60, least=10)
    def some(data: st.DataObject) -> None:
        keys = data.draw(st.sampled_from([(), ("k",)]))
        rulebook = over_signals(data.draw(shapes(context)), context, keys)
        history = data.draw(histories(data.draw(st.integers(1, 3))))
        cuts = data.draw(watermarks([time for _, time, _ in history], {SECOND}, most=9))
        with searched():
            assert searches(rulebook)
            exact = saw(positions(rulebook, history))
            assert positions(rulebook, history, cuts) == exact
        assert positions(rulebook, history) == exact
        assert positions(rulebook, history, cuts) == exact

    some()


@resuming
@detecting
@given(data=st.data())
@example_count(60)
def test_s05_nodes_detect_the_rows_that_the_search_does(data: st.DataObject) -> None:
    """Any expression in `restricted`; those are given up for which the search is too slow."""
    drawn = data.draw(expressions((*UNTIMED, Own, Plus, Periodic, PeriodicStar), ("a", "b", "c")))
    rulebook = over_signals(drawn, Context.RESTRICTED)
    rulebook = replace(rulebook, settings=replace(rulebook.settings, search_steps_max=20_000))
    history = data.draw(histories(1))[:60]
    cuts = data.draw(watermarks([time for _, time, _ in history], {SECOND}, most=9))
    try:
        with searched():
            exact = saw(positions(rulebook, history))
    except EngineError as error:
        assume(error.code != "search-steps")
        raise
    assert positions(rulebook, history, cuts) == exact
