"""The occurrences of one step: those carried, then those that arrive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.detector import listing
from tidegate.engine.detector.comparable import KeyTypeError, united
from tidegate.engine.detector.edges import is_tick, shown_name
from tidegate.engine.detector.instances import Bools, Int16
from tidegate.engine.detector.kernels import TICK_RANK
from tidegate.engine.values import Batch, Int64, UInt64
from tidegate.rules.errors import InputError, Problem, word_place


class Ranking(Protocol):
    """The order of simultaneous occurrences of one type by their parameters (S1): `order`, or as
    that does."""

    def refine(self, groups: Int64, table: pa.Table, /) -> Int64: ...

    def greatest(self, groups: Int64, table: pa.Table, row: Int64, /) -> Int64: ...


_OWN_BITS = 40
_GLOBAL = -(2**62)
"""Ranks from here on order all occurrences of a step, not only simultaneous ones."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What n occurrences of a rule stand for (S8): detection i began at start[i], its constituents
    are the occurrences and ticks row[offsets[i]:offsets[i + 1]], none of them of a rule."""

    start: Int64
    offsets: Int64
    row: Int64

    def take(self, index: Int64) -> Parts:
        """Those of the detections at `index`."""
        sizes = np.diff(self.offsets)[index]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        entry = np.repeat(self.offsets[index] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Parts(self.start[index], offsets, self.row[entry])


@dataclass(frozen=True, slots=True)
class CarriedParts:
    """The same with constituents by serial: serial[e] is one of event type event[e]."""

    start: Int64
    offsets: Int64
    event: pa.StringArray
    serial: Int64


@dataclass(frozen=True, slots=True)
class CarriedOccurrences:
    """Carried occurrences of one event type: n of them, in order of `serial`.

    serial[n] names an occurrence for as long as it is carried; rank[n] orders it among the
    simultaneous ones of its type (S1). `parts` only for a rule's.
    """

    batch: Batch
    serial: Int64
    rank: Int64
    next_serial: int
    parts: CarriedParts | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One event type in the step's numbering: the occurrences of `batch`, the first `carried` of
    them from before, are the rows of `pieces` in turn: (first row, number of rows)."""

    carried: int
    batch: Batch
    pieces: tuple[tuple[int, int], ...]

    @property
    def base(self) -> int:
        """The row of the first occurrence; what is carried follows it."""
        return self.pieces[0][0]

    @property
    def arrivals(self) -> slice:
        """The rows of what arrives from outside."""
        base, count = self.pieces[0]
        return slice(base + self.carried, base + count)

    def rows(self) -> Int64:
        return np.concatenate([np.arange(base, base + count) for base, count in self.pieces])


