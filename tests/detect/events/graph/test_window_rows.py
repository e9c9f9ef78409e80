"""How many rows the windows of a step may hold: a step with more ends earlier and drops nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.reference.evaluate import canonical
from tests.support.history import batches, printed
from tests.support.rulebooks import loaded
from tidegate.engine.core.state import State
from tidegate.engine.core.values import Bucket, Carried, Needs, Plan
from tidegate.engine.detect.events.graph.search_limits import RuleLimitError
from tidegate.engine.detect.events.graph.timers import FloodError
from tidegate.engine.detect.events.kernels import moving_windows as kernels
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.engine.detect.stage import BucketDetector, detect
from tidegate.rules.model import Rulebook

SECOND = 1_000_000
SLIDING = "{window: 4 s, every: 1 s, of: a}"
DAILY = "{window: 4 d, every: 1 d, of: a}"
CROSSING = "{over: {window: 9 s, of: a, fire: count(*) >= 1, rearm: count(*) >= 1}}"
Line = tuple[str, int, dict[str, Any]]


def book_of(on: str, most: int) -> Rulebook:
    book = loaded("ab", r=f"on: {on}, per: k")
    return replace(book, settings=replace(book.settings, window_rows_max=most))


def rows(seconds: int, step: int = SECOND) -> list[Line]:
    return [("a", n * step + 1, {"k": n % 2, "v": n}) for n in range(seconds)]


def bit_by_bit(book: Rulebook, lines: list[Line], end: int) -> tuple[list[Any], int, int]:
    """What all steps detect, how many steps there are, the most rows in the windows of one."""
    partitioned = Partitioned(Detector(book, {"r": 0}), 4)
    carried, watermark, found, steps, most = Carried(), -1, list[Any](), 0, 0
    while watermark < end:
        left = batches(book, [line for line in lines if line[1] > watermark])
        before = watermark
        detected, carried, watermark = partitioned.step(carried, left, end, end, limit=10**6)
        assert watermark > before
        lines_of = [line for detections in detected for line in printed(detections)]
        most = max(most, sum(len(d.event_row) for d in detected))
        found, steps = found + lines_of, steps + 1
    return found, steps, most


@pytest.mark.parametrize(
    ("on", "step"), [(SLIDING, SECOND), (DAILY, 86_400 * SECOND), (CROSSING, SECOND)]
)
def test_g08_a_step_whose_windows_hold_too_many_rows_ends_earlier(on: str, step: int) -> None:
    lines, end = rows(12, step), 40 * step + 998
    whole, once, held = bit_by_bit(book_of(on, 1_000), lines, end)
    assert once == 1
    assert held > 20
    for most in (held, held - 1, 10):
        found, steps, rows_of_one = bit_by_bit(book_of(on, most), lines, end)
        assert canonical(found) == canonical(whole)
        assert rows_of_one <= most
        assert (steps == 1) == (most == held)


@pytest.mark.parametrize("on", [SLIDING, CROSSING])
def test_a_rule_is_parked_where_windows_of_one_millisecond_hold_too_many(on: str) -> None:
    """Of any number of keys."""
    lines: list[Line] = [("a", 1, {"k": k, "v": 1}) for k in range(6)]
    book = book_of(on, 5)
    with pytest.raises(RuleLimitError, match="hold 6 rows, at most 5") as caught:
        bit_by_bit(book, lines, 9 * SECOND)
    assert (caught.value.code, caught.value.rule) == ("window-rows", "r")
    assert "window_rows_max" in caught.value.message
    assert "raise window_rows_max and `enable RULE`" in caught.value.hint
    assert bit_by_bit(book_of(on, 6), lines, 9 * SECOND)[0]


def test_a_step_that_nothing_cuts_says_so() -> None:
    book = book_of(SLIDING, 10)
    with pytest.raises(RuleLimitError, match="hold 48 rows, at most 10"):
        Detector(book, {"r": 0}).step(Carried(), batches(book, rows(12)), 40 * SECOND)


def test_g08_the_rule_is_not_parked_the_bucket_ends_earlier() -> None:
    book = book_of(SLIDING, 10)
    state = State(0, 0, 0, {}, {}, {}, Carried())
    bucket = Bucket(Plan("x", 1, 0, 40 * SECOND + 998, 0), batches(book, rows(12)))
    detecting = BucketDetector(book, {"r": 0}, Needs({}))
    with pytest.raises(FloodError) as caught:
        detect(detecting, state, bucket, book.settings)
    assert caught.value.reached == 5 * SECOND - 2  # the ticks 1 to 4 have 1 + 2 + 3 + 4


def test_ten_billion_windows_are_refused_before_any_is_made() -> None:
    book = book_of("{window: 40000 d, every: 1 ms, of: a}", 1_000)
    arrived = batches(book, [("a", 1, {"k": 1, "v": 1})])
    partitioned = Partitioned(Detector(book, {"r": 0}), 4)
    found, _, reached = partitioned.step(Carried(), arrived, 10**15, 10**15, limit=10**6)
    assert [len(d) for d in found] == [1_000]
    assert reached == 1_000_998


def test_g08_a_leap_of_the_watermark_is_cut_before_its_windows_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A dozen rows, and a tick each second of the day after: a million windows of one row each."""
    made, held_at_ticks = list[int](), kernels.held_at_ticks

    def noted(*given: Any) -> kernels.Spans:
        spans = held_at_ticks(*given)
        made.append(len(spans.at))
        return spans

    monkeypatch.setattr(kernels, "held_at_ticks", noted)
    keys, day = 12, 86_400 * SECOND
    book = book_of("{window: 1 d, every: 1 s, of: a}", 10**8)
    lines: list[Line] = [("a", 1, {"k": k, "v": 1}) for k in range(keys)]
    partitioned = Partitioned(Detector(book, {"r": 0}), 4)
    carried, watermark, ends, limit = Carried(), 1, list[int](), 30
    arrived = batches(book, lines)
    for _ in range(3):
        found, carried, reached = partitioned.step(carried, arrived, day, day, limit=limit)
        assert reached > watermark
        ends += [end for detections in found for end in detections.end.tolist()]
        arrived, watermark = {}, reached
    # the 30th is in the third tick, whose windows are not parted
    assert ends == sorted([n * SECOND for n in range(1, 10)] * keys)
    assert max(made) == 3 * keys
    assert watermark == 9 * SECOND + 998


def test_no_window_is_looked_at_between_rows_that_are_centuries_apart() -> None:
    """As of a snapshot whose times are those of its rows."""
    book = book_of("{window: 2 d, every: 1 d, of: a}", 1_000)
    lines: list[Line] = [("a", day * 86_400 * SECOND + 1, {"k": 1, "v": 1}) for day in (0, 200_000)]
    found, _, _ = bit_by_bit(book, lines, 200_009 * 86_400 * SECOND)
    assert len(found) == 4
    parts = [bit_by_bit(book, [line], 200_009 * 86_400 * SECOND)[0] for line in lines]
    assert canonical(found) == canonical([line for part in parts for line in part])
