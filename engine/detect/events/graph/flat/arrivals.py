"""The arrivals of a step as a line for scans, and instances from the positions found by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.flat.line import (
    Line,
    Sources,
    arrange,
    entries_in_order,
)
from tidegate.engine.detect.events.occurrences.instances import Arrivals, Instances, Int32, Moment


@dataclass(frozen=True, slots=True)
class KeyedLine:
    """A line, and the keys of its codes: code c stands for the key real[c]. Each occurrence of an
    absent event type gives its key a new code; last[key] is the key's last code."""

    line: Line
    real: Int64
    last: Int64

    def instances(self, code: Int32, offsets: Int64, positions: Int64) -> Instances:
        """Instances of the occurrences at positions[offsets[n]:offsets[n + 1]], each in order."""
        line = self.line
        return Instances(
            self.real[code].astype(np.int32),
            line.time[positions[offsets[:-1]]],
            line.time[positions[offsets[1:] - 1]],
            offsets,
            line.row[positions],
            line.source[positions],
        )

    def alike(self, code: Int32, positions: Int64) -> Instances:
        """Instances of equally many occurrences each: positions[n, entry]."""
        count, size = positions.shape
        return self.instances(code, np.arange(count + 1) * size, positions.ravel())

    def lasting(self, kept: Instances, code: Int32) -> Instances:
        """The kept instances that no occurrence of an absent event type has ended, in order of end:
        those with their key's last code."""
        if len(self.real) > len(self.last):
            kept = kept.where(np.asarray(self.last[kept.key] == code))
        return kept.by_end()


def keyed_line(
    arrivals: Arrivals,
    more: Instances,
    sources: Sources,
    stored: Instances,
    moment: Moment,
    *,
    twice: bool = False,
) -> KeyedLine:
    """The line of a step: the entries of `stored`, then the arrivals, and `more`, points, which are
    of the last source. `twice`: an occurrence may be of several sources."""
    points, codes = more.by_end().columns, moment.keys + 1
    source, code, time, row, real, last = arrange(
        arrivals.columns, points, sources, moment.rank, codes
    )
    if len(stored.row):
        source = np.concatenate([stored.role, source])
        code = np.concatenate([np.repeat(stored.key, np.diff(stored.offsets)), code])
        time = np.concatenate([moment.time[stored.row], time])
        row = np.concatenate([stored.row, row])
    rows = len(moment.time) if twice else 0
    return KeyedLine(Line(source, code, time, row, len(stored.row), len(real), rows), real, last)


def sources_of(
    arrivals: Arrivals, leaves: Sequence[str], order: Sequence[int], absent: int, *, apart: bool
) -> Sources:
    """The sources of arrivals: each is a leaf of an expression, given by its event type."""
    of_each = [[n for n, leaf in enumerate(leaves) if leaf == e] for e in arrivals.events]
    return Sources(
        np.cumsum([0, *map(len, of_each)]),
        np.array([n for some in of_each for n in some], dtype=np.int16),
        np.array(order, dtype=np.int64),
        absent,
        apart,
    )


def by_rank(found: Instances, moment: Moment) -> Instances:
    """The instances with their entries in order of (time, rank, row, role)."""
    if entries_in_order(found.offsets, found.row, found.role, moment.time, moment.rank):
        return found
    time, rank = moment.time[found.row], moment.rank[found.row]
    owner = np.repeat(np.arange(len(found)), np.diff(found.offsets))
    order = np.lexsort((found.role, found.row, rank, time, owner))
    return replace(found, row=found.row[order], role=found.role[order])
