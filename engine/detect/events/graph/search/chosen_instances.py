"""What has been chosen, as instances."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidegate.engine.detect.events.graph.search.comparison import Entries, Ticks
from tidegate.engine.detect.events.occurrences.instances import Instances, Moment


class ChosenInstance(NamedTuple):
    """Key code, instant, start and entries of a detection."""

    key: int
    end: int
    start: int
    entries: Entries


def instances(found: Sequence[ChosenInstance], ticks: Ticks, moment: Moment) -> Instances:
    """Detections in order of end, their entries in order; their ticks become rows."""
    found = sorted(found, key=lambda detected: detected.end)
    sizes = [len(detected.entries) for detected in found]
    owner = np.repeat(np.arange(len(found)), sizes)
    flat = [entry for detected in found for entry in detected.entries]
    role, row = np.array(flat, dtype=np.int64).reshape(-1, 2).T
    made = np.unique(row[row < 0])
    if len(made):
        rows = _numbered(made.tolist(), ticks, moment)
        row = np.array([rows.get(r, r) for r in row.tolist()], dtype=np.int64)
    order = np.lexsort((role, row, moment.rank[row], moment.time[row], owner))
    return Instances(
        np.array([detected.key for detected in found], dtype=np.int32),
        np.array([detected.start for detected in found], dtype=np.int64),
        np.array([detected.end for detected in found], dtype=np.int64),
        np.cumsum([0, *sizes]),
        row[order],
        role[order].astype(np.int16),
    )


def _numbered(made: Sequence[int], ticks: Ticks, moment: Moment) -> dict[int, int]:
    """The rows of ticks that the search has made."""
    sources: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in made:
        source, instant = ticks.made[-1 - row]
        sources[source].append((row, instant))
    rows: dict[int, int] = {}
    for source, known in sources.items():
        times = np.array([instant for _, instant in known], dtype=np.int64)
        numbers = moment.numbering.add_ticks(source, times).tolist()
        rows |= {row: number for (row, _), number in zip(known, numbers, strict=True)}
    return rows
