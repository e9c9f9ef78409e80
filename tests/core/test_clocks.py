"""Clock occurrences against plain enumeration, around changes of clocks (S11)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.load import micros
from tests.reference.examples import example_count
from tests.reference.strategies import SECOND
from tests.reference.timing import clock_instants
from tidegate.engine.core.clocks import RunningClock
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions.nodes import Clock, Cron
from tidegate.rules.expressions.parser import parse

HOUR = 3_600_000_000
CHANGES = [  # a gap and a repeated hour; of half an hour; at midnight; of a whole day
    ("Europe/Berlin", "2026-03-29T01:00"),
    ("Europe/Berlin", "2026-10-25T01:00"),
    ("America/New_York", "2026-03-08T07:00"),
    ("America/New_York", "2026-11-01T06:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00"),
    ("Asia/Beirut", "2026-03-28T22:00"),
    ("America/Sao_Paulo", "2018-02-18T02:00"),
    ("Pacific/Apia", "2011-12-30T10:00"),
]
TEXTS = [
    "<(02:30:00)*/*/*>",
    "<(*:30:15)*/*/*>",
    "<(00:*:00)*/*/*>",
    "<(23:59:00)*/*/*>",
    'cron("*/30 * * * *")',
    'cron("*/20 0-3,23 * * *")',
    'cron("0 */2 * * sat,sun")',
    'cron("10 0,2 29,30 * *")',
    'cron("30 2 L,29W * *")',
    'cron("*/30 * * * sun#5,satL")',
]


@given(
    st.sampled_from(TEXTS).map(parse),
    st.sampled_from(CHANGES),
    st.integers(-30 * 60, 30 * 60),
    st.integers(1 * 60, 60 * 60),
    st.sampled_from([(), (5, 6)]),
    st.sampled_from([(), ("2026-03-29", "2026-11-01")]),
)
@example_count(200)
def test_s11_clock_occurrences_around_changes_of_clocks(
    expression: Clock | Cron,
    change: tuple[str, str],
    begin: int,
    length: int,
    days: tuple[int, ...],
    excluded: tuple[str, ...],
) -> None:
    zone, moment = change
    first = micros(moment) + begin * HOUR // 60
    last = first + length * HOUR // 60
    clock = RunningClock("c", expression, zone, days, excluded)
    found = clock.instants(first, last).tolist()
    assert found == clock_instants(expression, first, last, zone, days, excluded)
    following = clock.following(first - 1)
    assert following == found[0] if found else following is None or following > last


DAYS = ["*", "L", "L-1", "L-3", "L-28", "L-30", "1W", "15W", "28W", "30W", "31W", "LW", "1", "30,L"]
DAYS += ["15W,L", "1-7"]
WEEKDAYS = [
    "*",
    "mon#2",
    "1#2",
    "sun#1",
    "0#5",
    "7#5",
    "friL",
    "0L",
    "sat#5",
    "mon-fri",
    "tue,wed#3",
]


@given(
    st.sampled_from(DAYS),
    st.sampled_from(["*", "2", "feb,dec", "*/3"]),
    st.sampled_from(WEEKDAYS),
    st.integers(1990, 2060),
)
@example_count(150)
def test_s11_days_that_depend_on_the_month(
    days: str, months: str, weekdays: str, year: int
) -> None:
    """Against the reference, which goes through the dates of each month."""
    cron = Cron(text=f"0 12 {days} {months} {weekdays}")
    first, last = micros(f"{year}-01-01T00:00"), micros(f"{year + 1}-12-31T23:00")
    assert RunningClock("c", cron, "UTC").instants(first, last).tolist() == clock_instants(
        cron, first, last, "UTC"
    )


@pytest.mark.parametrize(
    ("line", "dates"),
    [
        ("0 0 L * *", "01-31 02-28 03-31"),
        ("0 0 L-3 * *", "01-28 02-25 03-28"),
        ("0 0 15W * *", "01-15 02-16 03-16"),  # two Sundays
        ("0 0 1W * *", "01-01 02-02 03-02"),  # two Sundays, which have no day before them
        ("0 0 31W * *", "01-30 03-31"),  # a Saturday
        ("0 0 LW * *", "01-30 02-27 03-31"),
        ("0 0 * * mon#2", "01-12 02-09 03-09"),
        ("0 0 * * sat#5", "01-31"),
        ("0 0 * * friL", "01-30 02-27 03-27"),
        ("0 0 L * mon#1", "01-05 01-31 02-02 02-28 03-02 03-31"),  # both restricted: either
    ],
)
def test_s11_days_of_2026(line: str, dates: str) -> None:
    begin, end = micros("2026-01-01T00:00"), micros("2026-03-31T12:00")
    found = RunningClock("c", Cron(text=line), "UTC").instants(begin, end).tolist()
    assert found == [micros(f"2026-{date}T00:00") for date in dates.split()]


@pytest.mark.parametrize(
    ("text", "after", "following"),
    [
        ("<(08:00:00)03/01/2090>", "2026-03-02T09:00", "2090-03-01T08:00"),
        ("<(08:00:00)03/01/2020>", "2026-03-02T09:00", None),
        ('cron("0 0 29 2 mon")', "2026-03-02T09:00", "2027-02-01T00:00"),
        ("<(00:00:00)02/29/*>", "2096-03-01T00:00", "2104-02-29T00:00"),
    ],
)
def test_the_next_occurrence_of_a_clock_may_be_years_away(
    text: str, after: str, following: str | None
) -> None:
    found = RunningClock("c", parse(text), "UTC").following(micros(after))
    assert found == (None if following is None else micros(following))


def test_a_clock_does_not_occur_on_the_holidays_of_its_region() -> None:
    """The 8th of March is one in Berlin and none in Bavaria."""
    begin, end = micros("2026-03-06T00:00"), micros("2026-03-10T00:00")
    noon = parse("<(12:00:00)*/*/*>")
    berlin, bavaria = (
        RunningClock("c", noon, "UTC", holidays=(region,)).instants(begin, end)
        for region in ("DE-BE", "DE-BY")
    )
    assert len(bavaria) == 4
    assert sorted({*bavaria.tolist()} - {*berlin.tolist()}) == [micros("2026-03-08T12:00")]


def test_a_time_far_off_is_named_instead_of_looking_for_hours() -> None:
    end = 170_000_000_000 * SECOND
    with pytest.raises(EngineError, match=r"from 1970-01-01T00:00:01.* to 7357-.*: more than 200"):
        RunningClock("c", Cron(text="0 * * * *"), "UTC").instants(SECOND, end)
    with pytest.raises(EngineError, match="10,000,000 times"):
        RunningClock("c", Cron(text="* * * * *"), "UTC").instants(0, 30 * 366 * 86_400 * SECOND)
