"""The instants at which windows end: multiples, local midnights, Mondays, firsts of months."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tests.reference.timing import to_micros
from tests.reference.windows.tumbling import grid as every
from tidegate.engine.detect.events.graph.grids import Grid, back, grid
from tidegate.engine.detect.events.graph.search_limits import LimitError
from tidegate.rules.expressions.durations import duration

HOUR = 3_600_000_000
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/Sao_Paulo",  # until 2019 a midnight in October was skipped
    "America/Havana",  # and one in November is read twice
    "America/Toronto",  # clocks went forward at half past eleven on 30 March 1919
    "Pacific/Apia",  # without 30 December 2011
    "Asia/Kathmandu",
)
LENGTHS = ("1 day", "2 days", "3 days", "1 week", "2 weeks", "1 month", "3 months", "1 year")
CHANGES = ("2026-03-29", "2026-10-25", "2017-10-15", "2025-11-02", "1919-03-31", "2011-12-30")


def at(text: str, zone: str) -> int:
    return to_micros(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)))


@pytest.mark.parametrize("zone", ZONES)
@given(data=st.data())
@example_count(120, 10)
def test_s11_each_point_is_that_of_the_calendar(zone: str, data: st.DataObject) -> None:
    length = duration(data.draw(st.sampled_from(LENGTHS)))
    around = at(data.draw(st.sampled_from(CHANGES)), "UTC")
    hour = st.integers(-40 * 24, 40 * 24).map(lambda hours: around + hours * HOUR)
    near = data.draw(st.lists(hour, min_size=1, max_size=4))
    points = every(length, min(near), max(near), zone)
    beside = [point + by for point in points for by in (-1, 0, 1)]
    instants = sorted(t for t in (*near, *beside) if points[0] <= t < points[-1])
    found = grid(length, zone).after(np.array(instants, dtype=np.int64)).tolist()
    assert found == [next(point for point in points if point > t) for t in instants]


@pytest.mark.parametrize(
    ("length", "instant", "ends"),
    [
        ("1 d", "2026-03-29T12:00", "2026-03-30T00:00"),  # a day of 23 hours
        ("1 d", "2026-10-25T12:00", "2026-10-26T00:00"),  # and of 25
        ("24 h", "2026-10-25T12:00", "2026-10-26T00:00"),  # which is a day
        ("2 d", "1970-01-02T12:00", "1970-01-03T00:00"),
        ("1 week", "2026-03-29T23:59:59", "2026-03-30T00:00"),
        ("7 d", "2026-03-30T00:00", "2026-04-06T00:00"),
        ("2 weeks", "1970-01-05T00:00", "1970-01-19T00:00"),
        ("1 month", "2026-01-31T23:59:59", "2026-02-01T00:00"),
        ("3 months", "2026-02-28T12:00", "2026-04-01T00:00"),
        ("1 year", "2026-12-31T12:00", "2027-01-01T00:00"),
        ("12 h", "2026-03-29T12:30", "2026-03-29T14:00"),  # of UTC
        ("36 h", "1970-01-01T00:30", "1970-01-01T01:00"),
    ],
)
def test_days_weeks_and_months_are_local(length: str, instant: str, ends: str) -> None:
    zone = "Europe/Berlin"
    found = grid(duration(length), zone).after(np.array([at(instant, zone)]))
    assert found.tolist() == [at(ends, zone)]


def test_so_many_local_days_or_months_back() -> None:
    zone = "Europe/Berlin"
    for begin, length, end in (
        ("2026-03-29", "1 d", "2026-03-30"),
        ("2026-10-19", "7 d", "2026-10-26"),
        ("2026-02-28", "1 month", "2026-03-31"),
        ("2025-03-31", "12 months", "2026-03-31"),
    ):
        assert back(at(end, zone), duration(length), zone) == at(begin, zone)


def test_lengths_without_days_are_one_grid_in_all_zones() -> None:
    """So rules of two rulebooks, or one whose zone is edited, share what they carry."""
    assert grid(duration("5 min"), "Europe/Berlin") == grid(duration("5 min"), "UTC")
    assert grid(duration("1 d"), "Europe/Berlin") != grid(duration("1 d"), "UTC")


def test_days_end_with_the_year_9999() -> None:
    last = at("9999-12-31T12:00", "UTC")
    with pytest.raises(LimitError, match="year 1 to 9999"):
        Grid(duration("1 d"), "UTC").after(np.array([last]))


@pytest.mark.parametrize("length", ["3000 years", "3000000 d", "2026 years"])
def test_days_begin_with_the_year_1(length: str) -> None:
    with pytest.raises(LimitError, match="year 1 to 9999"):
        back(at("2026-03-30", "UTC"), duration(length), "UTC")
