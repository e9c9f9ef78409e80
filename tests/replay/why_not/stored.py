"""Runs of the loop over tables in memory and a store on disk, and what the store tells of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tests.support.make import BEGIN, SECOND
from tidegate import rules
from tidegate.engine.act.run import Runner
from tidegate.engine.capture.commit_instants import Instants, Now
from tidegate.engine.core.instants import floor_millisecond
from tidegate.engine.core.ports import Feed
from tidegate.engine.core.types.fields import stored_value
from tidegate.engine.core.types.spark import arrow_type, schema_json
from tidegate.engine.core.values import Signal
from tidegate.engine.evaluate.action_events import with_action_events
from tidegate.engine.evaluate.conditions import LocalConditions
from tidegate.engine.evaluate.requirements import prepare
from tidegate.engine.loop.compiled_rulebook import digests_of, first_compiled
from tidegate.engine.loop.loop import Loop
from tidegate.engine.loop.planner import Planner
from tidegate.engine.loop.ports import Ports
from tidegate.engine.replay.memory.analyst import MemoryAnalyst
from tidegate.engine.replay.memory.clock import VirtualClock, drain
from tidegate.engine.replay.memory.conditions import MemoryConditions
from tidegate.engine.replay.memory.executors import Actions, Alone, Unprepared
from tidegate.engine.replay.memory.feed import MemoryFeed
from tidegate.engine.replay.memory.opening import quarantine
from tidegate.engine.replay.memory.sink import MemorySink
from tidegate.engine.replay.memory.tables import MemoryTable
from tidegate.engine.replay.why_not.answer import WhyNot
from tidegate.engine.replay.why_not.asking import Question, asked
from tidegate.engine.store import SqlStore
from tidegate.rules.model import Rulebook

Columns = Mapping[str, str]
Time = int | str
ITEMS: Mapping[str, Columns] = {"items": {"id": "bigint", "amount": "bigint", "note": "string"}}


class Stored:
    """A loop at work from BEGIN on; times are seconds after it. `again` goes on with another text,
    as another process would. `feed`: where why-not reads again; another one may have lost some."""

    def __init__(
        self, store: SqlStore, text: str, tables: Mapping[str, Columns] | None = None
    ) -> None:
        self.store = store
        known = {"out": {"id": "bigint"}, **(ITEMS if tables is None else tables)}
        self.schemas = {
            name: pa.schema([(column, arrow_type(ddl)) for column, ddl in columns.items()])
            for name, columns in known.items()
        }
        first = BEGIN - SECOND
        self.tables = {
            name: MemoryTable(name, schema.empty_table(), first)
            for name, schema in self.schemas.items()
        }
        self.feed: Feed = MemoryFeed(self.tables)
        self.clock = VirtualClock(BEGIN)
        self.actions = Actions()
        self.sink = MemorySink()
        self.again(text)

    def again(self, text: str) -> Stored:
        given = rules.load(text)
        settings = replace(given.settings, commit_slack_ms=0)
        self.book: Rulebook = replace(given, settings=settings)
        self.name = given.name
        book = with_action_events(self.book, self.schemas)
        self.sink.app_ids = self.store.app_ids
        epoch = self.store.of(self.name).lease.acquire("one", 600)
        self.ledger = ledger = self.store.of(self.name, epoch)
        ledger.versions.register(text, None)
        state = ledger.buckets.load()
        prepared = prepare(book, self.schemas, MemoryAnalyst(book.tables))
        texts = {name: schema_json(schema) for name, schema in self.schemas.items()}
        compiled = first_compiled(
            book, digests_of(book), texts, state.activations, lambda *_: prepared
        )
        ports = Ports(
            ledger=ledger,
            store_id=self.store.id,
            check_lease=ledger.lease.check,
            prepare=lambda *_: prepared,
            feed=MemoryFeed(self.tables),
            conditions=LocalConditions(MemoryConditions()),
            asked_later=LocalConditions(MemoryConditions()),
            quarantine=quarantine(ledger.suspects),
            now=Now(self.clock, state.now),
            say=ledger.lease.say,
        )
        runner = Runner(
            book,
            self.actions.executors(self.sink, self.clock),
            ledger,
            self.clock.tick,
            self.clock,
            Alone(),
        )
        self.loop = Loop(
            compiled,
            state,
            ports,
            planner=Planner(book, ports, Instants(10 * SECOND)),
            runner=runner,
            targets=Unprepared(self.sink),
        )
        drain(self.loop, self.clock)
        return self

    def at(self, seconds: float) -> Stored:
        """Time goes on."""
        self.clock.later(BEGIN + round(seconds * SECOND))
        drain(self.loop, self.clock)
        return self

    def insert(self, seconds: float, *rows: Mapping[str, Any], table: str = "items") -> Stored:
        """One commit, which is not taken yet."""
        instant = floor_millisecond(BEGIN + round(seconds * SECOND))
        schema = self.schemas[table]
        whole = [{name: row.get(name) for name in schema.names} for row in rows]
        self.tables[table].commit(instant, pa.Table.from_pylist(whole, schema), (), None)
        return self

    def signal(self, seconds: float, event: str, **fields: Any) -> Stored:
        """A signal, which is not taken yet."""
        received = BEGIN + round(seconds * SECOND)
        number = f"{received}-{event}-{fields.get('k')}"
        values = {name: stored_value(value) for name, value in fields.items()}
        self.ledger.signals.raise_signal(Signal(number, event, values, received))
        return self

    def why_not(
        self,
        rule: str,
        key: Mapping[str, Any],
        at: float | None = None,
        since: float | None = None,
    ) -> WhyNot:
        """Asked in seconds after BEGIN."""
        micros = [None if each is None else BEGIN + round(each * SECOND) for each in (at, since)]
        return self.asked(rule, key, *micros)

    def asked(
        self, rule: str, key: Mapping[str, Any], at: Time | None = None, since: Time | None = None
    ) -> WhyNot:
        """Asked in microseconds, or as a user writes it."""

        @contextmanager
        def opened(book: Rulebook) -> Iterator[Feed]:  # noqa: ARG001
            yield self.feed

        question = Question(rule, key, at, since)
        return asked(self.store.of(self.name), question, opened, self.clock.at)

    def fired(self, rule: str) -> Sequence[Mapping[str, Any]]:
        """Its firings, as `firings --json` has them."""
        return [*self.store.of(self.name).firings.listed(rule=rule)]


def told(answer: WhyNot) -> tuple[str, str]:
    """The last rung and what it says."""
    return answer.rungs[-1].name, answer.rungs[-1].sentence
