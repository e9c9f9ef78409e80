"""The context of a transition: addresses of the columns that a script's functions read and write,
as words in one array."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.engine.core.values import FOREVER, Int64
from tidegate.engine.detect.scripts.compiled import kernel
from tidegate.engine.detect.scripts.compiled.layout import Counter, Layout

ROOM, CAUSE, KEY, OUTPUT, NUMBER, ROW, COUNTS, TIMERS, WHERE, WAS, CLOCKS, HEAD = range(12)
"""The first words: how many emissions there is room for; addresses of their columns, of the number
of rows of each output, of timers, of what a transition has overwritten and where, of clocks."""
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

    def words(self, found: kernel.Found, own: kernel.Scratch, columns: Columns) -> Int64:
        """The context. `columns`: those of events and keys."""
        words = np.zeros(self._starts[-1], np.int64)
        words[ROOM] = len(found.cause)
        columns_of = found.cause, found.key, found.output, found.number, found.row, found.counts
        words[CAUSE:TIMERS] = [_address(column) for column in columns_of]
        words[TIMERS:HEAD] = [_address(column) for column in own]
        for double, file in enumerate((found.integers, found.doubles)):
            for number, column in enumerate(file):
                words[self.place(OUTPUTS, bool(double), number)] = _address(column)
        for place, (column, first) in columns.items():
            words[place] = _address(column) - first * column.itemsize
        return words


def emissions(out: Counter, outputs: int, room: int) -> kernel.Found:
    """Columns with room for so many emissions. `out`: the words of outputs."""
    return kernel.Found(
        np.empty(room, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.int16),
        np.empty(room, np.int32),
        np.empty(room, np.int64),
        np.empty((out.integers, room), np.int64),
        np.empty((out.doubles, room)),
        np.zeros(outputs, np.int64),
    )


def scratch(timers: int, undo: int, clocks: int) -> kernel.Scratch:
    due, where, was = (np.zeros(count, np.int64) for count in (timers, undo, undo))
    return kernel.Scratch(due, where, was, np.full((clocks, 2), FOREVER, np.int64))


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])
