"""Lengths of time at the ends of the calendar, and ticks past counting."""

from __future__ import annotations

import numpy as np
import pytest

from tests.golden.load import micros
from tidegate.engine.detect.events.graph.calendar import TICKS_MAX, add, multiples
from tidegate.engine.detect.events.graph.search_limits import LimitError
from tidegate.rules.expressions.nodes import Duration

MONTH = Duration(1, 0)


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
        with pytest.raises(LimitError, match="10,000,001 ticks of one period"):
            multiples(anchor, anchor, until, Duration(0, 1), "UTC")
