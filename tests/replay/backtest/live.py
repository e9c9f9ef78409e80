"""A rulebook that runs live over tables in memory and a store on disk, and the same past tried
again."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.support.make import BEGIN
from tidegate import rules
from tidegate.engine.act.run import Runner
from tidegate.engine.capture.commit_instants import Instants
from tidegate.engine.capture.sources import sources
from tidegate.engine.core.instants import ceil_watermark, floor_watermark
from tidegate.engine.core.ledger import Ledger
from tidegate.engine.core.ports import Feed
from tidegate.engine.core.types.spark import schema_json
from tidegate.engine.core.values import Answers, Firings, Question, Signal
from tidegate.engine.evaluate.action_events import with_action_events
from tidegate.engine.evaluate.conditions import LocalConditions
from tidegate.engine.evaluate.requirements import Prepared, prepare
from tidegate.engine.loop.compiled_rulebook import digests_of, first_compiled
from tidegate.engine.loop.loop import Loop
from tidegate.engine.loop.planner import Planner
from tidegate.engine.loop.ports import Ports
from tidegate.engine.replay.backtest.found import by_rule
from tidegate.engine.replay.backtest.ledger import PastLedger
from tidegate.engine.replay.backtest.past import table_past
from tidegate.engine.replay.backtest.run import Past, Run
from tidegate.engine.replay.memory.analyst import MemoryAnalyst
from tidegate.engine.replay.memory.clock import VirtualClock
from tidegate.engine.replay.memory.executors import Actions, Alone, Unprepared
from tidegate.engine.replay.memory.feed import MemoryFeed
from tidegate.engine.replay.memory.opening import quarantine
from tidegate.engine.replay.memory.sink import MemorySink
from tidegate.engine.replay.memory.tables import MemoryTable
from tidegate.engine.store import SqlStore

ROW = pa.schema({"id": pa.int64(), "k": pa.int64(), "v": pa.int64()})
NO_ROWS = ROW.empty_table()


class Asked:
    """Queries that hold for half of the firings, by id and by the versions that they see."""

    def hold(self, questions: Sequence[Question]) -> Answers:
        held = set[str]()
        for one in questions:
            assert one.condition.query
            seen = str(sorted(one.versions.items()))
            for firing in pc.unique(one.relation["firing_id"]).to_pylist():
                if zlib.crc32(f"{firing} {seen}".encode()) % 2:
                    held.add(firing)
        return Answers(held=frozenset(held))

    def sample(self, text: str, pinned: Mapping[str, int]) -> Any:
        raise AssertionError


@dataclass(slots=True)
class Live:
    """A rulebook over tables with the columns of `ROW`. `store`: what it runs on."""

    text: str
    store: SqlStore
    tables: dict[str, MemoryTable] = field(init=False)
    clock: VirtualClock = field(init=False)
    loop: Loop = field(init=False)
    signals: int = 0

    def __post_init__(self) -> None:
        book = rules.load(self.text)
        self.store.of(book.name).versions.register(self.text, None)
        schemas = dict.fromkeys(book.tables, ROW)
        book = with_action_events(book, schemas)
        self.tables = {name: MemoryTable(name, NO_ROWS, BEGIN - 1_000) for name in book.tables}
        self.clock = VirtualClock(BEGIN)
        ledger = self.store.of(book.name, self.store.of(book.name).lease.acquire("one", 10**6))
        prepared = prepare(book, schemas, MemoryAnalyst(book.tables))

        def preparing(schemas: object, proven: object) -> Prepared:
            return prepared

        texts = {name: schema_json(schema) for name, schema in schemas.items()}
        compiled = first_compiled(book, digests_of(book), texts, {}, preparing)
        ports = ports_of(self.feed, ledger, self.clock, self.store.id)
        ports.prepare = preparing
        sink = MemorySink()
        self.loop = Loop(
            compiled,
            ledger.buckets.load(),
            ports,
            planner=Planner(book, ports, Instants(10_000_000)),
            runner=Runner(
                book,
                Actions().executors(sink, self.clock),
                ledger,
                self.clock.tick,
                self.clock,
                Alone(),
            ),
            targets=Unprepared(sink),
        )
        self.take()

    @property
    def feed(self) -> MemoryFeed:
        return MemoryFeed(self.tables)

    def commit(self, table: str, rows: Sequence[Mapping[str, Any]], behind: int = 0) -> None:
        """Insert rows; the writer's clock is so many microseconds behind."""
        at = self.clock.at - self.clock.at % 1_000 - behind
        inserted = pa.Table.from_pylist(rows, ROW)
        self.tables[table].commit(at, inserted, (), None)

    def signal(self, event: str, **fields: Any) -> None:
        self.signals += 1
        found = Signal(f"s{self.signals}", event, fields, self.clock.at)
        self.store.of(self.loop.compiled.rulebook.name).signals.raise_signal(found)

    def take(self) -> None:
        """What is visible now, and what actions cause by it."""
        while self.loop.bucket() is not None:
            pass

    def settle(self) -> None:
        """All that is left to be done, and what that causes."""
        for _ in range(50):
            self.clock.at += 10_000
            self.take()

    def fired(self) -> dict[str, dict[str, str]]:
        """By rule and id, the condition of each firing."""
        found: dict[str, dict[str, str]] = {}
        for one in self.store.of(self.loop.compiled.rulebook.name).firings.listed():
            found.setdefault(one["rule"], {})[one["firing_id"]] = one["condition"]
        return found


def ports_of(feed: Feed, ledger: Ledger, clock: VirtualClock, store_id: str = "x") -> Ports:
    """The ports of a loop over memory."""

    def preparing(schemas: object, proven: Collection[str]) -> Prepared:
        raise AssertionError

    return Ports(
        ledger=ledger,
        store_id=store_id,
        check_lease=lambda: None,
        prepare=preparing,
        feed=feed,
        conditions=LocalConditions(Asked()),
        asked_later=LocalConditions(Asked()),
        quarantine=quarantine(ledger.suspects),
        now=clock,
    )


def tried_again(live: Live, begin: int, end: int, *, stored: bool = True) -> dict[str, Firings]:
    """The firings of a backtest from the instant `begin` to `end`. `stored`: the store says where
    commits and signals stood."""
    book = rules.load(live.text)
    before, last = floor_watermark(begin - 1), ceil_watermark(end)
    kept = live.store.of(book.name).past
    tables = {
        name: table_past(
            live.feed, book.tables[name], before, last, kept.instants(name) if stored else {}
        )
        for name in sources(book).tables
    }
    signals = kept.signals(before, last) if stored else []
    past = Past(before, last, tables, signals, kept.signal_keys(last))
    run = Run(book, dict.fromkeys(book.tables, ROW), MemoryAnalyst(book.tables), past)
    run.take(live.feed, MemorySink(), ports_of, lambda _: None)
    return by_rule(run.ledger.store.stored, begin, last)


def outcomes(found: Mapping[str, Firings]) -> dict[str, dict[str, str]]:
    """By rule and id, the condition of each firing."""
    return {
        rule: dict(
            zip(fired.hex_ids().to_pylist(), fired.firings["condition"].to_pylist(), strict=True)
        )
        for rule, fired in found.items()
    }


