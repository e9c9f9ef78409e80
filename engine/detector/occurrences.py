"""The occurrences of one step: those carried, then those that arrive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from engine.detector.instances import Bools
from engine.detector.kernels import TICK_RANK
from engine.values import Batch, Int64, UInt64

TICK = "[tick]"
"""The event type of the ticks of `P` and `P*`."""


class Ranking(Protocol):
    """The order of simultaneous occurrences of one type by their parameters (S1): `order`, or as
    that does."""

    def refine(self, groups: Int64, table: pa.Table, /) -> Int64: ...

    def greatest(self, groups: Int64, table: pa.Table, row: Int64, /) -> Int64: ...


@dataclass(frozen=True, slots=True)
class CarriedOccurrences:
    """Carried occurrences of one event type: n of them, in order of `serial`.

    serial[n] names an occurrence for as long as it is carried; rank[n] orders it among the
    simultaneous ones of its type (S1).
    """

    batch: Batch
    serial: Int64
    rank: Int64
    next_serial: int


@dataclass(frozen=True, slots=True)
class Source:
    """One event type in the step's numbering: its rows are base .. base + len(batch)."""

    base: int
    carried: int
    batch: Batch

    @property
    def arrivals(self) -> slice:
        """The rows that arrive in this step."""
        return slice(self.base + self.carried, self.base + len(self.batch))


@dataclass(slots=True)
class Occurrences:
    """All event types of a step, by name and in order of their names; time[r], rank[r] by row.

    A rank orders simultaneous occurrences: by event type, then as their parameters do. Ticks are
    the last type, their rank is `TICK_RANK`; they are added while the step goes on.
    """

    sources: dict[str, Source]
    time: Int64
    rank: Int64

    def add_ticks(self, time: Int64) -> Int64:
        """Number the ticks of one node; returns their rows. Coincident ones are one."""
        first = len(self.time)
        time, place = np.unique(time, return_inverse=True)
        table = pa.table({"": pa.nulls(len(time))}).select([])
        new = Batch("tick", time, np.arange(len(time)), table)
        old = self.sources.get(TICK)
        if old is None:
            self.sources[TICK] = Source(first, 0, new)
        else:
            self.sources[TICK] = Source(old.base, old.carried, _joined(old.batch, new))
        self.time = np.concatenate([self.time, time])
        self.rank = np.concatenate([self.rank, np.full(len(time), TICK_RANK)])
        return np.asarray(first + place, dtype=np.int64)

    def event_of(self, row: Int64) -> Int64:
        """For each row which of `sources` it belongs to."""
        bases = np.array([s.base for s in self.sources.values()], dtype=np.int64)
        return np.searchsorted(bases, row, side="right") - 1


def gather(
    carried: Mapping[str, CarriedOccurrences], arrivals: Mapping[str, Batch]
) -> dict[str, Source]:
    """Number the occurrences of a step."""
    sources: dict[str, Source] = {}
    base = 0
    for event in sorted({*carried, *arrivals}, key=lambda event: (event == TICK, event)):
        stored, new = carried.get(event), arrivals.get(event)
        if event == TICK and stored:
            stored = replace(stored, batch=replace(stored.batch, event="tick"))
        batch = _joined(stored.batch, new) if stored and new else new or stored.batch  # type: ignore[union-attr]
        sources[event] = Source(base, len(stored.batch) if stored else 0, batch)
        base += len(batch)
    return sources


def number(
    sources: dict[str, Source],
    carried: Mapping[str, CarriedOccurrences],
    tied: Mapping[str, Bools],
    ranking: Ranking,
) -> Occurrences:
    """Rank the arrivals; tied[event][n] marks those that are simultaneous with another one of
    their type and key, where more than the greatest of them counts: only these have a rank."""
    count = sum(len(s.batch) for s in sources.values())
    time, rank = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    for place, (event, source) in enumerate(sources.items()):
        rows = slice(source.base, source.base + len(source.batch))
        time[rows] = source.batch.time
        own = rank[rows]
        own[:] = 0
        if source.carried:
            own[: source.carried] = carried[event].rank
        if event in tied and tied[event].any():
            mark = np.flatnonzero(tied[event]) + source.carried
            batch = source.batch
            own[mark] = ranking.refine(batch.time[mark], batch.table.take(batch.row[mark]))
        own += place << 40
        if event == TICK:
            own[:] = TICK_RANK
    return Occurrences(sources, time, rank)


def _joined(stored: Batch, new: Batch) -> Batch:
    """Carried occurrences before new ones; columns that one side lacks are null there."""
    depth = None
    if stored.depth is not None or new.depth is not None:
        depth = np.concatenate([_depth(stored), _depth(new)])
    return Batch(
        new.event,
        np.concatenate([stored.time, new.time]),
        np.concatenate([stored.row, new.row + stored.table.num_rows]),
        stack([stored.table, new.table]),
        {name: np.concatenate([_ids(stored, name), ids]) for name, ids in new.ids.items()},
        depth,
    )


def stack(tables: Iterable[pa.Table]) -> pa.Table:
    """Tables of parameters one after the other; the schema is the union of theirs."""
    parts = list(tables)
    if any(part.num_columns for part in parts):
        named = [p if p.num_columns else pa.table({"": pa.nulls(p.num_rows)}) for p in parts]
        stacked = pa.concat_tables(named, promote_options="permissive")
        return stacked.select([name for name in stacked.column_names if name])
    return pa.table({"": pa.nulls(sum(part.num_rows for part in parts))}).select([])


def _depth(batch: Batch) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.zeros(len(batch), dtype=np.int32) if batch.depth is None else batch.depth


def _ids(batch: Batch, name: str) -> UInt64:
    """Ids by a column set; ids by another one where a rule's columns have changed since."""
    for known in (name, *sorted(batch.ids)):
        if known in batch.ids:
            return batch.ids[known]
    return np.zeros((len(batch), 2), dtype=np.uint64)
