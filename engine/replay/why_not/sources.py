"""Occurrences as the sources give them, and the rows that `where` and `of` drop: these are found by
reading once more, without `of`, and without `where`.

Example: `large` is an insert `where: amount > 100`. Read without it, there is a row of 90 more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from tidegate.engine.capture.read import Capture
from tidegate.engine.core.parameters import OLD, SIGNAL_OF, VERSION_OF, parameter_schema
from tidegate.engine.core.ports import Feed
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import Batch, Needs, Plan
from tidegate.engine.detect.events.occurrences.concatenation import both
from tidegate.engine.replay.why_not.evidence import DroppedRow
from tidegate.rules.model import Rulebook, SignalEvent, TableEvent


class Nothing:
    """No source is looked at. Implements `evidence.Kept`."""

    def occurrences(self, event: str) -> Batch | None:  # noqa: ARG002
        """See `Kept`."""
        return None

    def dropped(self, event: str) -> Sequence[DroppedRow]:  # noqa: ARG002
        """See `Kept`."""
        return ()


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
        self._dropped  # noqa: B018 - it is kept

    def dropped(self, event: str) -> Sequence[DroppedRow]:
        """See `Kept`."""
        return [row for row in self._dropped if row.event == event]

    @cached_property
    def _dropped(self) -> Sequence[DroppedRow]:
        """The tables are read again: without `of`, and without `where`."""
        filtered = {
            name: event
            for name, event in self._book.events.items()
            if isinstance(event, TableEvent | SignalEvent) and (event.where or _of(event))
        }
        if not filtered:
            return ()
        whole = self._read({})
        every = {n: replace(e, of=()) for n, e in filtered.items() if isinstance(e, TableEvent)}
        wider = self._read(every) if any(map(_of, filtered.values())) else whole
        widest = self._read({n: replace(every.get(n, e), where=None) for n, e in filtered.items()})
        found: list[DroppedRow] = []
        for name, event in filtered.items():
            of = ", ".join(_of(event))
            found += _beyond(name, "of", of, whole.get(name, []), wider.get(name, []))
            found += _beyond(
                name, "where", event.where or "", wider.get(name, []), widest.get(name, [])
            )
        return found

    def _read(self, events: Mapping[str, Any]) -> dict[str, list[tuple[int, dict[str, Any]]]]:
        """By event type, instants and rows of what the plans hold under other event types."""
        capture = Capture(replace(self._book, events={**self._book.events, **events}), self._needs)
        found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        for plan in self._plans:
            bucket = capture.capture(plan, self._feed)
            for name, batch in bucket.batches.items():
                names = [n for n in batch.table.column_names if n not in (VERSION_OF, SIGNAL_OF)]
                rows = python_rows(batch.table.select(names).take(pa.array(batch.row)))
                found.setdefault(name, []).extend(zip(batch.time.tolist(), rows, strict=True))
        return found


def every_parameter(book: Rulebook, tables: Mapping[str, pa.Schema]) -> Needs:
    """All parameters of all event types."""
    names = {name: tuple(parameter_schema(book, name, tables).names) for name in book.events}
    return Needs(names)


def _of(event: TableEvent | SignalEvent) -> tuple[str, ...]:
    return event.of if isinstance(event, TableEvent) else ()


def _beyond(
    event: str,
    by: str,
    text: str,
    fewer: Sequence[tuple[int, Mapping[str, Any]]],
    more: Sequence[tuple[int, Mapping[str, Any]]],
) -> Iterator[DroppedRow]:
    """The rows of `more` that are not among `fewer`; equal rows are several."""
    known = Counter((instant, repr(row)) for instant, row in fewer)
    for instant, row in more:
        if known[instant, repr(row)]:
            known[instant, repr(row)] -= 1
        else:
            yield DroppedRow(event, instant, by, text, row, row.get(OLD) or {})
