"""The context of a transition: addresses of the columns that a script's functions read and write,
as words in one array."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.engine.core.values import FOREVER, Int64
from tidegate.engine.detect.scripts.compiled import kernel
from tidegate.engine.detect.scripts.compiled.layout import Layout, Word

ROOM, CAUSE, KEY, OUTPUT, NUMBER, TIMERS, WHERE, WAS, CLOCKS, HEAD = range(10)
"""The first words: how many emissions there is room for; addresses of their columns, of timers, of
what a transition has overwritten and where, of clocks."""
OUTPUTS, EVENTS, KEYS = range(3)
"""Then come those of the words of outputs, events and keys."""


Columns = dict[int, tuple[npt.NDArray[Any], int]]
"""Columns by their words in the context; where the values of place n stand: at n - first."""


class Context:
    """Which word of the context is which."""

    def __init__(self, layout: Layout) -> None:
        self._starts = HEAD + np.cumsum([0, layout.out, layout.arriving, len(layout.keys)])

    def place(self, of: int, word: Word) -> int:
        """The word of a column."""
        return int(self._starts[of]) + word.place

    def words(self, found: kernel.Found, own: kernel.Scratch, columns: Columns) -> Int64:
        """The context. `columns`: those of events and keys."""
        words = np.zeros(self._starts[-1], np.int64)
        words[ROOM] = len(found.cause)
        known = found.cause, found.key, found.output, found.number, *own, *found.words
        words[CAUSE : self._starts[EVENTS]] = [_address(column) for column in known]
        for place, (column, first) in columns.items():
            words[place] = _address(column) - first * column.itemsize
        return words


def emissions(words: int, room: int) -> kernel.Found:
    """Columns with room for so many emissions, of so many words at most."""
    return kernel.Found(
        np.empty(room, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty((words, room), np.int64),
    )


def scratch(timers: int, undo: int, clocks: int) -> kernel.Scratch:
    due, where, was = (np.zeros(count, np.int64) for count in (timers, undo, undo))
    return kernel.Scratch(due, where, was, np.full((clocks, 2), FOREVER, np.int64))


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])
