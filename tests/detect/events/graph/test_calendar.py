"""Lengths of time at the ends of the calendar, and ticks past counting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.load import micros
from tests.reference import timing
from tests.reference.examples import example_count
from tests.reference.hits import noted, noting
from tidegate.engine.core.instants import ceil_watermark
from tidegate.engine.detect.events.graph import calendar
from tidegate.engine.detect.events.graph.calendar import TICKS_MAX, add, multiples
from tidegate.engine.detect.events.graph.search_limits import LimitError
from tidegate.engine.detect.events.graph.timers import FloodError
from tidegate.rules.expressions.nodes import BusinessCalendar, BusinessDays, Duration

MONTH = Duration(1, 0)
DAY = 86_400_000_000
PERIODS = [
    Duration(0, 10 * DAY),
    MONTH,
    Duration(1, DAY),
    BusinessDays(1),
    BusinessDays(3, BusinessCalendar((0, 2, 5), ("2026-03-30",), ("DE",))),
]
SPRING = micros("2011-12-01T00:00"), micros("2026-03-01T00:00")  # Samoa's skipped day behind one


@pytest.mark.parametrize(
    ("instant", "duration"),
    [
        ("9999-12-15T00:00", MONTH),
        ("2020-12-31T00:00", Duration(12 * 9_000, 0)),
        ("-99999999999", MONTH),
    ],
)
def test_s11_months_that_lead_out_of_the_calendar_are_a_limit(
    instant: str, duration: Duration
) -> None:
    with pytest.raises(LimitError, match="from year 1 to 9999") as caught:
        add(micros(instant), duration, "UTC")
    assert caught.value.code == "calendar"


def test_s11_the_last_month_is_counted() -> None:
    assert add(micros("9999-11-15T00:00"), MONTH, "UTC") == micros("9999-12-15T00:00")


def test_g13_ticks_past_counting_are_a_limit_before_any_is_made() -> None:
    anchor = np.array([0])
    for ticks, allowed in ((TICKS_MAX, True), (TICKS_MAX + 1, False)):
        until = np.array([ticks])
        if allowed:
            assert multiples(anchor, anchor, until, Duration(0, 1), "UTC")[0] == [ticks]
            continue
        with pytest.raises(LimitError, match="more than 10,000,000 ticks of one period"):
            multiples(anchor, anchor, until, Duration(0, 1), "UTC")


def test_g13_ticks_of_business_days_past_counting_are_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calendar, "TICKS_MAX", 12)
    anchor = np.full(3, micros("2026-03-02T00:00"))  # a Monday
    for days, allowed in ((4, True), (7, False)):
        span = anchor, anchor, anchor + days * DAY, BusinessDays(1), "UTC"
        if allowed:
            assert multiples(*span)[0].tolist() == [4, 4, 4]
            continue
        with pytest.raises(LimitError, match="more than 12 ticks of one period"):
            multiples(*span)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The instants that are made from here on, one by one."""
    made: list[int] = []

    def counting(*given: Any) -> int:
        made.append(add(*given))
        return made[-1]

    monkeypatch.setattr(calendar, "add", counting)
    return made


def test_g8_a_flood_of_ticks_ends_before_all_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made = counted(monkeypatch)
    anchor = np.array([micros("2000-01-03T00:00")])
    with pytest.raises(FloodError):
        multiples(anchor, anchor, anchor + 7_000 * DAY, BusinessDays(1), "UTC", limit=3)
    assert len(made) == 4


def test_business_days_far_behind_are_not_counted_from_the_anchor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = counted(monkeypatch)
    anchor, after = np.array([micros("1970-01-05T00:00")]), np.array([micros("2026-03-06T00:00")])
    found = calendar.following(anchor, after, BusinessDays(1), "UTC")
    assert found.tolist() == [micros("2026-03-09T00:00")]
    assert len(made) < 10


@noting(floods=10, far_behind=5, several=5)
def test_multiples_are_those_that_the_reference_counts_one_by_one() -> None:
    def hours(least: int) -> st.SearchStrategy[int]:
        return st.integers(least * 24, 60 * 24).map(lambda hour: hour * DAY // 24)

    wait, length = st.one_of(hours(0), hours(21)), st.one_of(st.just(0), hours(20), hours(40))
    spans = st.tuples(st.sampled_from(SPRING), hours(0), wait, length, st.integers(-1, 1))

    @given(
        st.lists(spans, min_size=1, max_size=4),
        st.sampled_from(PERIODS),
        st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Apia"]),
        st.sampled_from([1, 2, 4, 8, None]),
    )
    @example_count(200)
    def found(
        given_: list[tuple[int, ...]],
        period: Duration | BusinessDays,
        zone: str,
        limit: int | None,
    ) -> None:
        anchor = np.array([begin + hour for begin, hour, *_ in given_])
        after = anchor + np.array([wait for _, _, wait, _, _ in given_])
        until = after + np.array([length + more for *_, length, more in given_])
        slow = [slowly(*each, period, zone) for each in zip(anchor, after, until, strict=True)]
        ticks = [tick for own in slow for tick in own]
        reached = None
        if limit is not None and len(ticks) > limit:
            reached = ceil_watermark(sorted(ticks)[limit - 1])
        flood = reached is not None and reached < until.max()
        noted("floods", flood)
        noted("far behind", bool((after - anchor > 20 * DAY).any()))
        noted("several", len(ticks) > 3)
        if flood:
            with pytest.raises(FloodError) as caught:
                multiples(anchor, after, until, period, zone, limit)
            assert caught.value.reached == reached
            return
        counts, made = multiples(anchor, after, until, period, zone, limit)
        assert (counts.tolist(), made.tolist()) == ([len(own) for own in slow], ticks)

    found()


def slowly(
    anchor: int, after: int, until: int, period: Duration | BusinessDays, zone: str
) -> list[int]:
    """The multiples of a period, each counted from the anchor."""
    found, k = [], 1
    while (tick := timing.add(int(anchor), calendar._times(period, k), zone)) <= until:
        found += [tick] if tick > after else []
        k += 1
    return found
