"""Evidence of a world in memory: of its buckets, its store and its tables.

Example: a case of `tidegate test` wants a firing that is missing. Its world still has each bucket
with its occurrences; which rows `where` dropped is found by reading its tables again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import pyarrow as pa

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.parameters import key_schema
from tidegate.engine.core.ports import Feed
from tidegate.engine.core.values import Firings, Plan, Rejected
from tidegate.engine.replay.memory.opening import Buckets
from tidegate.engine.replay.memory.store import MemoryStore
from tidegate.engine.replay.why_not.evidence import (
    ActiveSpan,
    Evidence,
    Key,
    RefusedRow,
)
from tidegate.engine.replay.why_not.sources import Looked
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.model import Rulebook, TableEvent


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


class Sources(Looked):
    """Occurrences of a world, and the rows that became none."""

    def __init__(
        self,
        book: Rulebook,
        tables: Mapping[str, pa.Schema],
        feed: Feed,
        buckets: Buckets,
    ) -> None:
        heard = [one for _, one in sorted(buckets.items())]
        batches = [batches for one in heard for batches in (one.bucket.batches, one.emitted)]
        super().__init__(book, tables, feed, [one.bucket.plan for one in heard], batches)
