"""Reads what a plan holds, and makes its occurrences (G2, G5, G6, G11, G25)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.capture.changes import Changes, arrange
from tidegate.engine.capture.commits import commits
from tidegate.engine.capture.event_time import timed
from tidegate.engine.capture.images import changed
from tidegate.engine.capture.request import EventRequest, TableRequest, table_request
from tidegate.engine.capture.row_filters import Bools, Undecided, held, reasons, rejected
from tidegate.engine.capture.schedule import NO_CLOCKS, Clocks
from tidegate.engine.core.columns.hashing import row_hash
from tidegate.engine.core.columns.ids import column_set, occurrence_ids, signal_ids
from tidegate.engine.core.evaluator.nodes import UndecidedError
from tidegate.engine.core.event_names import EventKey, shown_name
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.parameters import OLD, SIGNAL_OF, VERSION_OF
from tidegate.engine.core.ports import Feed
from tidegate.engine.core.text.logs import READING, begin, go_on
from tidegate.engine.core.types.fields import fitting
from tidegate.engine.core.values import (
    ENGINE,
    Batch,
    Bucket,
    Int64,
    Needs,
    Plan,
    Rejected,
    Signal,
    TableRange,
    UInt64,
)
from tidegate.rules.analysis.graph import table_events
from tidegate.rules.model import Change, Rulebook, SignalEvent, TableEvent

_KINDS: Mapping[
    Change, npt.NDArray[np.bool_]
] = {  # by ChangeKind: insert, delete, update, snapshot
    Change.INSERT: np.array([True, False, False, True]),
    Change.DELETE: np.array([False, True, False, False]),
    Change.UPDATE: np.array([False, False, True, False]),
    Change.CHANGE: np.array([True, True, True, True]),
}


OfEvent = tuple[str, Batch, list[Rejected]]
"""An event type, its occurrences, and what is rejected."""


class Decides(Protocol):
    """Of a feed, what makes occurrences of rows at hand."""

    def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
        """See `engine.core.ports.Feed.decide`."""
        ...


class Capture:
    """Captures the occurrences of one rulebook. Another rulebook or other needs take a new
    object."""

    def __init__(self, rulebook: Rulebook, needs: Needs) -> None:
        self._rulebook = rulebook
        self._needs = needs
        self._requests: dict[tuple[str, str], TableRequest | None] = {}
        self._id_sets: dict[str, dict[str, tuple[str, ...]]] = {}
        for (_, event), columns in needs.ids.items():
            self._id_sets.setdefault(event, {})[column_set(columns)] = tuple(columns)
        self._commits: dict[str, list[TableEvent]] = {}  # event types that are commits, by table
        for kind in rulebook.events.values():
            if isinstance(kind, TableEvent) and kind.change.is_commit and kind.name in needs.carry:
                self._commits.setdefault(kind.table, []).append(kind)

    def used(self, table: str, schema: str) -> Collection[str]:
        """The columns of a table that the rulebook reads, for `make_plan`."""
        request = self.request(table, schema)
        return request.used if request else ()

    def capture(self, plan: Plan, feed: Feed, clocks: Clocks = NO_CLOCKS) -> Bucket:
        """Read what the plan holds. It takes one Spark job a table, none where all its commits
        are plain appends, and a further one for a `where` over old and new that Arrow cannot
        decide. Raises EngineError as `Feed.read` does, and `unpaired-update`."""
        batches: dict[str, Batch] = {}
        rejected: list[Rejected] = []
        rows = len(plan.signals)
        begin(READING, len(plan.ranges))
        for span in plan.ranges:
            go_on(READING)
            rejected += _taken(self._of_commits(span, feed), batches)
            if span.table in plan.site.tables:
                continue  # executors read it
            request = self.request(span.table, span.cursor.schema)
            if request is None or is_empty(span):
                continue
            failpoint("read.before")
            found = feed.read(request.table, span, request.read)
            failpoint("read.after")
            rows += found.num_rows
            table = TableCapture(request, span, arrange(found, span, request), feed, plan)
            rejected += _taken(map(table.captured, request.events), batches)
        rejected += _taken(self._signals(plan.signals, feed), batches)
        batches |= clocks.batches(plan)
        return Bucket(plan, batches, tuple(rejected), rows)

    def request(self, table: str, schema: str) -> TableRequest | None:
        """What is asked of a table; None if none of its rows is an occurrence."""
        if (table, schema) not in self._requests:
            events = [
                event
                for event in table_events(self._rulebook)
                if event.table == table
                and not event.change.is_commit
                and event.name in self._needs.carry
            ]
            declared = self._rulebook.tables[table]
            self._requests[table, schema] = (
                table_request(declared, events, schema, self._needs, self._id_sets)
                if events
                else None
            )
        return self._requests[table, schema]

    def _of_commits(self, span: TableRange, feed: Feed) -> Iterator[OfEvent]:
        """The commits of a range, for each event type that a rule listens to."""
        events = self._commits.get(span.table)
        if events and not span.snapshot:
            table, book = self._rulebook.tables[span.table], self._rulebook.name
            yield from commits(table, events, span, self._needs, self._id_sets, feed, book)

    def _signals(self, signals: Sequence[Signal], feed: Feed) -> Iterator[OfEvent]:
        """The signals, for each event type that a rule listens to. Signals are rejected if their
        fields are not of the types declared now, or the `where` raises on them."""
        by_event: dict[str, list[Signal]] = {}
        for signal in sorted(signals, key=lambda s: (s.instant, s.key)):
            by_event.setdefault(signal.event, []).append(signal)
        for name, event in self._rulebook.events.items():
            raised = by_event.get(shown_name(name))
            if not raised or not isinstance(event, SignalEvent) or name not in self._needs.carry:
                continue
            table, faults = fitting(event, [signal.fields for signal in raised])
            kept = [signal for at, signal in enumerate(raised) if at not in faults]
            batch = self._signal_batch(name, kept, table)
            wrong = [_rejected(raised[at], fault) for at, fault in faults.items()]
            if event.where is not None and event.fields:
                mask, undecided = held(event.where, table, feed, f"signal {name}")
                batch = batch.take(np.flatnonzero(mask))
                wrong += [
                    _rejected(kept[at], f"`where: {event.where}` fails on this signal{why}")
                    for rows, why in undecided
                    for at in rows
                ]
            yield name, batch, wrong

    def _signal_batch(self, name: str, raised: Sequence[Signal], table: pa.Table) -> Batch:
        ids = signal_ids(shown_name(name), [signal.key for signal in raised])
        depth = np.array([signal.depth for signal in raised], np.int32)
        keys = pa.array([f"{signal.namespace}/{signal.id}" for signal in raised], pa.string())
        columns = dict(zip(table.column_names, table.columns, strict=True))
        return Batch(
            event=shown_name(name),
            time=np.array([signal.instant for signal in raised], np.int64),
            row=np.arange(len(raised)),
            table=pa.table({**columns, SIGNAL_OF: keys}),  # some have no fields
            ids=dict.fromkeys(self._id_sets.get(name, {}), ids),
            depth=depth if depth.any() else None,
        )


def _taken(found: Iterable[OfEvent], batches: dict[str, Batch]) -> list[Rejected]:
    """Adds what is captured to `batches`. Returns what is rejected: once, if it would have been of
    several event types that show one name."""
    rejected: list[Rejected] = []
    told: set[str] = set()
    for name, batch, wrong in found:
        rejected += wrong if batch.event not in told else ()
        told.add(batch.event)
        if len(batch):
            known = batches.get(name)
            batches[name] = _together(known, batch) if known else batch
    return rejected


def _rejected(signal: Signal, reason: str) -> Rejected:
    whose = "engine signal" if signal.namespace == ENGINE else "signal"
    return Rejected(signal.event, f"{whose} {signal.id}", reason, signal.fields)


def _together(rows: Batch, raised: Batch) -> Batch:
    """Two batches of one signal as one, in order of time: `rows` from its table, and the signals
    that were `raised` one by one."""
    names = {*rows.table.column_names, SIGNAL_OF}
    own = raised.table.select([name for name in raised.table.column_names if name in names])
    whole = Batch(
        rows.event,
        np.concatenate([rows.time, raised.time]),
        np.concatenate([rows.row, raised.row + rows.table.num_rows]),
        pa.concat_tables([rows.table, own], promote_options="default"),
        {name: np.concatenate([ids, raised.ids[name]]) for name, ids in rows.ids.items()},
        np.concatenate([rows.depths, raised.depths]),
    )
    return whole.take(np.argsort(whole.time, kind="stable"))


def is_empty(span: TableRange) -> bool:
    """Whether no row of a range is an occurrence, so that no job is needed."""
    return not span.snapshot and all(v in span.skipped for v in range(span.first, span.last + 1))


class TableCapture:
    """Makes the occurrences of the event types of one table. What several of them share is computed
    once."""

    def __init__(
        self,
        request: TableRequest,
        span: TableRange,
        changes: Changes,
        feed: Decides,
        plan: Plan,
        *,
        whole: bool = True,
    ) -> None:
        """`whole`: `changes` are all of the span; else what is made of them meets others, and ids
        are not `counted` (`engine.core.columns.ids.occurrence_ids`)."""
        self._request, self._whole = request, whole
        self._span = span
        self._changes = changes
        self._feed = feed
        self._book = plan.rulebook
        # The rows of a rulebook's first snapshots keep their event times, however old they are.
        self._seen_at = plan.now if span.snapshot and plan.bucket == 1 else None
        self._decided = (
            feed.decide(_images(request, changes), request.decide, span.table)
            if (request.decide and changes.rows.num_rows)
            else None
        )
        self._undecided: dict[str, pa.Table] = {}  # Spark's answers, by a filter's text
        self._rows: dict[tuple[object, ...], tuple[Int64, Int64]] = {}
        self._hashes: dict[tuple[str, ...], UInt64] = {}
        self._tables: dict[tuple[tuple[str, str], ...], pa.Table] = {}

    def captured(self, request: EventRequest) -> OfEvent:
        """The occurrences of one event type, and the rejected rows: those on which its `where`
        raises, and those whose event time is missing, late or too far ahead."""
        event, changes = request.event, self._changes
        key = EventKey.of(event.name)
        rows, raising = self._occurrences(request)
        time, refused = changes.time[rows], list[tuple[Int64, str]]()
        if event.time is not None:
            column = changes.column(event.time)
            rows, time, refused = timed(event, column, rows, time, self._seen_at)
        refused += [
            (undecided, f"`where: {event.where}` fails on this row{why}")
            for undecided, why in self._reasons(request, raising)
        ]
        if key.but_of and self._span.writers:
            own = self._span.written_by((self._book, key.but_of), changes.version[rows])
            seen = np.flatnonzero(~own)
            rows, time = rows[seen], time[seen]
        ids = {
            digest: occurrence_ids(
                str(key.public),
                self._span.cursor.table_id,
                rows,
                changes.version,
                changes.kind,
                self._hash(columns),
                counted=self._whole,
            )
            for digest, columns in request.ids.items()
        }
        depth = None
        if self._span.depths:
            of_commits = self._span.of_versions(self._span.depths, changes.version[rows])
            depth = of_commits.astype(np.int32)
        batch = Batch(key.shown, time, rows, self._table(request), ids, depth)
        rows_shown = changes.rows.select(self._request.read.columns)
        table = self._span.table
        return event.name, batch, rejected(key.shown, table, rows_shown, changes.version, refused)

    def _occurrences(self, request: EventRequest) -> tuple[Int64, Int64]:
        """The row numbers of the occurrences, and of the rows on which the predicate raises, in
        order of time."""
        event = request.event
        sort = (event.change, self._asked(request), event.of)
        if sort not in self._rows:
            mask: Bools = _KINDS[event.change][self._changes.kind]
            raising = np.zeros_like(mask)
            if event.of:
                mask &= self._changed(event.of)
            if event.where is not None and len(mask):
                held, raising = self._held(request)
                mask, raising = mask & held, mask & raising
            self._rows[sort] = self._changes.in_order(mask), self._changes.in_order(raising)
        return self._rows[sort]

    def _changed(self, columns: Sequence[str]) -> npt.NDArray[np.bool_]:
        pairs = ((self._changes.column(f"{OLD}.{c}"), self._changes.column(c)) for c in columns)
        masks = [changed(before, after) for before, after in pairs]
        return np.asarray(np.any(masks, axis=0), np.bool_)

    def _held(self, request: EventRequest) -> tuple[Bools, Bools]:
        """Two marks for each row: its `where` is true; its `where` raises. Rows that the filter
        cannot decide go to Spark whole."""
        if request.filter is not None:
            columns = {name: self._changes.column(name) for name in request.filter.columns}
            try:
                held = request.filter.run(columns)
                return held, np.zeros_like(held)
            except UndecidedError:
                self._ask(request.filter.text, request.event.where or "")
        asked = self._asked(request)
        answer = self._said(asked).column(asked)
        return answer.fill_null(False).to_numpy(), answer.is_null().to_numpy()

    def _ask(self, name: str, where: str) -> None:
        """Ask Spark what a filter could not decide."""
        if name not in self._undecided:
            rows = self._changes.rows.select(self._request.read.columns)
            if self._request.paired:
                rows = _images(self._request, self._changes)
            self._undecided[name] = self._feed.decide(rows, {name: where}, self._span.table)

    def _asked(self, request: EventRequest) -> str:
        """The column with Spark's answers to the `where`, "" without one. That of a filter is there
        only once Spark was asked."""
        return (request.asked or "") if request.filter is None else request.filter.text

    def _said(self, asked: str) -> pa.Table:
        """The table that has the column with a predicate's answers."""
        if asked in self._undecided:
            return self._undecided[asked]
        decided = self._decided
        if decided is not None and asked in decided.column_names:
            return decided
        return self._changes.rows

    def _reasons(self, request: EventRequest, rows: Int64) -> Undecided:
        asked = self._asked(request)
        return reasons(self._said(asked), asked, rows) if len(rows) else []

    def _hash(self, columns: tuple[str, ...]) -> UInt64:
        if columns not in self._hashes:
            table = pa.table({name: self._changes.column(name) for name in columns})
            self._hashes[columns] = (
                row_hash(table) if columns else np.zeros((len(self._changes.kind), 2), np.uint64)
            )
        return self._hashes[columns]

    def _table(self, request: EventRequest) -> pa.Table:
        """The parameters as columns, and the version. The fields `old.x` are one struct column
        `old`."""
        sort = tuple(request.carry.items())
        if sort not in self._tables:
            fields = [c.removeprefix(f"{OLD}.") for c in request.carry if c.startswith(f"{OLD}.")]
            columns = {
                name: self._changes.column(column)
                for name, column in request.carry.items()
                if not name.startswith(f"{OLD}.")
            }
            if fields and OLD not in columns:
                columns[OLD] = self._changes.struct(self._changes.before, fields)
            columns[VERSION_OF] = pa.chunked_array([pa.array(self._changes.version)])
            self._tables[sort] = pa.table(columns)
        return self._tables[sort]


def _images(request: TableRequest, changes: Changes) -> pa.Table:
    """Rows with the structs `old` and `new`, for a `where` over both."""
    columns = changes.rows.select(request.read.columns)
    new = pa.StructArray.from_arrays(
        [c.combine_chunks() for c in columns.columns], columns.column_names
    )
    old = changes.struct(changes.before, list(request.old))
    return columns.append_column(OLD, old).append_column("new", pa.chunked_array([new]))
