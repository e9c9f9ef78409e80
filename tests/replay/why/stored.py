"""A test case's world over a store on disk: the steps of a case happen in memory, and what the loop
stores is there for commands to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import sqlalchemy as sa

from tidegate.engine.capture.commit_instants import Now
from tidegate.engine.core.instants import MILLISECOND, floor_millisecond, floor_watermark
from tidegate.engine.core.values import CLIENT, Signal
from tidegate.engine.evaluate.conditions import LocalConditions
from tidegate.engine.loop.loop import Loop
from tidegate.engine.loop.ports import Ports
from tidegate.engine.replay.cases.driver import Driver
from tidegate.engine.replay.cases.model import Case, CaseFile, Row
from tidegate.engine.replay.cases.reader import read_cases
from tidegate.engine.replay.cases.world import Observation
from tidegate.engine.replay.memory.clock import drain
from tidegate.engine.replay.memory.conditions import MemoryConditions
from tidegate.engine.replay.memory.feed import MemoryFeed
from tidegate.engine.replay.memory.opening import quarantine
from tidegate.engine.replay.memory.sink import MemorySink
from tidegate.engine.replay.memory.store import MemoryStore
from tidegate.engine.replay.memory.tables import MemoryTable
from tidegate.engine.replay.memory.worlds import MemoryWorld, MemoryWorlds
from tidegate.engine.store import SqlStore
from tidegate.engine.store import tables as t
from tidegate.rules.model import Rulebook


class StoredWorld(MemoryWorld):
    """A world whose loop runs over a store on disk."""

    def __init__(self, worlds: MemoryWorlds, store: SqlStore, book: Rulebook) -> None:
        super().__init__(worlds)
        self.sql, self.book = store, book

    def begin(self, instant: int, tables: Mapping[str, Sequence[Row]]) -> None:
        name, opening = self.book.name, self._worlds.opening
        first = {one: self._rows(one, tables.get(one, ())) for one in self._worlds.schemas}
        before = floor_millisecond(instant) - MILLISECOND
        self._tables = {one: MemoryTable(one, rows, before) for one, rows in first.items()}
        feed = MemoryFeed(self._tables)
        self._feed = feed
        self._clock.at = floor_watermark(instant - 1)
        ledgers = self.sql.of(name)
        ledgers.versions.register(self.book.text, self.book.file, files=self.book.files)
        ledger = self.sql.of(name, ledgers.lease.acquire("test", 3_600))
        self.ledger = ledger
        conditions = LocalConditions(MemoryConditions())
        ports = Ports(
            ledger=ledger,
            store_id=self.sql.id,
            check_lease=lambda: None,
            prepare=opening.prepare,
            feed=feed,
            conditions=conditions,
            asked_later=LocalConditions(MemoryConditions()),
            quarantine=quarantine(ledger.suspects),
            now=Now(self._clock, 0),
        )
        cursors = {one: feed.cursor(table) for one, table in feed.tables.items()}
        kept = MemoryStore(self._clock)
        sink = MemorySink()
        sink.app_ids = self.sql.app_ids
        self._loop = self._opened(instant, ports, sink, cursors, kept)
        drain(self._loop, self._clock)
        self._clock.at = self._instant = instant

    def _opened(
        self, instant: int, ports: Ports, sink: MemorySink, cursors: object, kept: MemoryStore
    ) -> Loop:
        """The loop, and its rules' activations in the store."""
        loop = self._worlds.opening.over(
            instant, ports, sink, cursors, kept, self._clock, self._actions, self._buckets
        )
        state = kept.state
        rows = [
            {"rulebook": self.book.name, "rule": rule, "instant": at, "digest": digest}
            for rule, at in state.activations.items()
            for digest in [state.activation_digests[rule]]
        ]
        tables = [
            {"rulebook": self.book.name, "table_name": values.pop("table"), **values}
            for values in map(asdict, state.cursors.values())
        ]
        with self.sql.database.write() as connection:
            for table, some in ((t.activations, rows), (t.cursors, tables)):
                if some:
                    connection.execute(sa.insert(table), some)
        return loop

    def signal(self, event: str, fields: Row) -> None:
        kept = self._store
        super().signal(event, fields)
        last = [*kept.signals.values()][-1].signal
        at = self._clock()
        raised = Signal(last.id, last.event, last.fields, at, namespace=CLIENT)
        self.sql.of(self.book.name).signals.raise_signal(raised)

    def observe(self) -> Observation:
        return Observation()


def run_case(file: Path, name: str, store: SqlStore) -> CaseFile:
    """Run the steps of one case of a file over a store; what is expected is not looked at."""
    cases = read_cases(file)
    case = next(one for one in cases.cases if one.name == name)
    return run_steps(cases, case, store)


def run_steps(cases: CaseFile, case: Case, store: SqlStore) -> CaseFile:
    worlds = MemoryWorlds(cases.book, cases.schemas, cases.defaults)
    steps = tuple(replace(step, expect=None) for step in case.steps)
    bare = replace(case, steps=steps, expect=None)
    driver = Driver(cases, lambda _: StoredWorld(worlds, store, cases.book), strict=False)
    ran = driver.run_fast(bare)
    assert ran.error is None, ran.error
    return cases
