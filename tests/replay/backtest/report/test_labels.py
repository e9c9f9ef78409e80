"""Words for what a report shows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.replay.backtest.made import DAY, MARCH, SECOND
from tidegate.engine.replay.backtest.report.labels import instant_labels, key_label


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("{}", ""),
        ('{"account_id":7,"day":"2026-03-02"}', "account_id=7, day=2026-03-02"),
        ('{"a":null,"b":true,"c":"null"}', "a=null, b=true, c=null"),
        ('{"a":12.50,"b":0.1}', "a=12.50, b=0.1"),
        (f'{{"a":{10**37 + 1}}}', f"a={10**37 + 1}"),
        ('{"a":{"b":[1,{"c":2.0}]}}', 'a={"b":[1,{"c":2.0}]}'),
        (None, "null"),
    ],
)
def test_a_key_is_shown_with_its_values_as_they_are(key: str | None, label: str) -> None:
    assert key_label(key) == label


def test_instants_are_those_of_the_zone_to_the_microsecond() -> None:
    summer = MARCH + 28 * DAY + 2 * 3_600 * SECOND  # after clocks were set, 2026-03-29
    found = instant_labels(np.array([MARCH, MARCH + 1, summer]), "Europe/Berlin")
    assert found == ["2026-03-01 01:00:00", "2026-03-01 01:00:00.000001", "2026-03-29 04:00:00"]


def test_instants_beyond_python_s_years_are_shown() -> None:
    found = instant_labels(np.array([253_402_300_800 * SECOND, -62_167_219_200 * SECOND]), "UTC")
    assert found == ["+10000-01-01 00:00:00", "0000-01-01 00:00:00"]
