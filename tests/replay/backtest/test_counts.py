"""What became of the detections of a backtest, counted."""

from __future__ import annotations

import numpy as np
import pytest

from tests.replay.backtest.made import APRIL, DAY, MARCH, SECOND, backtest, firing
from tidegate.engine.core.text.times import day_text
from tidegate.engine.replay.backtest.against import compared
from tidegate.engine.replay.backtest.counts import busiest, by_period, by_rule
from tidegate.engine.replay.backtest.model import Backtest, RuleFound, Span
from tidegate.engine.replay.backtest.report.timelines import timelines

HOUR = 3_600 * SECOND
OUTCOMES = [("none", None), ("held", None), ("failed", None), ("dead", None), ("skipped", None),
            ("held", "cooldown"), ("failed", "cooldown"), ("skipped", "batch")]  # fmt: skip


def of_days(found: Backtest, periods_max: int = 400) -> dict[str, dict[str, int]]:
    """By period, by rule: those that are not 0."""
    periods = by_period(found, periods_max)
    return {
        day_text(day): {rule: int(own[n]) for rule, own in periods.counts.items() if own[n]}
        for n, day in enumerate(periods.starts.tolist())
    }


def test_a_detection_counts_once_under_what_became_of_it() -> None:
    rows = [
        firing("pay", "{}", MARCH + n, condition=condition, damped=damped)
        for n, (condition, damped) in enumerate(OUTCOMES)
    ]
    counts = by_rule(backtest(rows, "quiet", "pay"))
    assert list(counts) == ["quiet", "pay"]
    assert set(counts["quiet"].values()) == {0}
    assert counts["pay"] == {
        "fired": 2, "condition_failed": 2, "damped": 2, "dead": 1, "unasked": 1
    }  # fmt: skip


def test_days_are_those_of_the_zone_without_gaps() -> None:
    """On 2026-03-29 clocks in Berlin go from 2 to 3: midnight moves from 23:00 to 22:00 UTC."""
    zone = Span(MARCH - HOUR, APRIL - 2 * HOUR, "Europe/Berlin")
    ends = [MARCH - HOUR, MARCH + 23 * HOUR - 1, MARCH + 23 * HOUR,
            MARCH + 29 * DAY - 2 * HOUR, MARCH + 29 * DAY - 2 * HOUR - 1]  # fmt: skip
    days = of_days(backtest([firing("pay", "{}", end) for end in ends], span=zone))
    assert len(days) == 31
    first, *_, last = days
    assert (first, last) == ("2026-03-01", "2026-03-31")
    assert {day: own["pay"] for day, own in days.items() if own} == {
        "2026-03-01": 2, "2026-03-02": 1, "2026-03-29": 1, "2026-03-30": 1
    }  # fmt: skip


def test_the_first_instant_of_a_day_after_the_span_is_shown_only_if_something_fired() -> None:
    assert list(of_days(backtest([], "pay")))[-1] == "2026-03-31"
    assert list(of_days(backtest([firing("pay", "{}", APRIL)])))[-1] == "2026-04-01"


@pytest.mark.parametrize(
    ("periods_max", "unit", "starts"),
    [
        (31, "day", 31),
        (30, "week", 6),
        (5, "month", 1),
        (0, "year", 1),
    ],
)
def test_a_longer_span_has_longer_periods_and_loses_no_firing(
    periods_max: int, unit: str, starts: int
) -> None:
    rows = [firing("pay", "{}", MARCH + n * 7 * HOUR) for n in range(100)]
    periods = by_period(backtest(rows), periods_max)
    assert (periods.unit, len(periods.starts)) == (unit, starts)
    assert int(periods.counts["pay"].sum()) == 100
    assert np.all(periods.starts <= MARCH // DAY + np.arange(len(periods.starts)) * 366)


def test_only_what_fired_is_in_periods_and_busiest() -> None:
    rows = [
        firing("pay", '{"a":1}', MARCH, condition=condition, damped=damped)
        for condition, damped in OUTCOMES
    ]
    found = backtest(rows)
    assert of_days(found)["2026-03-01"] == {"pay": 3}
    assert [one.count for one in busiest(found, 5)] == [3]


def test_the_busiest_keys_are_those_of_most_firings() -> None:
    rows = [firing("pay", f'{{"a":{n % 4}}}', MARCH + n) for n in range(10)]
    rows += [firing("tell", "{}", MARCH)] * 9 + [firing("tell", None, MARCH)] * 4
    found = [(one.rule, one.key, one.count) for one in busiest(backtest(rows), 4)]
    assert found == [
        ("tell", None, 4), ("pay", '{"a":0}', 3), ("pay", '{"a":1}', 3), ("pay", '{"a":2}', 2)
    ]  # fmt: skip


def test_rules_that_are_not_asked_for_count_nowhere() -> None:
    rows = [firing(rule, '{"a":1}', MARCH) for rule in ("pay", "tell", "tell")]
    found = backtest(rows, "pay", RuleFound("tell", shown=False))
    assert list(by_rule(found)) == ["pay"]
    assert of_days(found)["2026-03-01"] == {"pay": 1}
    assert [(one.rule, one.count) for one in busiest(found, 5)] == [("pay", 1)]
    assert timelines(found).data["rule"] == [0]
    assert len(compared(found, backtest([], "pay")).only_one) == 1
