"""The occurrences of clocks that a plan passes over are counted, each once."""

from __future__ import annotations

import pytest

from tidegate.engine.capture.schedule import Clocks
from tidegate.engine.core.clocks import RunningClock
from tidegate.engine.core.values import Plan
from tidegate.rules.expressions.nodes import Cron
from tidegate.rules.model import Settings

MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE
BEGIN = 20_000 * DAY


@pytest.mark.parametrize(
    ("before", "until", "count"),
    [
        (BEGIN, BEGIN + 9 * MINUTE, 9),
        (BEGIN, BEGIN + 9 * MINUTE - 1, 8),
        (BEGIN - 1, BEGIN + 9 * MINUTE, 10),
        (BEGIN, BEGIN + 3 * DAY, 3 * 24 * 60),
        (BEGIN - 1, BEGIN + 3 * DAY + 1, 3 * 24 * 60 + 1),
        (BEGIN, BEGIN, 0),
    ],
)
def test_what_is_passed_over_is_after_the_last_bucket_and_up_to_its_end(
    before: int, until: int, count: int
) -> None:
    clocks = [RunningClock(name, Cron("* * * * *"), "UTC") for name in ("minutely", "fired")]
    plan = Plan("b", 2, before, until + DAY, until + DAY, passed_over={"minutely": until})
    missed = Clocks(clocks, Settings()).missed(plan, plan.watermark_before)
    assert missed == ({"minutely": count} if count else {})
