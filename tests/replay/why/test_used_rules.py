"""Which firings of a rule that uses others, or is used, share their rows with a firing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support import make
from tidegate.engine.core.columns.ids import as_binary, as_hex
from tidegate.engine.core.values import Firings
from tidegate.engine.replay.why.used_rules import matching

Row = Mapping[str, Any]  # event, time, version, signal, and parameters
_SOURCES = ("version", "signal")
_ALWAYS = ("event", "time", *_SOURCES, "label")


def fired(rows: Sequence[Sequence[Row]], types: Mapping[str, pa.DataType] | None = None) -> Firings:
    """Firings with these rows; each goes from instant 0 to 9 unless a row says `span`."""
    count = len(rows)
    ids = np.arange(2 * count, dtype=np.uint64).reshape(count, 2)
    spans = [next((row["span"] for row in some if "span" in row), (0, 9)) for some in rows]
    columns = {
        "firing_id": as_binary(ids),
        "started_at": pa.array([start for start, _ in spans], pa.int64()).cast(make.UTC),
        "detected_at": pa.array([end for _, end in spans], pa.int64()).cast(make.UTC),
    }
    every = [row for some in rows for row in some]
    firing = pa.array([n for n, some in enumerate(rows) for _ in some])
    names = dict.fromkeys(n for row in every for n in row if n not in (*_ALWAYS, "span"))
    relation = {
        "firing_id": as_hex(ids).take(firing),
        "event_type": pa.array([row.get("event") for row in every], pa.string()),
        "label": pa.array([row.get("label") for row in every], pa.string()),
        "occurred_at": pa.array([row.get("time", 0) for row in every], pa.int64()).cast(make.UTC),
        **{
            name: pa.array([row.get(name) for row in every], (types or {}).get(name))
            for name in names
        },
    }
    kinds = {"version": pa.int64(), "signal": pa.string()}
    sources = {n: pa.array([row.get(n) for row in every], kinds[n]) for n in _SOURCES}
    return Firings("r", pa.table(columns), pa.table(relation), pa.table(sources))


def numbers(own: Firings, others: Firings, *, later: bool) -> list[int]:
    found = others.hex_ids().to_pylist()
    return [found.index(one) for one in matching(own, others, later=later)]


def expected(own: Sequence[Row], others: Sequence[Sequence[Row]], *, later: bool) -> list[int]:
    """The same row by row: what one side has no value of for an event type says nothing."""
    every = [row for some in others for row in some]

    def known(event: str) -> list[str]:
        sides = [[row for row in side if row["event"] == event] for side in (own, every)]
        names = {name for row in every for name in row}
        return sorted(n for n in names if all(any(r.get(n) is not None for r in s) for s in sides))

    def bag(rows: Sequence[Row]) -> Counter[Any]:
        return Counter(
            (row["event"], *(row.get(name) for name in known(row["event"]))) for row in rows
        )

    mine = bag(own)
    if later:
        return [n for n, some in enumerate(others) if own and mine <= bag(some)]
    return [n for n, some in enumerate(others) if some and bag(some) <= mine]


@pytest.mark.parametrize("later", [True, False])
def test_random_rows_are_shared_as_one_by_one(later: bool) -> None:
    chance, shared, apart = random.Random(11), 0, 0
    for _ in range(150):
        pool: list[Row] = [
            {
                "event": chance.choice("ab"),
                "time": chance.randrange(3),
                "version": chance.choice([None, 7, 8]),
                "k": chance.choice([None, 1, 2]),
            }
            for _ in range(4)
        ]
        wide, narrow = chance.randrange(1, 7), chance.randrange(1, 4)
        size = narrow if later else wide
        own = chance.choices(pool, k=size)
        others = [chance.choices(pool, k=wide if later else narrow) for _ in range(5)]
        wanted = expected(own, others, later=later)
        assert numbers(fired([own]), fired(others), later=later) == wanted
        shared, apart = shared + len(wanted), apart + 5 - len(wanted)
    assert min(shared, apart) > 100, (shared, apart)


def test_rows_are_matched_as_often_as_they_are_there() -> None:
    row = {"event": "a", "time": 1, "version": 7, "k": 1}
    once, twice = [row], [row, row]
    assert numbers(fired([twice]), fired([once, twice]), later=True) == [1]
    assert numbers(fired([once]), fired([once, twice]), later=False) == [0]


def test_each_of_the_rows_has_to_be_there() -> None:
    first, second = ({"event": "a", "time": 1, "version": 7, "k": k} for k in (1, 2))
    assert numbers(fired([[first, second]]), fired([[first], [second]]), later=True) == []
    assert numbers(fired([[first]]), fired([[first, second], [first]]), later=False) == [1]


def test_firings_outside_of_the_interval_do_not_match() -> None:
    row = {"event": "a", "time": 1}
    own = fired([[{**row, "span": (2, 8)}]])
    spans = [(2, 8), (1, 9), (3, 8), (2, 7), (1, 7), (3, 9)]
    others = fired([[{**row, "span": span}] for span in spans])
    assert numbers(own, others, later=True) == [0, 1]
    assert numbers(own, others, later=False) == [0, 2, 3]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (4, Decimal("4.00")),
        (Decimal("4.5"), 4.5),
        ({"x": 1, "y": [1, 2]}, {"x": 1, "y": [1, 2], "z": "only here"}),
        ([1, 2], [1, 2]),
        (float("nan"), float("nan")),
    ],
)
def test_equal_values_match_whatever_their_types(one: Any, other: Any) -> None:
    rows = [[{"event": "a", "v": other}], [{"event": "a", "v": _another(other)}]]
    assert numbers(fired([[{"event": "a", "v": one}]]), fired(rows), later=True) == [0]


def _another(value: Any) -> Any:
    match value:
        case dict():
            return {**value, "x": 2}
        case list():
            return value[:1]
    return type(value)(9)


def test_the_span_of_a_label_is_no_parameter() -> None:
    own = {"event": "a", "label": "d", "d_start": 1, "k": 1}
    assert numbers(fired([[own]]), fired([[{**own, "d_start": 2}]]), later=True) == [0]


def test_a_firing_without_constituents_shares_nothing() -> None:
    empty, row = {"event": None, "k": None}, {"event": "a", "k": 1}
    assert numbers(fired([[empty]]), fired([[row], [empty]]), later=True) == []
    assert numbers(fired([[row]]), fired([[empty]]), later=False) == []


def test_many_rows_of_one_commit_are_joined_not_compared() -> None:
    rows = [{"event": "a", "time": 1, "version": 7, "k": n} for n in range(30_000)]
    own, others = fired([rows]), fired([rows, rows[1:]])
    assert numbers(own, others, later=True) == [0]
    assert numbers(own, others, later=False) == [0, 1]


def test_where_sources_are_not_known_the_rest_tells() -> None:
    row = {"event": "a", "time": 1, "version": 7, "k": 1}
    own = replace(fired([[row]]), sources=None)
    assert numbers(own, fired([[row], [{**row, "k": 2}]]), later=True) == [0]
