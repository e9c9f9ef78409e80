"""Sums of doubles over windows: those from left to right, most of them without adding anew."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.detect.events.test_moving_aggregates import asked
from tests.reference.examples import example_count
from tests.reference.windows.texts import conditions
from tidegate.engine.detect.events.graph import double_sums
from tidegate.engine.detect.events.graph.double_sums import DoubleSums
from tidegate.engine.detect.events.kernels.binades import long_sums
from tidegate.engine.detect.events.kernels.double_sums import from_left, nearly, whole_sums

LARGE = [1e16, -1e16, 1e-300, 5e-324, 1.7e308, -1.7e308]
SOME = [0.1, 0.2, 0.7, -0.3, 3.0, 4.0, -7.0, 0.0, -0.0]
WILD = [math.nan, math.inf, -math.inf]


@st.composite
def windows(draw: st.DrawFn) -> tuple[list[float], list[tuple[int, int]]]:
    """Values, and windows over them, of which neither bound falls; some are empty."""
    kind = st.sampled_from([SOME, SOME, [*SOME, *LARGE], [*SOME, *LARGE, *WILD], SOME[4:]])
    values = draw(st.lists(st.sampled_from(draw(kind)), min_size=4, max_size=12))
    bound = st.integers(0, len(values))
    low, high = (sorted(draw(st.lists(bound, min_size=6, max_size=6))) for _ in "lh")
    return values, [(a, b) for a, b in zip(low, high, strict=True) if a <= b]


def columns(windows: Sequence[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    low, high = (np.array([window[n] for window in windows], np.int64) for n in (0, 1))
    return low, high


def added(values: Sequence[float]) -> float:
    """From left to right."""
    return [*accumulate(values, initial=0.0)][-1]


def same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def test_sums_from_left_to_right_are_within_the_bound() -> None:
    seen = Counter[str]()

    @given(case=windows())
    @example_count(2_000, least=300)
    def some(case: tuple[list[float], list[tuple[int, int]]]) -> None:
        values, spans = case
        sums, off = (found.tolist() for found in nearly(np.array(values), *columns(spans)))
        found = from_left(np.array(values), *columns(spans)).tolist()
        for n, (first, last) in enumerate(spans):
            wanted = added(values[first:last])
            assert same(found[n], wanted)
            if off[n] == 0:
                assert same(sums[n], wanted)
            elif off[n] < math.inf:
                assert sums[n] - off[n] <= wanted <= sums[n] + off[n]
            if last - first > 1:
                seen["exact"] += bool(off[n] == 0)
                seen["near"] += bool(0 < off[n] < math.inf)
                seen["another"] += bool(0 < off[n] < math.inf and sums[n] != wanted)
                seen["all"] += 1

    some()
    print(dict(seen))
    assert 4 * seen["exact"] > seen["all"]
    assert 8 * seen["near"] > seen["all"]
    assert 100 * seen["another"] > seen["all"]


@pytest.mark.parametrize(
    ("values", "whole"),
    [
        ([3.0, -7.0, 4.0], True),
        ([0.5, 0.25, 1.0], False),
        ([2.0**53, 1.0, 1.0], False),
        ([2.0**52, -(2.0**52), 1.0], False),
        ([math.inf, 1.0, 1.0], False),
        ([math.nan, 1.0, 1.0], False),
    ],
)
def test_small_whole_numbers_are_summed_once(values: list[float], whole: bool) -> None:
    """With others what has left would stay in the rounding."""
    assert (len(whole_sums(np.array(values))) > 0) == whole
    spans = [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)]
    sums = DoubleSums(np.array(values), *columns(spans)).sums.tolist()
    assert all(same(sums[n], added(values[low:high])) for n, (low, high) in enumerate(spans))


AT_BOUNDS = [2.0**53, 1.0, -0.6, -0.3, 3.0]
"""Sums of these are at the least number of a binade, below which doubles are closer; and halves."""


@pytest.mark.parametrize(
    "some",
    [
        [0.1],
        [0.1, 0.3],
        [1.1, -1.1],
        SOME,
        [*SOME, *LARGE],
        [*SOME, *WILD],
        AT_BOUNDS,
        [-value for value in AT_BOUNDS],
    ],
    ids=["one", "two", "up and down", "some", "large", "wild", "at bounds", "below zero"],
)
def test_sums_of_binades_are_those_from_left_to_right(some: list[float]) -> None:
    random = np.random.default_rng(5)
    for _ in range(100):
        values = random.choice(some, 300)
        low, high = (np.sort(random.integers(0, 301, 40)) for _ in "lh")
        low = np.minimum(low, high)
        wanted = [added(values[first:last].tolist()) for first, last in zip(low, high, strict=True)]
        assert [*map(float.hex, long_sums(values, low, high))] == [*map(float.hex, wanted)]


def test_long_windows_at_their_number_are_not_added_row_by_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Windows of 4,000 rows each are added anew by binades, and to the same sums."""
    values, high = np.full(8_000, 0.1), np.arange(1, 8_001)
    low = np.maximum(high - 4_000, 0)
    wanted = from_left(values, low, high)
    monkeypatch.setattr(double_sums.kernels, "from_left", None)  # row by row
    sums = DoubleSums(values, low, high)
    assert sums.near.sum() > 4_000
    sums.sum_anew(sums.near)
    assert sums.sums.tolist() == wanted.tolist()


