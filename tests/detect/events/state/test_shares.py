"""What the tasks of a share have left, put together (G26)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import Carried
from tidegate.engine.detect.events.occurrences.instances import Instances
from tidegate.engine.detect.events.state.partitions import due_of, marked, timers_of
from tidegate.engine.detect.events.state.shares import after_tasks
from tidegate.engine.detect.events.state.tables import check, write_instances

NODE = "node:1f/every"


def node(*found: tuple[int, int, int], key: Any = None, due: int = 99, timers: int = 0) -> pa.Table:
    """Instances of every key: slot, start, end; each of the occurrence at its start."""
    slot, start, end = np.array(found, dtype=np.int64).reshape(-1, 3).T
    rows, none = np.arange(len(slot)), np.zeros(len(slot), dtype=np.int16)
    whole = Instances(none, start, end, np.arange(len(slot) + 1), rows, none)
    keys = [pa.nulls(len(slot), key or pa.int64())]
    every, number = np.ones(len(slot), np.bool_), np.zeros_like(start)
    table = write_instances(slot.astype(np.int16), every, keys, whole, start, number)
    return marked(table, 4, due, timers)


def spans(table: pa.Table) -> list[tuple[int, ...]]:
    names = ("slot", "start", "end")
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


def test_g26_what_any_task_needs_of_every_key_stays() -> None:
    """The first task drops the older instance of slot 0, the second that of slot 1; their keys are
    of other types."""
    before = node((0, 1, 4), (0, 3, 3), (0, 3, 3), (1, 2, 2), (1, 5, 6))
    one = node((0, 3, 3), (0, 3, 3), (1, 2, 2), (1, 5, 6), due=50, timers=1)
    other = node((0, 1, 4), (0, 3, 3), (0, 3, 3), (1, 5, 6), key=pa.string(), due=40, timers=2)
    left = [({NODE: one}, ()), ({NODE: other}, ())]
    tables = after_tasks(Carried({NODE: before}), left).tables
    assert spans(tables[NODE]) == [(0, 3, 3), (0, 3, 3), (0, 1, 4), (1, 2, 2), (1, 5, 6)]
    assert tables[NODE].column("times").to_pylist() == [[3], [3], [1], [2], [5]]
    assert (due_of(tables[NODE]), timers_of(tables[NODE])) == (40, 2)
    check(tables)


def test_g26_what_one_task_has_not_changed_stays() -> None:
    before, fewer = node((0, 1, 4), (0, 5, 5)), node((0, 5, 5))
    for others in ([({NODE: fewer}, ())], [({}, (NODE,))], [({NODE: fewer}, ()), ({}, (NODE,))]):
        tables = after_tasks(Carried({NODE: before}), [*others, ({}, ())]).tables
        assert spans(tables[NODE]) == [(0, 1, 4), (0, 5, 5)]


def test_g26_what_no_task_needs_goes() -> None:
    before, fewer = node((0, 1, 4), (0, 5, 5)), node((0, 5, 5))
    tables = after_tasks(Carried({NODE: before}), [({}, (NODE,)), ({NODE: fewer}, ())]).tables
    assert spans(tables[NODE]) == [(0, 5, 5)]
    assert not after_tasks(Carried({NODE: before}), [({}, (NODE,)), ({}, (NODE,))]).tables
