"""A rulebook over signals, run by the loop on a store on disk and a clock that is set."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from tests.reference.evaluate import Line
from tests.reference.hits import stepped
from tests.support.acting import executors
from tests.support.analysts import EveryIdAnalyst
from tests.support.memory import MemoryFeed, MemorySink, schema
from tests.support.rulebooks import condition
from tidegate.engine.act.run import Runner
from tidegate.engine.act.targets import Targets
from tidegate.engine.capture.commit_instants import Instants
from tidegate.engine.core.ports import (
    FEED_KINDS,
    KIND,
    VERSION,
    Executors,
    ReadRequest,
    TableHead,
)
from tidegate.engine.core.types.spark import arrow_schema
from tidegate.engine.core.values import (
    Answers,
    Commit,
    Cursor,
    Question,
    Reading,
    Signal,
    TableRange,
)
from tidegate.engine.detect.stage import BucketDetector
from tidegate.engine.evaluate.action_events import with_action_events
from tidegate.engine.evaluate.requirements import Prepared, prepare
from tidegate.engine.loop.compiled_rulebook import first_compiled, script_digests
from tidegate.engine.loop.loop import Loop
from tidegate.engine.loop.planner import Planner
from tidegate.engine.loop.ports import Ports
from tidegate.engine.replay.memory.executors import Alone
from tidegate.engine.replay.memory.opening import quarantine
from tidegate.engine.store import SqlStore
from tidegate.rules.model import Rulebook, Table

TIMED = schema("id", "v")[:-2] + (
    ', {"name": "at", "type": "timestamp", "nullable": true, "metadata": {}}]}'
)
BEFORE_ACTIVATION = 2  # us: the watermark next before an instant of the grid


class All(EveryIdAnalyst):
    """Conditions that read everything, or these columns, and always hold."""

    def __init__(self, columns: frozenset[str] | None = None) -> None:
        super().__init__()
        self.columns = columns

    def condition(self, *given: Any, **more: object) -> Reading:
        names = frozenset(given[1].names)
        return Reading(names if self.columns is None else names & self.columns)

    def hold(self, questions: Sequence[Question]) -> Answers:
        ids = (i for q in questions for i in q.firing_ids.to_pylist())
        return Answers(frozenset(ids))


class RowsFeed(MemoryFeed):
    """Tables of rows (`id`, `v`, `at`), by name: each commit with its instant."""

    def __init__(self) -> None:
        super().__init__(0)
        self.written: dict[str, list[tuple[int, list[tuple[int | None, int | None]]]]] = {}

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        cursor = after or Cursor(table.name, table.name, -1, 0, TIMED)
        commits = self.written.get(table.name, [])
        listed = [
            Commit(version, instant, rows_estimate=len(rows))
            for version, (instant, rows) in enumerate(commits)
            if version > cursor.version
        ]
        return TableHead(cursor, len(commits) - 1, tuple(listed))

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        found = [
            {VERSION: version, KIND: FEED_KINDS["insert"], "id": 0, "v": v, "at": at}
            for version in range(span.first, span.last + 1)
            for v, at in self.written[table.name][version][1]
        ]
        types = [(VERSION, pa.int64()), (KIND, pa.int64()), *arrow_schema(TIMED).remove(2)]
        rows = pa.Table.from_pylist(found, pa.schema([*types, ("at", pa.int64())]))
        at = rows.column("at").cast(pa.timestamp("us", "UTC"))
        return rows.set_column(4, "at", at).select([VERSION, KIND, *request.columns])


class SnapshotFeed(RowsFeed):
    """The same; table a is there before, with these rows."""

    def __init__(self, instant: int, rows: list[tuple[int | None, int]]) -> None:
        super().__init__()
        self.written["a"] = [(instant, rows)]

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        if after is not None or table.name != "a":
            return super().head(table, after)
        return TableHead(Cursor("a", "a", 0, self.written["a"][0][0], TIMED), 0, (), snapshot=True)

    def earliest(self, table: Table, cursor: Cursor, column: str) -> int | None:
        return min(at for _, at in self.written["a"][0][1])


class Live:
    """The engine's loop on a rulebook. Its rules become active at `begin`, microseconds; `name` is
    that of the rulebook in the store."""

    def __init__(
        self,
        store: SqlStore,
        book: Rulebook,
        name: str,
        begin: int,
        feed: MemoryFeed | None = None,
        beside: Executors | None = None,
    ) -> None:
        """`beside`: who may detect beside the driver."""
        self.beside = beside
        self.feed = feed or MemoryFeed(0)
        rules = {n: replace(r, condition=condition("all")) for n, r in book.rules.items()}
        slack = replace(book.settings, commit_slack_ms=0)
        self.book = replace(book, name=name, rules=rules, settings=slack)
        self.store, self.at = store, begin - BEFORE_ACTIVATION
        store.of(name).versions.register("", None)
        self.reads: frozenset[str] | None = None  # by conditions; None: everything
        self.restart()
        assert self.drain(self.at) == 1  # the first bucket, which activates the rules
        self.raised = 0

    def edit(self, book: Rulebook) -> None:
        """Another engine, with other rules or events."""
        rules = {n: replace(r, condition=condition("all")) for n, r in book.rules.items()}
        self.book = replace(self.book, rules=rules, events=book.events, scripts=book.scripts)
        self.restart()

    def restart(self) -> None:
        """Another engine on the same store."""
        book = with_action_events(self.book, dict.fromkeys(self.book.tables, arrow_schema(TIMED)))
        store, analyst, sink = self.store, All(self.reads), MemorySink()
        ledger = store.of(book.name, store.of(book.name).lease.acquire("one", 600))
        state = ledger.buckets.load(apart=book.settings.detect != "driver")

        def prepared(*_: Any) -> Prepared:
            return prepare(book, dict.fromkeys(book.tables, arrow_schema(TIMED)), analyst)

        compiled = first_compiled(
            book,
            {**dict.fromkeys(book.rules, "d"), **script_digests(book)},
            dict.fromkeys(book.tables, TIMED),
            state.activations,
            prepared,
            detecting=partial(BucketDetector, executors=self.beside),
        )
        ports = Ports(
            ledger=ledger,
            store_id=store.id,
            check_lease=lambda: None,
            prepare=prepared,
            feed=self.feed,
            conditions=analyst,
            asked_later=analyst,
            quarantine=quarantine(ledger.suspects),
            now=self.now,
            executors=self.beside,
        )
        self.loop = Loop(
            compiled,
            state,
            ports,
            planner=Planner(book, ports, Instants(0)),
            runner=Runner(book, executors(sink, self.now), ledger, lambda: None, self.now, Alone()),
            targets=Targets(sink),
        )

    def now(self) -> int:
        return self.at

    def signal(self, lines: Iterable[Line]) -> None:
        """Raise signals, received at their times."""
        for event, time, fields in lines:
            self.raised += 1
            self.store.of(self.book.name).signals.raise_signal(
                Signal(f"s{self.raised}", event, fields, time)
            )

    def drain(self, now: int) -> int:
        """Buckets until there is nothing left at `now`; how many."""
        self.at = now
        count = 0
        while True:
            before = self.loop.state
            if self.loop.bucket() is None:
                return count
            if before.watermark is not None:
                stepped(before.carried.tables.values())
            count += 1

    def ends(self, rule: str) -> list[tuple[str, int]]:
        """Of each firing of a rule its time of day, and how many rows it has."""
        found = [f for f in self.found() if f["rule"] == rule]
        return [(f["end"][11:19], len(f["constituents"])) for f in found]

    def found(self) -> list[dict[str, Any]]:
        """All firings, of which `simulate` would print the same."""
        shown = ("rule", "key", "start", "end", "constituents")
        return [{k: f[k] for k in shown} for f in self.store.of(self.book.name).firings.listed()]