@contextmanager
def watched() -> Iterator[list[int]]:
    """How many rows are added anew, each time."""
    rows, sum_anew = list[int](), DoubleSums.sum_anew

    def noted(self: Any, which: np.ndarray) -> None:
        rows.append(int((self._high - self._low)[which & self.near].sum()))
        sum_anew(self, which)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DoubleSums, "sum_anew", noted)
        yield rows


WAVE = [round(5 + 4 * math.sin(n / 200), 1) for n in range(3_000)]
"""A measurement in tenths that goes up and down."""


@pytest.mark.parametrize("values", [WAVE, [1e17, *WAVE], [math.nan, *WAVE, math.inf]])
@pytest.mark.parametrize("text", ["avg(v) > 7.05", "sum(v) > 3000 or 2 > avg(v)"])
def test_long_windows_are_hardly_ever_added_anew(values: list[float], text: str) -> None:
    """A window of 500 rows after each row, which hold 1.5 million rows together."""
    spans = [(max(n - 500, 0), n) for n in range(1, len(values) + 1)]
    low, high = columns(spans)
    with watched() as anew:
        held = asked(text, pa.table({"v": values}), spans)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(double_sums, "FEW", 1_000)
        assert asked(text, pa.table({"v": values}), spans) == held
    assert 200 < sum(held) < len(held)
    assert anew
    assert sum(anew) * 20 < (high - low).sum()


def test_a_sum_that_is_near_to_its_number_is_added_anew() -> None:
    values = [0.1] * 400
    spans = [(0, n) for n in range(1, 401)]
    with watched() as anew:
        held = asked("sum(v) >= 0.8 and sum(v) < 1.85", pa.table({"v": values}), spans)
    assert held == [added(values[:n]) >= 0.8 and added(values[:n]) < 1.85 for n in range(1, 401)]
    assert not held[7]  # eight tenths, added one to another, are 0.7999999999999999
    assert anew == [8]


@pytest.mark.parametrize(
    "text", ["sum(v) - 0.8 >= 0", "abs(sum(v)) >= 0.8", "sum(v) >= 8 * avg(v)"]
)
def test_sums_that_are_calculated_with_are_added_anew(text: str) -> None:
    values = [0.1] * 400
    spans = [(0, n) for n in range(1, 401)]
    with watched() as anew:
        asked(text, pa.table({"v": values}), spans)
    assert max(anew) > 70_000


def test_conditions_are_those_of_sums_from_left_to_right() -> None:
    seen = Counter[str]()

    texts = conditions(["v"]).filter(lambda text: "sum" in text or "avg" in text)

    @given(case=windows(), text=texts)
    @example_count(1_200)
    def some(case: tuple[list[float], list[tuple[int, int]]], text: str) -> None:
        values, spans = case
        held = []
        for few in (0, 1_000):
            with watched() as anew, pytest.MonkeyPatch.context() as patch:
                patch.setattr(double_sums, "FEW", few)
                held.append(asked(text, pa.table({"v": pa.array(values)}), spans))
            seen["near"] += bool(anew)
            seen["added anew"] += sum(anew) > 0
        assert held[0] == held[1]
        seen["all"] += 1

    some()
    print(dict(seen))
    assert 8 * seen["near"] > seen["all"]
    assert 30 * seen["added anew"] > seen["all"]
