"""The context of a transition: addresses of the columns that a script's functions read and write,
as words in one array."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.engine.script.compiled.layout import Layout
from tidegate.engine.values import Int64

ROOM, CAUSE, KEY, OUTPUT, NUMBER, ROW, COUNTS, TIMERS, WHERE, WAS, HEAD = range(11)
"""The first words: how many emissions there is room for; addresses of their columns, of the number
of rows of each output, of timers, of what a transition has overwritten and where."""
OUTPUTS, EVENTS, KEYS = range(3)
"""Then come those of the words of outputs, events and keys: of integers, of doubles."""


Columns = dict[int, tuple[npt.NDArray[Any], int]]
"""Columns by their words in the context; where the values of place n stand: at n - first."""


class Context:
    """Which word of the context is which."""

    def __init__(self, layout: Layout) -> None:
        doubles = sum(word.double for word in layout.keys)
        counts = (
            *(layout.out.integers, layout.out.doubles),
            *(layout.arriving.integers, layout.arriving.doubles),
            *(len(layout.keys) - doubles, doubles),
        )
        self._starts = HEAD + np.cumsum([0, *counts])

    def place(self, of: int, double: bool, number: int) -> int:
        """The word of a column."""
        return int(self._starts[2 * of + double]) + number

    def words(self, found: Any, scratch: Any, columns: Columns) -> Int64:
        """The context. `found`, `scratch`: the kernel's; `columns`: those of events and keys."""
        words = np.zeros(self._starts[-1], np.int64)
        words[ROOM] = len(found.cause)
        arrays = (found.cause, found.key, found.output, found.number, found.row, found.counts,
                  scratch.timers, scratch.where, scratch.was)  # fmt: skip
        words[CAUSE:HEAD] = [*map(_address, arrays)]
        for double, file in enumerate((found.integers, found.doubles)):
            for number, column in enumerate(file):
                words[self.place(OUTPUTS, bool(double), number)] = _address(column)
        for place, (column, first) in columns.items():
            words[place] = _address(column) - first * column.itemsize
        return words


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])
