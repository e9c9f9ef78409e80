"""Evidence of a world in memory: of its buckets, its store and its tables.

Example: a case of `tidegate test` wants a firing that is missing. Its world still has each bucket
with its occurrences; which rows `where` dropped is found by reading its tables again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from typing import Any

import pyarrow as pa

from tidegate.engine.capture.read import Capture
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.parameters import OLD, key_schema, parameter_schema
from tidegate.engine.core.ports import Feed
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import Batch, Firings, Needs, Plan, Rejected
from tidegate.engine.detect.events.occurrences.concatenation import both
from tidegate.engine.replay.memory.opening import Buckets
from tidegate.engine.replay.memory.store import MemoryStore
from tidegate.engine.replay.why_not.evidence import (
    ActiveSpan,
    DroppedRow,
    Evidence,
    Key,
    RefusedRow,
)
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.model import Rulebook, SignalEvent, TableEvent


def evidence_of(
    book: Rulebook, store: MemoryStore, sources: Sources, buckets: Buckets, seen: int
) -> Evidence:
    """What a world kept. `seen`: up to where everything was taken."""
    firings: dict[str, list[Firings]] = {}
    for (_, rule), fired in sorted(store.stored.items()):
        firings.setdefault(rule, []).append(fired)
    refused = [
        _refused(book, row, heard.bucket.plan)
        for _, heard in sorted(buckets.items())
        for row in heard.bucket.rejected
    ]
    entries = [_with_firings(entry, store) for entry in store.entries.values()]
    active = _active(book, store, buckets)
    unasked = {
        one: entry.progress.error
        for entry in entries
        if entry.kind == "condition" and entry.progress.error
        for one in entry.firing_ids or ()
    }
    return Evidence(book, seen, active, sources, refused, firings, entries, unasked)


def key_values(
    book: Rulebook, rule: str, key: Mapping[str, Any], tables: Mapping[str, pa.Schema]
) -> Key | None:
    """A key as it is written in YAML in the types of its columns: dates are texts there. None if it
    has other columns."""
    if {*key} != {*book.rules[rule].pattern.key_names}:
        return None
    found = {}
    for field in key_schema(book.rules[rule], book, tables, []):
        value = key[field.name]
        if isinstance(value, str | date) and pa.types.is_temporal(field.type):
            value = pa.scalar(str(value)).cast(field.type).as_py()
        found[field.name] = value
    return found


def _with_firings(entry: Entry, store: MemoryStore) -> Entry:
    """The entry with the ids of its firings."""
    fired = store.stored.get((entry.bucket, entry.rule))
    if entry.firing_ids is not None or fired is None:
        return entry
    return replace(entry, firing_ids=tuple(fired.acted_on.hex_ids().to_pylist()))


def _refused(book: Rulebook, row: Rejected, plan: Plan) -> RefusedRow:
    """A rejected row, at the instant of its commit if that is known."""
    event = book.events.get(row.event)
    instants = {
        instant
        for span in plan.ranges
        if isinstance(event, TableEvent) and event.table == span.table and event.time is None
        for instant in span.instants.values()
    }
    return RefusedRow(
        row.event, instants.pop() if len(instants) == 1 else None, row.reason, row.row
    )


def _active(
    book: Rulebook, store: MemoryStore, buckets: Buckets
) -> Mapping[str, Sequence[ActiveSpan]]:
    """By rule, when it saw occurrences: from its activation on, but for buckets in which it was
    stopped."""
    behind, found = lateness_micros(book), dict[str, list[ActiveSpan]]()
    plans = [heard for _, heard in sorted(buckets.items())]
    for name, last in store.state.activations.items():
        if name not in book.rules or not book.rules[name].enabled:
            continue
        begin = last
        if plans:
            begin = min(last, plans[0].bucket.plan.watermark_before + 1 - behind.get(name, 0))
        spans = [ActiveSpan(begin)]
        for heard in plans:
            plan = heard.bucket.plan
            if name in plan.activations and plan.activations[name] > spans[-1].begin:
                if spans[-1].end is None:
                    spans[-1] = replace(spans[-1], end=plan.activations[name] - 1)
                spans.append(ActiveSpan(plan.activations[name]))
            elif name in heard.stopped and spans[-1].end is None:
                parked = name in store.state.parked
                why = f"parked: {store.parked[name]}" if parked else "disabled"
                spans[-1] = replace(spans[-1], end=plan.watermark_before, ended_by=why)
        found[name] = spans
    return found


class Sources:
    """Occurrences of a world, and the rows that became none. Implements `evidence.Kept`."""

    def __init__(
        self,
        book: Rulebook,
        tables: Mapping[str, pa.Schema],
        feed: Feed,
        buckets: Buckets,
    ) -> None:
        self._book, self._feed = book, feed
        self._heard = [heard for _, heard in sorted(buckets.items())]
        self._needs = Needs(
            {name: tuple(parameter_schema(book, name, tables).names) for name in book.events}
        )

    def occurrences(self, event: str) -> Batch | None:
        """See `Kept`."""
        found: Batch | None = None
        for heard in self._heard:
            for batches in (heard.bucket.batches, heard.emitted):
                batch = batches.get(event)
                if batch is not None and len(batch):
                    found = batch if found is None else both(found, batch)
        return found

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
        """By event type, instants and rows of what the buckets hold under other event types."""
        capture = Capture(replace(self._book, events={**self._book.events, **events}), self._needs)
        found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        for heard in self._heard:
            bucket = capture.capture(heard.bucket.plan, self._feed)
            for name, batch in bucket.batches.items():
                rows = python_rows(batch.table.take(pa.array(batch.row)))
                found.setdefault(name, []).extend(zip(batch.time.tolist(), rows, strict=True))
        return found


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
