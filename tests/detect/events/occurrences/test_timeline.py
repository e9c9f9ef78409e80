"""The arrivals of a step in order of time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tidegate import detect
from tidegate.engine.core.values import Batch
from tidegate.engine.detect.events.occurrences.occurrence_table import read_occurrences
from tidegate.engine.detect.events.occurrences.timeline import Timeline, of_batches, of_table


def test_the_first_arrival_of_each_event_type() -> None:
    """Of a table in any order, one of whose types has no row; of batches; of nothing."""
    events = pa.DictionaryArray.from_arrays([3, 0, 3, 0, 1], ["a", "b", "never", "c"])
    table = pa.table({"event": events, "time": [5, 9, 3, 4, 4]})
    assert of_table(read_occurrences(table)).firsts == {"a": 4, "b": 4, "c": 3}
    assert of_table(read_occurrences(table.slice(0, 0))).firsts == {}
    rows = {"a": [4, 9], "b": [2], "never": list[int]()}
    batches = {
        event: Batch(event, np.array(times, np.int64), np.arange(len(times)), pa.table({}))
        for event, times in rows.items()
    }
    assert of_batches(batches).firsts == {"a": 4, "b": 2}
    assert of_batches({}).firsts == {}


def test_a_chain_over_a_table_makes_no_batch_of_an_event_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A million rows would be cut for nothing."""
    monkeypatch.delattr(Timeline, "batch")
    book = "rulebook: t\nevents: {a: {signal: {}}, b: {signal: {}}}\nrules: {r: {on: a ; b}}"
    found = detect(book, pa.table({"event": ["a", "b"], "time": [1, 2]}))
    assert found["constituents"].to_pylist() == [[0, 1]]
