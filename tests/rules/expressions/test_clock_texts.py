"""Small readers of text: lengths of time, cron lines."""

from __future__ import annotations

import pytest

from tidegate.rules.expressions.clock_texts import cron
from tidegate.rules.expressions.durations import (
    duration,
    duration_micros,
    format_duration,
    lacks_unit,
)
from tidegate.rules.expressions.nodes import Duration

DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", Duration(0, 5_000_000)),
        ("5 us", Duration(0, 5)),
        ("1.5 ms", Duration(0, 1_500)),
        ("0.1 s", Duration(0, 100_000)),
        ("5m", Duration(0, 300_000_000)),
        ("1 year", Duration(12, 0)),
        ("2 months", Duration(2, 0)),
        ("0", Duration(0, 0)),
        ("(01:02:03)04/05/06", Duration(76, 5 * DAY + 3_723_000_000)),
        ("30 minutes", Duration(0, 1_800_000_000)),
        ("1h30m", Duration(0, 5_400_000_000)),
        (" 1 hour 30 seconds ", Duration(0, 3_630_000_000)),
        ("1 month 2 s", Duration(1, 2_000_000)),
        ("PT5M", Duration(0, 300_000_000)),
        ("P1Y2M1DT0.5S", Duration(14, DAY + 500_000)),
    ],
)
def test_duration(text: str, value: Duration) -> None:
    assert duration(text) == value
    assert duration(format_duration(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "min",
        "5 5",
        "-5",
        "5 min 3 min",
        "1h30",
        "1,5 s",
        "٣ s",
        "P",
        "PT",
        "PT5",
        "P1H",
        "pt5m",
    ],
)
def test_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a length of time"):
        duration(text)


@pytest.mark.parametrize(
    ("text", "lacking"),
    [("5", True), (" 1.5 ", True), ("0", False), ("5 s", False), ("PT5S", False)],
)
def test_a_number_alone_lacks_its_unit(text: str, lacking: bool) -> None:
    assert lacks_unit(text) is lacking


@pytest.mark.parametrize(
    ("text", "micros"),
    [("500ms", 500_000), ("2s", 2_000_000), ("0", 0)],
)
def test_length_in_microseconds(text: str, micros: int) -> None:
    assert duration_micros(text) == micros


@pytest.mark.parametrize("text", ["1 month", "soon"])
def test_no_length_in_microseconds(text: str) -> None:
    with pytest.raises(ValueError, match=r"no fixed length|not a length of time"):
        duration_micros(text)


def test_s11_cron_is_vixies() -> None:
    fields = cron("*/20 8-10 1,15 jan-mar 5-7")
    assert fields.minutes == {0, 20, 40}
    assert fields.hours == {8, 9, 10}
    assert (fields.days, fields.months) == ({1, 15}, {1, 2, 3})
    assert fields.weekdays == {5, 6, 0}
    assert fields.either_day
    assert cron("0 0 * * 0").weekdays == cron("0 0 * * 7").weekdays == {0}
    assert cron("0 0 * * *").weekdays == set(range(7))
    assert not cron("0 0 1 * *").either_day
    assert not cron("0 0 */2 * mon").either_day
    assert cron("0 0 30 2,3 *").days == {30}
