"""The rows of windows: those that a node carried, and those that arrive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.flat.arrivals import by_rank
from tidegate.engine.detect.events.graph.search_limits import check_held
from tidegate.engine.detect.events.occurrences.instances import (
    Carry,
    Flow,
    Instances,
    Int16,
    Int32,
    Moment,
    Pending,
)


@dataclass(frozen=True, slots=True)
class Rows:
    """Occurrences as rows of windows, those of one key in order of time: `carried` rows that were
    carried, key by key, then those that arrive. A rule's detection is a row at its end."""

    key: Int32
    time: Int64
    row: Int64
    role: Int16
    carried: int

    def windows(self, offsets: Int64, order: Int64) -> Instances:
        """A window for each offsets[n]:offsets[n + 1] of the rows in this order: from its first row
        to its last."""
        first, last = order[offsets[:-1]], order[offsets[1:] - 1]
        return Instances(
            self.key[first],
            self.time[first],
            self.time[last],
            offsets,
            self.row[order],
            self.role[order],
        )


def rows_of(stored: Instances, arrived: Instances, moment: Moment) -> Rows:
    """The rows of open windows, and what arrives, which is in order of end, one row each."""
    row = np.concatenate([stored.row, arrived.row])
    time = np.concatenate([moment.time[stored.row], arrived.end])
    key = np.concatenate([np.repeat(stored.key, np.diff(stored.offsets)), arrived.key])
    return Rows(key, time, row, np.concatenate([stored.role, arrived.role]), len(stored.row))


def closed(windows: Instances, end: Int64, most: int, moment: Moment) -> tuple[Flow, Carry]:
    """The windows that end by now, and those that stay open. `end[n]`: when window n does. Raises
    `LimitError('carried-per-key')` for an open one with more than `most` rows."""
    due = end <= moment.watermark
    ended, open_ = windows.where(due), windows.where(~due)
    found = Instances(
        ended.key, ended.start, end[due], ended.offsets, ended.row, ended.role
    ).by_end()
    moment.timers.fire(found.end)
    check_held(open_, most)
    kept = open_.by_end()
    return Flow(by_rank(found, moment), Pending(kept.key, kept.start)), (kept,)
