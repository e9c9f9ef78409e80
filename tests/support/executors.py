"""Executors in this process: what they are given and what they give goes through bytes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from tidegate.engine.core.ports import SAME_1, Feed, ReadRequest
from tidegate.engine.core.values import TableRange
from tidegate.rules.model import Table

Given = TypeVar("Given")
Made = TypeVar("Made")


class InProcess:
    """So many slots; `tasks`: how many calls each `map` was asked for. Rows of `feed` are read in
    splits of `split`; `splits`: how many there were."""

    feed: Feed

    def __init__(self, slots: int = 2, split: int = 2) -> None:
        self.slots, self.split = slots, split
        self.tasks: list[int] = []
        self.splits = 0

    def map(self, call: Callable[[Given], Made], given: Sequence[Given]) -> list[Made]:
        self.tasks.append(len(given))
        own = sent(call)
        return [sent(own(sent(one))) for one in given]

    def rows(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        return self.feed.read(table, span, request)

    def map_rows(
        self,
        rows: Sequence[Any],
        cut: Callable[[int, int, pa.Table], Sequence[tuple[int, Any]]],
        call: Callable[[Given, Sequence[Any]], Made],
        given: Sequence[Given],
    ) -> tuple[list[Made], list[Any]]:
        self.tasks.append(len(given))
        parts: list[list[Any]] = [[] for _ in range(len(given) + 1)]
        own, splits = sent(cut), [*self._splits(rows)]
        self.splits += len(splits)
        for number, (table, split) in enumerate(reversed(splits)):  # in no order of the rows
            for place, part in own(table, number << 40, sent(split)):
                parts[place].append(sent(part))
        run = sent(call)
        made = [sent(run(sent(one), parts[n])) for n, one in enumerate(given)]
        return made, parts[-1]

    def _splits(self, rows: Sequence[pa.Table]) -> Iterator[tuple[int, pa.Table]]:
        for table, whole in enumerate(rows):
            size = len(whole) if SAME_1 in whole.column_names else self.split
            for first in range(0, len(whole), max(1, size)):
                yield table, whole.slice(first, size)


def sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))
