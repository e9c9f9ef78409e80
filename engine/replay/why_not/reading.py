"""Reads once more what past buckets held: versions of tables at their stored instants, and signals.

What cannot be read any more (vacuumed, cleaned up, of a table that was replaced) moves the begin of
what is looked at to after it, and is said.

Example: buckets 5 to 9 hold versions 12 to 30 of `orders`. That is one read. If the files of 12 to
17 are gone, 18 to 30 are read: everything after the instant of 17.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tidegate.engine.capture.read import Capture
from tidegate.engine.core.clocks import clock_batches
from tidegate.engine.core.instants import after_watermark
from tidegate.engine.core.parameters import input_columns
from tidegate.engine.core.ports import LOST, Feed, OutageError
from tidegate.engine.core.text.times import of_text
from tidegate.engine.core.values import (
    FOREVER,
    Batch,
    Bucket,
    Carried,
    Cursor,
    Plan,
    Signal,
    TableRange,
    Writer,
)
from tidegate.engine.detect.events.occurrences.concatenation import both
from tidegate.engine.detect.stage import BucketDetector
from tidegate.engine.replay.why_not.evidence import RefusedRow
from tidegate.engine.replay.why_not.sources import Looked, every_parameter
from tidegate.engine.store.past import PastBucket, PastRange, PastRejected
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook, TableEvent

REPLACED = frozenset(
    {"table-missing", "table-replaced", "table-truncated", "log-rewritten", "feed-off"}
)
"""The codes of errors of a listing after which no version of a table is what it was."""
Instants = Mapping[tuple[int, str], Mapping[int, int]]
"""By bucket and table, the instants of versions."""


@dataclass(slots=True)
class Held:
    """What past buckets held. `plans`: what is to be read. `begin`: what stands before cannot be
    read; None: everything can. `gone`: why not, by table. `errors`: by table that is another one
    now, how its log says so."""

    plans: list[Plan] = field(default_factory=list)
    begin: int | None = None
    gone: dict[str, list[str]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def lose(self, table: str, until: int, sentence: str) -> None:
        """What stands in a table at `until` or before cannot be read."""
        self.begin = max(self.begin or until + 1, until + 1)
        said = self.gone.setdefault(table, [])
        if sentence not in said:
            said.append(sentence)

    @property
    def notes(self) -> list[str]:
        """What cannot be read."""
        return [sentence for said in self.gone.values() for sentence in said]

    @property
    def lost(self) -> str:
        """Why nothing of some table can be read; empty if something of each can."""
        left = {span.table for plan in self.plans for span in plan.ranges}
        return next((said[-1] for table, said in self.gone.items() if table not in left), "")


def held(
    book: Rulebook,
    buckets: Sequence[PastBucket],
    instants: Instants,
    cursors: Mapping[str, Cursor],
    tables: Collection[str],
    signals: Sequence[Signal],
    writers: Mapping[str, Mapping[int, Writer]],
) -> Held:
    """What the buckets held, the oldest first: a plan for each run of versions of a table, and one
    for all signals. `writers`: by table and version, whose action wrote it."""
    found, runs = Held(), dict[str, list[Plan]]()
    for bucket in buckets:
        for of in bucket.ranges:
            if of.table not in tables or of.last < of.first:
                continue
            span = _span(of, bucket, instants.get((bucket.number, of.table), {}), cursors, found)
            if span is not None:
                mine = runs.setdefault(of.table, [])
                last = mine[-1].ranges[0] if mine else None
                if last is not None and _follows(last, span):
                    mine[-1] = replace(mine[-1], ranges=(_joined(last, span),))
                else:
                    mine.append(_plan(book, bucket, (span,)))
    for table, plans in runs.items():
        own = writers.get(table, {})
        for plan in plans:
            (span,) = plan.ranges
            wrote = {v: by for v, by in own.items() if span.first <= v <= span.last}
            found.plans.append(replace(plan, ranges=(replace(span, writers=wrote),)))
    if signals:
        found.plans.append(replace(_plan(book, buckets[0], ()), signals=tuple(signals)))
    return found


def _plan(book: Rulebook, bucket: PastBucket, ranges: tuple[TableRange, ...]) -> Plan:
    before = bucket.watermark_before
    return Plan(book.name, bucket.number, before, FOREVER, bucket.now, ranges)


def _span(
    of: PastRange,
    bucket: PastBucket,
    known: Mapping[int, int],
    cursors: Mapping[str, Cursor],
    found: Held,
) -> TableRange | None:
    """The range of a bucket; None if it cannot be read or placed any more."""
    cursor = cursors.get(of.table)
    if cursor is None or cursor.table_id != of.table_id:
        found.lose(of.table, bucket.watermark, _replaced(of.table))
        return None
    if of.snapshot:
        known = {of.last: after_watermark(bucket.watermark_before)}
    if not all(version in known for version in range(of.first, of.last + 1)):
        said = f"`{of.table}`: the instants of its commits were forgotten when it was reset"
        found.lose(of.table, bucket.watermark, said)
        return None
    return TableRange(
        of.table, of.first, of.last, known, cursor, of.depths, of.snapshot, of.skipped, bucket.rows
    )


def _replaced(table: str) -> str:
    return f"table `{table}` was replaced or created anew since, and what it held is gone"


def _follows(last: TableRange, span: TableRange) -> bool:
    return span.first == last.last + 1 and not (last.snapshot or span.snapshot)


def _joined(one: TableRange, other: TableRange) -> TableRange:
    return replace(
        one,
        last=other.last,
        instants={**one.instants, **other.instants},
        depths={**one.depths, **other.depths},
        skipped=one.skipped | other.skipped,
        rows_estimate=one.rows_estimate + other.rows_estimate,
    )


class Reader:
    """Reads what was held. `book`: with the event types that are looked at, and no others."""

    def __init__(self, book: Rulebook, tables: Mapping[str, pa.Schema], feed: Feed) -> None:
        self._book, self._tables, self._feed = book, tables, feed
        read = {
            (script.name, event): columns
            for script in book.scripts.values()
            for event, columns in input_columns(book, script, tables, []).items()
        }
        self._needs = replace(every_parameter(book, tables), ids=read)
        self._capture = Capture(book, self._needs)

    def read(self, held: Held, begin: int, end: int) -> Looked:
        """What was held, with what scripts emit from `begin` on, up to `end`. What cannot be read
        is taken out of `held`, and said there."""
        batches: dict[str, Batch] = {}
        left: list[Plan] = []
        for table in {span.table: None for plan in held.plans for span in plan.ranges}:
            self._identify(table, held)
        for plan in held.plans:
            read = self._readable(plan, held)
            if read is not None:
                left.append(read.plan)
                for event, batch in read.batches.items():
                    known = batches.get(event)
                    batches[event] = batch if known is None else both(known, batch)
        held.plans[:] = left
        whole = {
            event: batch.take(np.argsort(batch.time, kind="stable"))
            for event, batch in batches.items()
        }
        emitted = self._emitted(whole, max(begin, held.begin or begin), end)
        return Looked(self._book, self._tables, self._feed, left, [whole, emitted])

    def _identify(self, table: str, held: Held) -> None:
        """Leave out a table that is another one than it was."""
        spans = [span for plan in held.plans for span in plan.ranges if span.table == table]
        try:
            self._feed.head(self._book.tables[table], spans[-1].cursor)
        except EngineError as error:
            _raise_lost(error)
            if error.code in REPLACED:
                said = _replaced(table) if error.code == "table-replaced" else error.message
                held.lose(table, max(spans[-1].instants.values()), said)
                held.errors[table] = error.message
                held.plans[:] = [
                    plan for plan in held.plans if all(span.table != table for span in plan.ranges)
                ]

    def _readable(self, plan: Plan, held: Held) -> Bucket | None:
        """What a plan held, or its last versions that can still be read."""
        try:
            return self._capture.capture(plan, self._feed)
        except EngineError as error:
            _raise_lost(error)
            if not plan.ranges:
                raise
            said = error.message
        (span,) = plan.ranges
        found, low, high = None, span.first + 1, span.last + 1
        while low < high:
            middle = (low + high) // 2
            later = replace(plan, ranges=(_from(span, middle),))
            try:
                found, high = self._capture.capture(later, self._feed), middle
            except EngineError as error:
                _raise_lost(error)
                low = middle + 1
        versions = f"version {span.first}"
        if high - 1 > span.first:
            versions = f"versions {span.first} to {high - 1}"
        held.lose(span.table, span.instants[high - 1], f"`{span.table}`, {versions}: {said}")
        return found

    def _emitted(self, batches: Mapping[str, Batch], begin: int, end: int) -> Mapping[str, Batch]:
        """What the scripts emit, which are run once more from `begin` on."""
        book = self._book
        if not book.scripts:
            return {}
        active = dict.fromkeys((*book.rules, *book.scripts), begin)
        settings = replace(book.settings, timers_per_bucket_max=FOREVER)
        plan = Plan(book.name, 1, begin - 1, end, end, activations=active)
        clocks = clock_batches(book, begin, end)
        given = {
            event: batch.take(np.flatnonzero((batch.time >= begin) & (batch.time <= end)))
            for event, batch in {**batches, **clocks}.items()
        }
        detector = BucketDetector(book, active, self._needs)
        return detector.step(Bucket(plan, given), Carried(), (), settings)[1].shown


def _from(span: TableRange, first: int) -> TableRange:
    instants = {version: at for version, at in span.instants.items() if version >= first}
    return replace(span, first=first, instants=instants)


def refused_row(book: Rulebook, row: PastRejected, instants: Instants) -> RefusedRow:
    """A rejected row where it would stand: at its event time, else at its commit's instant."""
    event = book.events.get(row.event)
    table, _, version = row.source.rpartition("@")
    instant = None
    if version.isdecimal():
        instant = instants.get((row.bucket, table), {}).get(int(version))
    if isinstance(event, TableEvent) and event.time is not None:
        with suppress(ValueError):
            instant = of_text(str(row.fields.get(event.time)))
    return RefusedRow(row.event, instant, row.reason, row.fields)


def _raise_lost(error: EngineError) -> None:
    """Raise what says nothing of a table."""
    if isinstance(error, OutageError) or error.code in LOST:
        raise error