class Occurrences:
    """All event types of a step, by name; time, start and rank of each row.

    A rank orders simultaneous occurrences as S1 says: by start, name, parameters. start[r] is
    time[r] but for detections of rules (S8); where one of these starts earlier, ranks are negative
    and order all occurrences of the step. Ticks have `TICK_RANK`. Ticks and detections are added
    while the step goes on: `rank` changes then, and the order of what was there before does not.
    """

    def __init__(self, sources: dict[str, Source], time: Int64, own: Int64) -> None:
        """`sources` in order of their names; own[r] orders simultaneous ones of one type."""
        self.sources = sources
        self.parts: dict[str, Parts] = {}
        self.time = self.start = time
        self.own = own
        self.rank = own
        self._bases = [source.base for source in sources.values()]
        self._firsts = [0] * len(sources)
        self._places = [*range(len(sources))]
        self._rank()

    def add_ticks(self, event: str, time: Int64) -> Int64:
        """The rows of ticks of one type: coincident ones are one, also with those carried."""
        if not len(time):
            return time
        if (time[1:] < time[:-1]).any():
            order = np.argsort(time)
            rows = np.empty_like(time)
            rows[order] = self.add_ticks(event, time[order])
            return rows
        first = np.ones(len(time), dtype=np.bool_)
        first[1:] = time[1:] != time[:-1]
        if not first.all():
            rows = self.add_ticks(event, time[first])
            return np.asarray(rows[np.cumsum(first) - 1])
        known = self.sources.get(event)
        if known is None or not len(known.batch):
            return self._append_ticks(event, time)
        by_time = np.argsort(known.batch.time)
        place = np.searchsorted(known.batch.time, time, sorter=by_time)
        place = by_time[np.minimum(place, len(by_time) - 1)]
        rows = known.rows()[place]
        new = known.batch.time[place] != time
        rows[new] = self._append_ticks(event, time[new])
        return rows

    def _append_ticks(self, event: str, time: Int64) -> Int64:
        batch = Batch("tick", time, np.arange(len(time)), no_parameters(len(time)))
        rows = self._append(event, batch, time, np.zeros(len(time), dtype=np.int64))
        self.rank = np.concatenate([self.rank, np.full(len(time), TICK_RANK)])
        return rows

    def add_detections(self, rule: str, end: Int64, own: Int64, parts: Parts) -> Int64:
        """Number a rule's detections, in order of end; returns their rows."""
        batch = Batch(rule, end, np.arange(len(end)), no_parameters(len(end)))
        old = self.parts.get(rule)
        self.parts[rule] = _both(old, parts) if old else parts
        rows = self._append(rule, batch, parts.start, own)
        self._rank()
        return rows

    def set_carried(self, rule: str, parts: Parts) -> None:
        """Say what a rule's carried occurrences stand for."""
        self.parts[rule] = parts
        self.start = self.start.copy()
        self.start[self.sources[rule].rows()] = parts.start
        self._rank()

    def places(self) -> Int64:
        """For each row the number of its event type."""
        counts = [b - a for a, b in pairwise([*self._bases, len(self.time)])]
        return np.repeat(np.array(self._places, dtype=np.int64), counts)

    def place_of(self, row: Int64) -> Int64:
        """For each row which of `sources` it belongs to."""
        return self.located(row)[0].astype(np.int64)

    def index_of(self, row: Int64) -> Int64:
        """For each row which occurrence of its batch it is."""
        return self.located(row)[1]

    def located(self, row: Int64) -> tuple[Int16, Int64]:
        """For each row which of `sources` it belongs to, and which of its batch it is."""
        bases = np.array(self._bases, dtype=np.int64)
        shift = np.array(self._firsts, dtype=np.int64) - bases
        places = np.array(self._places, dtype=np.int64)
        found: tuple[Int16, Int64] = listing.located(row, bases, places, shift)
        return found

    def _append(self, event: str, batch: Batch, start: Int64, own: Int64) -> Int64:
        first, count = len(self.time), len(batch)
        old = self.sources.get(event)
        if old is None:
            self.sources[event] = Source(0, batch, ((first, count),))
        else:
            pieces = (*old.pieces, (first, count))
            self.sources[event] = Source(old.carried, _joined(old.batch, batch), pieces)
        self._bases.append(first)
        self._firsts.append(len(old.batch) if old else 0)
        self._places.append([*self.sources].index(event))
        time = np.concatenate([self.time, batch.time])
        whole = self.start is self.time and start is batch.time
        self.start = time if whole else np.concatenate([self.start, start])
        self.time = time
        self.own = np.concatenate([self.own, own])
        return np.arange(first, first + count)

    def _rank(self) -> None:
        """Rank all rows anew."""
        names = [shown_name(event) for event in self.sources]
        numbers = [names.index(name) for name in names]
        if self.start is self.time or (self.start == self.time).all():
            self.rank = np.empty(len(self.own), dtype=np.int64)
            pieces = pairwise([*self._bases, len(self.own)])
            for place, (a, b) in zip(self._places, pieces, strict=True):
                np.add(self.own[a:b], numbers[place] << _OWN_BITS, out=self.rank[a:b])
        else:
            place = np.array(numbers, dtype=np.int64)[self.places()]
            columns = (self.own, place, self.time, self.start)
            order = np.lexsort(columns)
            differs = np.logical_or.reduce([np.diff(column[order]) != 0 for column in columns])
            self.rank = np.empty(len(order), dtype=np.int64)
            self.rank[order] = _GLOBAL + np.concatenate([[0], np.cumsum(differs)])
        for event, source in self.sources.items():
            if is_tick(event):
                self.rank[source.rows()] = TICK_RANK


def gather(
    carried: Mapping[str, CarriedOccurrences],
    arrivals: Mapping[str, Batch],
    rules: Iterable[str] = (),
) -> dict[str, Source]:
    """Number the occurrences of a step. `rules`: those whose detections will be added to it."""
    sources: dict[str, Source] = {}
    base = 0
    for event in sorted({*carried, *arrivals, *rules}, key=_order):
        stored, new = carried.get(event), arrivals.get(event)
        if stored:
            stored = replace(stored, batch=replace(stored.batch, event=shown_name(event)))
        none = np.empty(0, np.int64)
        batch = new or (stored.batch if stored else Batch(event, none, none, no_parameters(0)))
        if stored and new:
            batch = _joined(stored.batch, new)
        sources[event] = Source(len(stored.batch) if stored else 0, batch, ((base, len(batch)),))
        base += len(batch)
    return sources


def _order(event: str) -> tuple[bool, str, str]:
    return is_tick(event), shown_name(event), event


