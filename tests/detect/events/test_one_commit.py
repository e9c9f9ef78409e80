"""Rows of one commit are simultaneous. However many they are, each operator puts them in order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tidegate import detect

ROWS = 200_000
"""A sort that compares each with each takes minutes for them."""
BOOK = """
rulebook: r
events: {{a: {{signal: {{k: bigint, v: bigint}}}}, b: {{signal: {{k: bigint, v: bigint}}}}}}
rules: {{r: {{{}}}}}
"""


def commit(count: int) -> pa.Table:
    """Rows of `a` at one instant in any order, many of them equal; and one of `b` after them."""
    values = np.random.default_rng(7).integers(0, count // 4, count)
    events = pa.array([*["a"] * count, "b"])
    time, key = np.append(np.full(count, 1), 2), np.zeros(count + 1, np.int64)
    return pa.table({"event": events, "time": time, "k": key, "v": np.append(values, count)})


@pytest.mark.parametrize(
    "rule",
    [
        "on: {window: 10 s, every: 10 s, of: a}",
        "on: {over: {window: 10 s, of: a, fire: count(*) > 1}}",
        "on: {over: {window: 10 s, of: a, fire: count(*) > 1}}, per: k",
    ],
)
def test_the_rows_of_a_window_are_in_order_of_their_parameters(rule: str) -> None:
    table = commit(ROWS)
    (constituents,) = detect(BOOK.format(rule), table).column("constituents").to_pylist()
    values = table.column("v").to_numpy()[:-1]
    assert constituents == np.argsort(values, kind="stable").tolist()


@pytest.mark.parametrize("where", ["", ", where: a.v < b.v"])
def test_the_oldest_of_a_commit_is_the_lowest_of_its_rows(where: str) -> None:
    rule = f"on: a ; b within 10 s, context: chronicle{where}"
    (found,) = detect(BOOK.format(rule), commit(ROWS)).column("constituents").to_pylist()
    values = commit(ROWS).column("v").to_numpy()[:-1]
    assert found == [int(np.argmin(values)), ROWS]


def test_what_occurs_together_is_never_in_sequence() -> None:
    """Of a and b at one instant, in any order, none is before another; the last b is after all."""
    count, random = 2_000, np.random.default_rng(7)
    events = pa.array([*random.choice([*"ab"], count), "b"])
    times, values = np.append(np.full(count, 1), 2), random.permutation(count + 1)
    table = pa.table({"event": events, "time": times, "v": values})
    found = detect(BOOK.format("on: a ; b within 10 s, context: chronicle"), table)
    least = min(values[:count][np.array(events[:count]) == "a"])
    assert found.column("constituents").to_pylist() == [[values.tolist().index(least), count]]
