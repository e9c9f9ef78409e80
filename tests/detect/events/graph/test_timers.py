"""Timers: when the next one is due, and how many a step fires at most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import planted
from tests.support.history import batches, canonical, printed
from tests.support.rulebooks import loaded
from tidegate.engine.core.values import Carried
from tidegate.engine.detect.events.graph.timers import Timers
from tidegate.engine.detect.events.state.partitions import next_due
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.rules.model import Context, Rulebook

SECOND = 1_000_000
TIMED = [
    "a + [2 s]",
    "a ; [2 s]",
    "not(b)[a, [2 s]]",
    "not(b)[a ; b, [2 s]]",
    "A*(a, b, [2 s])",
    "P(a, [1 s], [3 s])",
    "P(a, [1 s], b)",
    "P*(a, [1 s], [3 s])",
    "(a ; [1 s]) and b",
    "a + [2 s] or b + [3 s]",
    "{window: 2 s, of: [a, b]}",
    "{session: 1 s, of: a}",
    "{window: 3 s, every: 1 s, of: [a, b]}",
    "{over: {window: 2 s, of: a, fire: count(*) = 1, rearm: count(*) > 1}}",
    "{holds: a, until: b, for: 2 s, keep: 1 s}",
]
CHOSEN = ["A*(a, b, [2 s])", "not(b)[a, [2 s]]", "(a ; b) ; [1 s]"]
Line = tuple[str, int, dict[str, Any]]


def timed(draw: st.DrawFn) -> Rulebook:
    rules = {}
    for number in range(draw(st.integers(1, 3))):
        context = draw(st.sampled_from(["restricted", *(c for c in Context if c != "restricted")]))
        on = draw(st.sampled_from(TIMED if context == "restricted" else CHOSEN))
        per = draw(st.sampled_from(["", ", per: k"]))
        said = f"'{on}', context: {context}"
        rules[f"r{number}"] = f"on: {on if on.startswith('{') else said}{per}"
    return loaded("ab", **rules)


@detecting
@given(data=st.data())
@example_count(50)
def test_g08_steps_of_few_timers_detect_what_one_step_does(data: st.DataObject) -> None:
    """And each fires no more than its limit, but for those of one millisecond."""
    book = data.draw(st.composite(timed)())
    lines = sorted(data.draw(planted(book, 8)), key=lambda line: line[1])
    limit = data.draw(st.integers(1, 3))
    end = lines[-1][1] + 8 * SECOND
    whole, _, reached = Detector(book, dict.fromkeys(book.rules, 0)).step(
        Carried(), batches(book, lines), end, end
    )
    assert reached == end
    partitioned = Partitioned(Detector(book, dict.fromkeys(book.rules, 0)), 4)
    carried, watermark, found = Carried(), -1, list[Any]()
    while watermark < end:
        left = batches(book, [line for line in lines if line[1] > watermark])
        before, (detected, carried, watermark) = (
            watermark,
            partitioned.step(carried, left, end, end, limit=limit),
        )
        assert watermark > before
        found += [line for detections in detected for line in printed(detections)]
    assert canonical(found) == canonical([line for d in saw(whole) for line in printed(d)])


@detecting
@given(data=st.data())
@example_count(50)
def test_a_step_at_each_instant_that_is_due_misses_nothing(data: st.DataObject) -> None:
    """Stepped only where something arrives and where `next_due` says, it detects the same."""
    book = data.draw(st.composite(timed)())
    lines = sorted(data.draw(planted(book, 8)), key=lambda line: line[1])
    end = lines[-1][1] + 8 * SECOND
    whole, _, _ = Detector(book, dict.fromkeys(book.rules, 0)).step(
        Carried(), batches(book, lines), end, end
    )
    partitioned = Partitioned(Detector(book, dict.fromkeys(book.rules, 0)), 4)
    carried, found, steps = Carried(), list[Any](), 0
    instants = sorted({line[1] for line in lines})
    watermark = -1
    while True:
        due = next_due(carried)
        assert due is None or due > watermark
        coming = [*(i for i in instants if i > watermark), *([due] if due and due <= end else [])]
        if not coming:
            break
        watermark, steps = min(coming), steps + 1
        arrived = batches(book, [line for line in lines if line[1] == watermark])
        detected, carried, _ = partitioned.step(carried, arrived, watermark)
        found += [line for detections in detected for line in printed(detections)]
    assert steps <= len(instants) + 8 * len(lines) * len(book.rules)
    assert canonical(found) == canonical([line for d in saw(whole) for line in printed(d)])


@pytest.mark.parametrize(
    ("on", "due"),
    [
        ("a + [1 month]", "2026-02-28T12:00:00Z"),
        ("P(a, [1 month], [1 year])", "2026-02-28T12:00:00Z"),
        ("a ; b", None),
        ("P*(a, [1 s], b)", None),
        ("A*(a, b, [3 d])", "2026-02-03T12:00:00Z"),
    ],
)
def test_when_the_next_timer_is_due(on: str, due: str | None) -> None:
    book = loaded("ab", r=f"on: '{on}'")
    partitioned = Partitioned(Detector(book, {"r": 0}), 4)
    assert next_due(Carried()) is None
    at = micros("2026-01-31T12:00:00Z")
    _, carried, _ = partitioned.step(Carried(), batches(book, [("a", at, {"k": 1, "v": 1})]), at)
    assert next_due(carried) == (due and micros(due))


@pytest.mark.parametrize(
    ("on", "due"),
    [
        ("{window: 10 s, of: a}", 10),
        ("{session: 5 s, of: a}", 8),
        ("{window: 4 s, every: 2 s, of: a}", 4),
        ("{over: {window: 9 s, of: a, fire: count(*) > 9}}", 9),
        ("{holds: a, until: b, for: 7 s}", 7),
    ],
)
def test_when_a_window_of_several_rows_is_due(on: str, due: int) -> None:
    """A session after its last row, the others after the first."""
    book = loaded("ab", r=f"on: {on}")
    partitioned = Partitioned(Detector(book, {"r": 0}), 4)
    lines: list[Line] = [("a", second * SECOND, {"k": 1, "v": 1}) for second in (0, 3)]
    _, carried, _ = partitioned.step(Carried(), batches(book, lines), 3 * SECOND)
    assert next_due(carried) == due * SECOND


def test_ten_billion_ticks_are_cut_before_any_is_made() -> None:
    book = loaded("ab", r="on: 'P(a, [1 s], b)'")
    partitioned = Partitioned(Detector(book, {"r": 0}), 4)
    arrived = batches(book, [("a", 0, {"k": 1, "v": 1})])
    far = 10**10 * SECOND
    found, carried, reached = partitioned.step(Carried(), arrived, far, far, limit=1_000)
    assert [len(d) for d in found] == [1_000]
    assert reached == 1_000 * SECOND + 998
    found, _, again = partitioned.step(carried, {}, far, far, limit=10)
    assert (found[0].end.tolist()[0], again) == (1_001 * SECOND, 1_010 * SECOND + 998)


def test_a_step_reaches_the_millisecond_of_the_last_timer_that_it_may_have() -> None:
    timers = Timers(2)
    for fired in ([1_000, 5_000], [2_000, 2_500], [4_000]):
        timers.fire(np.array(fired))
    assert timers.reached(9_998) == 2_998
    timers.limit = 5
    assert timers.reached(9_998) == 9_998


@pytest.mark.parametrize("end", [3_000_998, 3_000_000, 2_000_998])
@pytest.mark.parametrize("on", ["P(a, [1 s], b)", "P(a, [1 s], [9 s])", "P*(a, [1 s], [1 s])"])
def test_g08_ticks_of_one_millisecond_are_not_parted(on: str, end: int) -> None:
    """A commit that opens more windows than a step may have timers, a key each."""
    book = loaded("ab", r=f"on: '{on}', per: k")
    partitioned = Partitioned(Detector(book, {"r": 0}), 4)
    arrived = batches(book, [("a", 0, {"k": k, "v": 1}) for k in range(5)])
    carried, watermark, seen = Carried(), -1, list[Any]()
    while watermark < end:
        found, carried, watermark = partitioned.step(carried, arrived, end, end, limit=2)
        seen += [len(d) for d in found]
        arrived = {}
    assert seen == [5] * (1 if "*" in on else end // SECOND)


HELD = "{holds: a, until: b, for: 2200 ms, keep: KEEP ms}"


@pytest.mark.parametrize(
    "rules",
    [
        {"r": "{window: 1 s, of: a}"},
        {"r": "{window: 1 s, every: 1 s, of: a}"},
        {"r": "{session: 1500 ms, of: a}"},
        {"r": "{over: {window: 2200 ms, of: a, fire: count(*) = 1, rearm: count(*) > 1}}"},
        {"r": HELD.replace("KEEP", "0")},
        {"r": HELD.replace("KEEP", "1300"), "e": "resolved r"},
    ],
    ids=["tumbling", "sliding", "session", "crossing", "holds", "resolved"],
)
def test_g08_a_step_has_as_many_timers_of_windows_as_it_may(rules: dict[str, str]) -> None:
    """What is detected as rows arrive is none of them. Five keys, one a second: of each rule each
    has one."""
    book = loaded("ab", **{name: f"on: {on}, per: k" for name, on in rules.items()})
    partitioned = Partitioned(Detector(book, dict.fromkeys(book.rules, 0)), 4)
    rows = [("a", 100), ("a", SECOND // 4), ("b", 3 * SECOND + 50)]
    lines = [(e, k * SECOND + after, {"k": k, "v": 1}) for k in range(5) for e, after in rows]
    arrivals, end = {line[1] for line in lines}, 20 * SECOND
    carried, watermark, fired = Carried(), -1, list[int]()
    while watermark < end:
        left = batches(book, sorted((o for o in lines if o[1] > watermark), key=lambda o: o[1]))
        found, carried, watermark = partitioned.step(carried, left, end, end, limit=2)
        fired.append(sum(int(at) not in arrivals for d in found for at in d.end))
    assert fired == ([2, 2, 1] if len(rules) == 1 else [2] * 5)


def micros(text: str) -> int:
    return int(pa.scalar(text).cast(pa.timestamp("us", "UTC")).value)
