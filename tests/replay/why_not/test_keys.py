"""Keys that look like the one that is asked for."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.replay.why_not.misses import book, line
from tests.replay.why_not.runs import at, run
from tidegate.engine.core.values import Batch
from tidegate.engine.replay.why_not.keys import near_keys
from tidegate.engine.replay.why_not.ladder import ladder


def near(values: list[Any], asked: Any) -> list[Any]:
    """The keys near one among some, which occurred one after another."""
    rows = np.arange(len(values))
    batch = Batch("a", rows, rows, pa.table({"k": pa.array(values)}))
    return [key["k"] for key, _, _ in near_keys(batch, ("k",), {"k": asked})]


@pytest.mark.parametrize(
    ("values", "asked", "found"),
    [
        ([4, None, 9, 40], 1, []),
        ([4, 2, 30, 0], 1, [0, 2]),
        ([21, 13, 99, 120], 12, [13, 21, 120]),
        ([1002, 1234, 2001, 1003], 1002, [1002, 1003, 2001]),
        ([7, 8], "7", [7]),
        (["7", "8"], 7, ["7"]),
        (["alice", "bob", "Alicia", None], "alica", ["Alicia", "alice"]),
        (["EU", "us"], "eu", ["EU"]),
        ([Decimal("2.50"), Decimal("3.50"), Decimal("9.99")], Decimal("2.5"),
         [Decimal("2.50"), Decimal("3.50")]),
        ([True, False], True, [True]),
        ([True], False, []),
        ([None, 1], None, [None]),
        ([date(2026, 3, 9), date(2026, 3, 3)], date(2026, 3, 2), [date(2026, 3, 3)]),
        ([datetime(2026, 3, 2, 9, tzinfo=UTC), datetime(2026, 4, 2, 8, tzinfo=UTC)],
         datetime(2026, 3, 2, 8, tzinfo=UTC), [datetime(2026, 3, 2, 9, tzinfo=UTC)]),
        ([float("inf"), float("nan")], float("-inf"), [float("inf")]),
    ],
)  # fmt: skip
def test_keys_that_look_alike_and_no_others(
    values: list[Any], asked: Any, found: list[Any]
) -> None:
    assert near(values, asked) == found


def test_a_key_of_two_columns_is_near_where_most_of_it_is() -> None:
    rows = np.arange(3)
    table = pa.table({"account": [7, 7, 4], "region": ["us", "zz", "eu"]})
    found = near_keys(Batch("a", rows, rows, table), ("account", "region"),
                      {"account": 7, "region": "eu"})  # fmt: skip
    assert [[*key.values()] for key, _, _ in found] == [[7, "us"]]


def test_only_what_came_up_to_the_instant_is_near() -> None:
    evidence = run(book("a ; b"), [line("b", 10), line("a", 50, 8), line("a", 600, 6)], 900)
    rung = ladder(evidence, "r", {"k": 7}, at(100))[-1]
    assert [one["key"] for one in rung.evidence["near"]] == [{"k": 8}]
    assert rung.sentence.endswith("`a` came once for k 8, last at 09:00:50.")
    rung = ladder(evidence, "r", {"k": 7}, at(20))[-1]
    assert rung.evidence["near"] == []
