"""The occurrences of a step that are carried on, numbered anew, and by partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels.entries import NOWHERE, settle
from tidegate.engine.detect.events.occurrences.instances import Carry, Int32
from tidegate.engine.detect.events.occurrences.occurrences import in_order
from tidegate.engine.detect.events.occurrences.sources import CarriedOccurrences, Parts, Source
from tidegate.engine.detect.events.state.partitions import (
    EVERY,
    by_partition,
    marked,
    part_name,
    sliced,
    slots,
)
from tidegate.engine.detect.events.state.tables import compact, lists_of, write_occurrences
from tidegate.engine.detect.events.step.frame import Frame

_POSITION_BITS = 40


class Kept:
    """The occurrences that are carried on.

    events     by event type, in their new numbering
    looked_at  the event types of which something may have come or gone
    again[r]   the new row of the step's row r, if it is carried on
    time[r], number[r]  what names row r, if it is carried on
    """

    def __init__(
        self,
        frame: Frame,
        carry: Mapping[str, Carry],
        homes: Mapping[int | None, Int64],
        count: int,
        of: frozenset[str] | None,
    ) -> None:
        """`carry` refers to them; `homes` are the partitions of its key codes. `of`: the event
        types that are looked at; None: all."""
        self._frame, self._homes, self.count = frame, homes, count
        self._sources = frame.occurrences.sources
        known = frame.decoded.events
        self.looked_at = [e for e in in_order(self._sources) if of is None or e in of]
        self.time = frame.occurrences.time
        self.number = np.zeros(len(self.time), dtype=np.int64)
        self.again = np.full(len(self.time), -1)
        self.events: dict[str, CarriedOccurrences] = {}
        self._rows: dict[str, Int64] = {}
        self._parts: dict[str, Parts] = {}
        self._home = np.full(len(self.time), NOWHERE)
        self._more: list[tuple[Int64, Int64]] = []  # partitions, and rows that are there too
        self._settle_instances(carry)
        self._settle_parts()
        first = 0
        for event in in_order(self._sources):
            source = self._sources[event]
            rows = np.arange(source.base, source.base + source.carried)
            if source.carried:
                self.number[rows], self.events[event] = known[event].number, known[event]
            if of is None or event in of:
                rows = self._stay(event, source)
            self.again[rows] = np.arange(first, first + len(rows))
            first += len(rows)
        for event, parts in self._parts.items():
            own = replace(parts, row=self.again[parts.row])
            self.events[event] = replace(self.events[event], parts=own)

    def tables(self) -> dict[str, pa.Table]:
        """The tables of what is looked at, in parts."""
        found, count = {}, self.count
        for event in self._rows:
            of, at = self._placed(self._rows[event])
            order, spans = by_partition(of, count)
            at, kept = at[order], self.events[event]
            table = write_occurrences(kept.batch.take(at), kept.number[at], kept.rank[at])
            if event in self._parts:
                table = self._with_parts(table, self._parts[event].take(at))
            for partition, part in sliced(marked(table, count), spans).items():
                found[part_name("occ:" + event, partition)] = part
        return found

    def _settle_instances(self, carry: Mapping[str, Carry]) -> None:
        """Puts what instances refer to where these are."""
        graph, looked_at = self._frame.graph, {*self.looked_at}
        for digest, carried in carry.items():
            node = graph.nodes[digest]
            for part in () if looked_at.isdisjoint(node.roles) else carried:
                self._settle(part.key, part.offsets, part.row, self._homes[graph.domain(node)])

    def _settle_parts(self) -> None:
        """Puts what a rule's detections stand for where these are."""
        for event in self.looked_at:
            parts = self._stands_for(event)
            if parts is not None:
                of, index = self._placed(self._sources[event].rows())
                mine, everywhere = parts.take(index), np.arange(EVERY, self.count)
                self._settle(of - EVERY, mine.offsets, mine.row, everywhere)

    def _settle(self, key: Int32 | Int64, offsets: Int64, row: Int64, of: Int64) -> None:
        elsewhere = settle(key, offsets, row, of, self._home)
        if elsewhere.any():
            there = np.repeat(of[key], np.diff(offsets))
            self._more.append((there[elsewhere], row[elsewhere]))

    def _placed(self, rows: Int64) -> tuple[Int64, Int64]:
        """The partitions that some rows are in, and for each the place in `rows`."""
        index = np.flatnonzero(self._home[rows] != NOWHERE)
        of = self._home[rows[index]]
        if self._more:
            place = np.full(len(self._home), -1)
            place[rows] = np.arange(len(rows))
            more, other = (np.concatenate(column) for column in zip(*self._more, strict=True))
            mine = place[other] >= 0
            of, index = np.append(of, more[mine]), np.append(index, place[other[mine]])
            of, index = np.divmod(np.unique(of * len(rows) + index), max(len(rows), 1))
        return of, index

    def _stands_for(self, event: str) -> Parts | None:
        """What a rule's occurrences stand for, in the order of its source."""
        known = self._frame.decoded.events.get(event)
        return self._frame.occurrences.parts.get(event, known.parts if known else None)

    def _stay(self, event: str, source: Source) -> Int64:
        """The rows of an event type that are carried on, in order of time and number."""
        rows = source.rows()
        index = np.flatnonzero(self._home[rows] != NOWHERE)
        if not len(index):
            self.events.pop(event, None)
            return index
        rows, new = rows[index], index >= source.carried
        if new.any():
            self.number[rows[new]] = self._numbers(event, source, index[new])
        time, number = self.time[rows], self.number[rows]
        rising = (time[1:] > time[:-1]) | (time[1:] == time[:-1]) & (number[1:] > number[:-1])
        if not rising.all():
            order = np.lexsort((number, time))
            rows, index, number = rows[order], index[order], number[order]
        batch = replace(compact(source.batch.take(index)), place=None, number=None)
        rank = self._frame.occurrences.own[rows]
        self.events[event], self._rows[event] = CarriedOccurrences(batch, number, rank), rows
        if (parts := self._stands_for(event)) is not None:
            self._parts[event] = parts.take(index)
        return rows

    def _numbers(self, event: str, source: Source, index: Int64) -> Int64:
        """What tells new occurrences from the simultaneous ones of their type, at some places of
        the batch, which ascend. A rule's detections are counted in the slots of their keys."""
        if event not in self._frame.occurrences.parts:
            return source.numbers(index)
        found = self._frame.detected(event)
        present, at = np.unique(found.key, return_inverse=True)
        columns = self._frame.keys(self._frame.graph.roots[event]).values(present)
        slot = slots(columns)[at] if columns else np.zeros(len(found), dtype=np.int64)
        order = np.lexsort((slot, found.end))
        differs = (np.diff(slot[order]) != 0) | (np.diff(found.end[order]) != 0)
        begin = np.flatnonzero(np.append(True, differs))
        position = np.empty_like(slot)
        position[order] = np.arange(len(slot)) - np.repeat(begin, np.diff([*begin, len(slot)]))
        return ((slot << _POSITION_BITS) + position)[index - source.carried]

    def _with_parts(self, table: pa.Table, parts: Parts) -> pa.Table:
        """The table of a rule's detections with what they stand for."""
        place = self._frame.occurrences.place_of(parts.row)
        events = pa.array([*self._sources], pa.string()).take(pa.array(place))
        columns = {"times": self.time[parts.row], "numbers": self.number[parts.row]}
        table = table.append_column("start", pa.array(parts.start))
        for name, values in (*columns.items(), ("events", events)):
            table = table.append_column(name, lists_of(parts.offsets, values))
        return table
