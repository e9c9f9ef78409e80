"""A rulebook that runs live over tables in memory and a store on disk, and the same past tried
again."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.support.make import BEGIN, UTC
from tidegate import rules
from tidegate.engine.act.run import Runner
from tidegate.engine.capture.commit_instants import Instants
from tidegate.engine.core.ledger import Ledger
from tidegate.engine.core.ports import Feed
from tidegate.engine.core.types.spark import schema_json
from tidegate.engine.core.values import Answers, Question, Signal
from tidegate.engine.evaluate.action_events import with_action_events
from tidegate.engine.evaluate.conditions import LocalConditions
from tidegate.engine.evaluate.requirements import Prepared, prepare
from tidegate.engine.loop.compiled_rulebook import Prepare, digests_of, first_compiled
from tidegate.engine.loop.loop import Loop
from tidegate.engine.loop.planner import Planner
from tidegate.engine.loop.ports import Ports
from tidegate.engine.replay.backtest.model import Backtest
from tidegate.engine.replay.backtest.trial import Asked, Tables, tried
from tidegate.engine.replay.memory.analyst import MemoryAnalyst
from tidegate.engine.replay.memory.clock import VirtualClock
from tidegate.engine.replay.memory.executors import Actions, Alone, Unprepared
from tidegate.engine.replay.memory.feed import MemoryFeed
from tidegate.engine.replay.memory.observation import moment
from tidegate.engine.replay.memory.opening import quarantine
from tidegate.engine.replay.memory.sink import MemorySink
from tidegate.engine.replay.memory.tables import MemoryTable
from tidegate.engine.store import SqlStore

ROW = pa.schema({"id": pa.int64(), "k": pa.int64(), "v": pa.int64(), "at": UTC})
NO_ROWS = ROW.empty_table()


class Halves:
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

        texts = {name: schema_json(schema) for name, schema in schemas.items()}
        prepare_again: Prepare = lambda *_: prepared  # noqa: E731
        compiled = first_compiled(book, digests_of(book), texts, {}, prepare_again)
        ports = ports_of(self.feed, ledger, self.clock, self.store.id)
        ports.prepare = prepare_again
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

    def switch(self, kind: str, rule: str) -> None:
        """Enable or disable a rule, as an operator does."""
        self.store.of(self.loop.compiled.rulebook.name).controls.ask(kind, rule)

    def reset(self, table: str) -> None:
        """Read a table again from its beginning on, as an operator does."""
        controls = self.store.of(self.loop.compiled.rulebook.name).controls
        controls.ask("reset", table, 1)

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

    def unprepared(*_: object) -> Prepared:
        raise AssertionError

    return Ports(
        ledger=ledger,
        store_id=store_id,
        check_lease=lambda: None,
        prepare=unprepared,
        feed=feed,
        conditions=LocalConditions(Halves()),
        asked_later=LocalConditions(Halves()),
        quarantine=quarantine(ledger.suspects),
        now=clock,
    )


def tables_of(text: str, feed: Feed, store: SqlStore | None, label: str = "live") -> Tables:
    """A rulebook over tables with the columns of `ROW`."""
    book = rules.load(text)
    return Tables(
        label,
        book,
        dict.fromkeys(book.tables, ROW),
        MemoryAnalyst(book.tables),
        feed,
        lambda _: MemorySink(),
        ports_of,
        None if store is None else store.of(book.name).placed,
        {name: name for name in book.tables},
    )


def tried_again(live: Live, begin: int, end: int, *others: str, **asked: Any) -> Backtest:
    """A backtest of what ran live, from the instant `begin` to `end`. `others`: the text of the
    rulebook that it is compared with."""
    first = tables_of(live.text, live.feed, live.store)
    tables = [first, *(tables_of(text, live.feed, live.store, text) for text in others)]
    tables = [
        replace(one, store=first.store, book=replace(one.book, name=first.book.name))
        for one in tables
    ]
    wanted = Asked(moment(begin), moment(end), **{"warm_up": 0, **asked})
    return tried(tables, wanted, live.clock.at + 10**9, lambda *_: None)


def outcomes(found: Backtest) -> dict[str, dict[str, str]]:
    """By rule and id, the condition of each firing."""
    outcome: dict[str, dict[str, str]] = {}
    for row in found.firings.to_pylist():
        outcome.setdefault(row["rule"], {})[row["firing_id"]] = row["condition"]
    return outcome
