"""Occurrences as the sources give them, and the rows that `where` and `of` drop: these are found by
reading once more, without `of`, and without `where`.

Example: `large` is an insert `where: amount > 100`. Read without it, there is a row of 90 more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, overload

import numpy as np
import pyarrow as pa

from tidegate.engine.capture.read import Capture
from tidegate.engine.core.columns.hashing import count_equal, match_rows, row_hash
from tidegate.engine.core.parameters import OLD, SIGNAL_OF, VERSION_OF, parameter_schema
from tidegate.engine.core.ports import Feed
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import Batch, Int64, Needs, Plan, UInt64
from tidegate.engine.detect.events.occurrences.concatenation import both
from tidegate.engine.replay.why_not.evidence import DroppedRow, Key
from tidegate.engine.replay.why_not.keys import rows_of
from tidegate.rules.model import Rulebook, SignalEvent, TableEvent

_INSTANT = "(instant)"
"""A name that no column of parameters has."""


class Nothing:
    """No source is looked at. Implements `evidence.Kept`."""

    def occurrences(self, event: str) -> Batch | None:  # noqa: ARG002
        """See `Kept`."""
        return None

    def dropped(self, event: str, *_: Any) -> Sequence[DroppedRow]:  # noqa: ARG002
        """See `Kept`."""
        return ()


class Dropped(Sequence[DroppedRow]):
    """Rows that became no occurrence, as columns. `parts`: by what dropped them (`where` or `of`),
    and its text. A row is made where it is looked at."""

    def __init__(self, event: str, parts: Sequence[tuple[str, str, Batch]]) -> None:
        self._event, self._parts = event, parts
        lengths = [len(batch) for *_, batch in parts]
        part = np.repeat(np.arange(len(parts)), lengths)
        number = np.concatenate([np.arange(n) for n in (*lengths, 0)])
        time = np.concatenate([*(batch.time for *_, batch in parts), np.empty(0, np.int64)])
        order = np.argsort(time, kind="stable")
        self.instants: Int64 = time[order]
        """When they stand, ascending, microseconds."""
        self._at = part[order], number[order]

    def __len__(self) -> int:
        return len(self.instants)

    @overload
    def __getitem__(self, at: int) -> DroppedRow: ...
    @overload
    def __getitem__(self, at: slice) -> list[DroppedRow]: ...
    def __getitem__(self, at: int | slice) -> DroppedRow | list[DroppedRow]:
        if isinstance(at, slice):
            return [self[n] for n in range(len(self))[at]]
        by, text, batch = self._parts[int(self._at[0][at])]
        (row,) = python_rows(batch.table.take(pa.array([batch.row[self._at[1][at]]])))
        return DroppedRow(self._event, int(self.instants[at]), by, text, row, row.get(OLD) or {})


class Looked:
    """The occurrences of some plans, and the rows that became none. Implements `evidence.Kept`.

    `plans`: what is read again. `batches`: the occurrences that they gave, in order of time."""

    def __init__(
        self,
        book: Rulebook,
        tables: Mapping[str, pa.Schema],
        feed: Feed,
        plans: Sequence[Plan],
        batches: Sequence[Mapping[str, Batch]],
    ) -> None:
        self._book, self._feed = book, feed
        self._plans, self._batches = plans, batches
        self._needs = every_parameter(book, tables)

    def occurrences(self, event: str) -> Batch | None:
        """See `Kept`."""
        found: Batch | None = None
        for batches in self._batches:
            batch = batches.get(event)
            if batch is not None and len(batch):
                found = batch if found is None else both(found, batch)
        return found

    def keep_dropped(self) -> None:
        """Read what is dropped now, while the feed is open."""
        self._reads  # noqa: B018 - it is kept

    def dropped(
        self, event: str, columns: Sequence[str], key: Key, first: int, last: int
    ) -> Sequence[DroppedRow]:
        """See `Kept`."""
        declared = self._filtered.get(event)
        if declared is None:
            return ()
        whole, wider, widest = (
            _of_key(read.get(event), columns, key, first, last) for read in self._reads
        )
        of, where = ", ".join(_of(declared)), declared.where or ""
        parts = (("of", of, _beyond(whole, wider)), ("where", where, _beyond(wider, widest)))
        return Dropped(event, [(by, text, left) for by, text, left in parts if left is not None])

    @cached_property
    def _filtered(self) -> Mapping[str, TableEvent | SignalEvent]:
        """The event types of which rows may be dropped."""
        return {
            name: event
            for name, event in self._book.events.items()
            if isinstance(event, TableEvent | SignalEvent) and (event.where or _of(event))
        }

    @cached_property
    def _reads(self) -> tuple[Mapping[str, Batch], Mapping[str, Batch], Mapping[str, Batch]]:
        """The tables are read again: as they are, without `of`, and also without `where`."""
        filtered = self._filtered
        if not filtered:
            return {}, {}, {}
        whole = self._read({})
        every = {n: replace(e, of=()) for n, e in filtered.items() if isinstance(e, TableEvent)}
        wider = self._read(every) if any(map(_of, filtered.values())) else whole
        widest = self._read({n: replace(every.get(n, e), where=None) for n, e in filtered.items()})
        return whole, wider, widest

    def _read(self, events: Mapping[str, Any]) -> Mapping[str, Batch]:
        """What the plans hold under other event types."""
        capture = Capture(replace(self._book, events={**self._book.events, **events}), self._needs)
        found: dict[str, Batch] = {}
        for plan in self._plans:
            for name, batch in capture.capture(plan, self._feed).batches.items():
                if name in self._filtered:
                    known = found.get(name)
                    found[name] = batch if known is None else both(known, batch)
        return found


def every_parameter(book: Rulebook, tables: Mapping[str, pa.Schema]) -> Needs:
    """All parameters of all event types."""
    names = {name: tuple(parameter_schema(book, name, tables).names) for name in book.events}
    return Needs(names)


def _of(event: TableEvent | SignalEvent) -> tuple[str, ...]:
    return event.of if isinstance(event, TableEvent) else ()


def _of_key(
    batch: Batch | None, columns: Sequence[str], key: Key, first: int, last: int
) -> Batch | None:
    """The rows of a batch with a key, in [`first`, `last`]."""
    if batch is None:
        return None
    inside = np.flatnonzero((batch.time >= first) & (batch.time <= last))
    return rows_of(batch.take(inside), columns, key)


def _beyond(fewer: Batch | None, more: Batch | None) -> Batch | None:
    """The rows of `more` that are not among `fewer`; equal rows are several."""
    if fewer is None or more is None or not len(fewer):
        return more
    found, _ = match_rows(count_equal(_hashed(more)), count_equal(_hashed(fewer)))
    return more.take(np.flatnonzero(found < 0))


def _hashed(batch: Batch) -> UInt64:
    """A hash of each row and its instant."""
    rows = batch.table.take(pa.array(batch.row))
    names = [name for name in rows.column_names if name not in (VERSION_OF, SIGNAL_OF)]
    return row_hash(rows.select(names).append_column(_INSTANT, pa.array(batch.time)))