def number(
    sources: dict[str, Source],
    carried: Mapping[str, CarriedOccurrences],
    tied: Mapping[str, Bools],
    ranking: Ranking,
) -> Occurrences:
    """Rank the arrivals; tied[event][n] marks those that are simultaneous with another one of
    their type and key, where more than the greatest of them counts: only these have a rank, by
    their parameters among all that are called alike."""
    count = sum(len(s.batch) for s in sources.values())
    time, rank = np.empty(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for event, source in sources.items():
        rows = slice(source.base, source.base + len(source.batch))
        time[rows] = source.batch.time
        if source.carried:
            rank[rows][: source.carried] = carried[event].rank
    marked = (event for event in sources if event in tied and tied[event].any())
    for _, alike in groupby(marked, shown_name):
        parts = [(sources[e], np.flatnonzero(tied[e]) + sources[e].carried) for e in alike]
        row = np.concatenate([source.base + mark for source, mark in parts])
        table = stack(s.batch.table.take(s.batch.row[mark]) for s, mark in parts)
        rank[row] = ranking.refine(time[row], table)
    found = Occurrences(sources, time, rank)
    for event, stored in carried.items():
        if stored.parts is not None:
            found.set_carried(event, _resolved(stored.parts, sources, carried))
    return found


def _resolved(
    parts: CarriedParts, sources: Mapping[str, Source], carried: Mapping[str, CarriedOccurrences]
) -> Parts:
    row = np.empty(len(parts.serial), dtype=np.int64)
    for event in pc.unique(parts.event).to_pylist():
        mark = pc.equal(parts.event, event).to_numpy(zero_copy_only=False)
        place = np.searchsorted(carried[event].serial, parts.serial[mark])
        row[mark] = sources[event].base + place
    return Parts(parts.start, parts.offsets, row)


def _both(old: Parts, new: Parts) -> Parts:
    return Parts(
        np.concatenate([old.start, new.start]),
        np.concatenate([old.offsets, new.offsets[1:] + old.offsets[-1]]),
        np.concatenate([old.row, new.row]),
    )


def _joined(stored: Batch, new: Batch) -> Batch:
    """Carried occurrences before new ones; columns that one side lacks are null there."""
    depth = None
    if stored.depth is not None or new.depth is not None:
        depth = np.concatenate([_depth(stored), _depth(new)])
    return Batch(
        new.event,
        np.concatenate([stored.time, new.time]),
        np.concatenate([stored.row, new.row + stored.table.num_rows]),
        _one_type(new.event, stored.table, new.table),
        {name: np.concatenate([_ids(stored, name), ids]) for name, ids in new.ids.items()},
        depth,
    )


def _one_type(event: str, stored: pa.Table, new: pa.Table) -> pa.Table:
    """Parameters carried before those that arrive; a column may have got another type since."""
    tables = [stored, new]
    for name in {*stored.column_names} & {*new.column_names}:
        kinds = [table.schema.field(name).type for table in tables]
        if kinds[0] != kinds[1] and not any(map(pa.types.is_nested, kinds)):
            try:
                column = united([table.column(name) for table in tables])
            except KeyTypeError as error:
                shown = name.removeprefix("p:")
                message = f"column {shown} of {event} was {kinds[0]} and is {kinds[1]} now"
                hint = f"{error}; declare it as it was, or rename it"
                place = word_place("<occurrences>")
                raise InputError([Problem("column-type", message, place, hint)]) from None
            parts = column.slice(0, len(stored)), column.slice(len(stored))
            tables = [
                table.set_column(table.column_names.index(name), name, part)
                for table, part in zip(tables, parts, strict=True)
            ]
    return stack(tables)


def joined(event: str, tables: Sequence[pa.Table]) -> pa.Table:
    """Carried occurrences of one event type, written by several steps: their columns may differ as
    those of what is carried and what arrives may."""
    by_schema: list[pa.Table] = []
    for table in tables:
        if by_schema and by_schema[-1].schema == table.schema:
            by_schema[-1] = pa.concat_tables([by_schema[-1], table])
        else:
            by_schema.append(table)
    whole = by_schema[0]
    for table in by_schema[1:]:
        whole = _one_type(event, whole, table)
    ids = [name for name in whole.column_names if name.startswith("id:")]
    for name in ids:
        if whole.column(name).null_count:
            filled = pc.coalesce(*(whole.column(n) for n in (name, *ids)))
            whole = whole.set_column(whole.column_names.index(name), name, filled)
    return whole


def stack(tables: Iterable[pa.Table]) -> pa.Table:
    """Tables of parameters one after the other; the schema is the union of theirs."""
    parts = list(tables)
    if any(part.num_columns for part in parts):
        named = [p if p.num_columns else pa.table({"": pa.nulls(p.num_rows)}) for p in parts]
        stacked = pa.concat_tables(named, promote_options="permissive")
        return stacked.select([name for name in stacked.column_names if name])
    return no_parameters(sum(part.num_rows for part in parts))


def no_parameters(rows: int) -> pa.Table:
    """A table of so many rows without columns."""
    return pa.table({"": pa.nulls(rows)}).select([])


def _depth(batch: Batch) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.zeros(len(batch), dtype=np.int32) if batch.depth is None else batch.depth


def _ids(batch: Batch, name: str) -> UInt64:
    """Ids by a column set; ids by another one where a rule's columns have changed since."""
    for known in (name, *sorted(batch.ids)):
        if known in batch.ids:
            return batch.ids[known]
    return np.zeros((len(batch), 2), dtype=np.uint64)
