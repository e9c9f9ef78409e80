"""The worlds of a test file's cases, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tidegate.engine.core.instants import MILLISECOND, floor_millisecond, floor_watermark
from tidegate.engine.core.ports import Feed
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.types.fields import fields_table, stored_value
from tidegate.engine.core.values import ENGINE, Signal
from tidegate.engine.loop.loop import Loop
from tidegate.engine.replay.cases.model import Fail, Row, TableChange
from tidegate.engine.replay.cases.rows import signal_schema, typed_rows, widened
from tidegate.engine.replay.cases.world import Observation, Shown
from tidegate.engine.replay.memory import observation
from tidegate.engine.replay.memory.clock import VirtualClock, advance, drain
from tidegate.engine.replay.memory.executors import Actions
from tidegate.engine.replay.memory.feed import MemoryFeed
from tidegate.engine.replay.memory.opening import Buckets, Opening
from tidegate.engine.replay.memory.store import MemoryStore
from tidegate.engine.replay.memory.tables import MemoryTable
from tidegate.engine.replay.memory.typed_changes import TypedChange, typed_change
from tidegate.engine.replay.why_not.ladder import ladder, why_not
from tidegate.engine.replay.why_not.world import Sources, evidence_of, key_values
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook, SignalEvent


class MemoryWorlds:
    """Makes the worlds of one file. `schemas`: of all declared tables. `defaults`: by table, of the
    columns that an inserted row leaves out. Raises InputError with what is wrong with the rulebook
    over these tables."""

    def __init__(
        self,
        book: Rulebook,
        schemas: Mapping[str, pa.Schema],
        defaults: Mapping[str, Row] | None = None,
        opening: Opening | None = None,
    ) -> None:
        self.schemas, self.defaults = schemas, defaults or {}
        self.opening = opening or Opening(book, schemas)
        self.declared = frozenset(book.events)

    def world(self) -> MemoryWorld:
        """A world in which nothing has happened."""
        return MemoryWorld(self)


class MemoryWorld:
    """Implements `engine.replay.cases.world.World` without Spark. Raises EngineError `needs-spark`
    for what only Spark can tell, where `needs_spark` could not see it before."""

    def __init__(self, worlds: MemoryWorlds) -> None:
        self._worlds, self._book = worlds, worlds.opening.book
        self._clock = VirtualClock(0)
        self._store = MemoryStore(self._clock)
        self._actions = Actions()
        self._buckets: Buckets = {}
        self._schemas = dict(worlds.schemas)  # now
        self._tables: dict[str, MemoryTable] = {}
        self._feed: Feed = MemoryFeed(self._tables)
        self._kept: Sources | None = None  # of why_not, until more happens
        self._loop: Loop | None = None
        self._instant = 0  # of the step

    def begin(self, instant: int, tables: Mapping[str, Sequence[Row]]) -> None:
        """See `World`. Rules are active from 1 us before `instant` on (G2)."""
        first = {name: self._rows(name, tables.get(name, ())) for name in self._worlds.schemas}
        before = floor_millisecond(instant) - MILLISECOND
        self._tables = {name: MemoryTable(name, rows, before) for name, rows in first.items()}
        self._feed = feed = MemoryFeed(self._tables)
        self._clock.at = floor_watermark(instant - 1)
        self._loop = self._worlds.opening.open(
            instant,
            feed,
            self._store,
            self._clock,
            self._actions,
            self._buckets,
        )
        drain(self._loop, self._clock)
        self._clock.at = self._instant = instant

    def advance(self, instant: int) -> None:
        """See `World`. What is due at `instant` itself happens in the next `drain`, together with
        what is committed at it."""
        self._kept = None
        advance(self._begun, self._clock, instant)
        self._instant = instant
        self._actions.check()

    def commit(self, tables: Mapping[str, TableChange]) -> None:
        """See `World`."""
        typed = self._typed(tables)
        decided = {name: one.decided(self._tables[name].rows) for name, one in typed.items()}
        at = self._present()
        for name, (edits, deleted) in decided.items():
            if typed[name].added.names:
                self._tables[name].widen(at, typed[name].added)
            else:
                self._tables[name].commit(at, typed[name].inserted, edits, deleted)

    def signal(self, event: str, fields: Row) -> None:
        """See `World`."""
        kind = self._book.events[event]
        if not isinstance(kind, SignalEvent):
            raise TypeError(f"{event} is no signal")
        table = typed_rows([fields], signal_schema(kind), {}, self._book.timezone)
        values = {name: stored_value(value) for name, value in table.to_pylist()[0].items()}
        self._present()
        number = len(self._store.signals) + 1
        self._store.keep(Signal(f"{number:08}", event, values, self._clock()))

    def _present(self) -> int:
        """The instant of the step, at which something is to happen. Raises EngineError
        `step-too-early` where actions of the step before went on for longer."""
        if floor_millisecond(self._clock.at) > self._instant:
            until = json_text.instant(floor_millisecond(self._clock.at))
            raise EngineError(
                "step-too-early",
                f"actions of the step before go on until {until}: each takes 1 ms",
                "let this step happen after that",
            )
        return self._instant

    def fail(self, fail: Fail) -> None:
        """See `World`."""
        self._actions.failing[fail.rule] += fail.times

    def drain(self) -> None:
        """See `World`."""
        self._kept = None
        drain(self._begun, self._clock)
        self._actions.check()

    def observe(self) -> Observation:
        """See `World`."""
        store, emissions = self._store, dict[str, list[Shown]]()
        for _, heard in sorted(self._buckets.items()):
            for event, batch in heard.emitted.items():
                emissions.setdefault(event, []).extend(observation.occurrences(batch))
        signals: dict[str, list[Shown]] = {}
        for kept in store.signals.values():
            kind = self._book.events.get(kept.signal.event)
            if kind is None or kind.name not in self._worlds.declared:
                continue
            if kept.signal.namespace == ENGINE and isinstance(kind, SignalEvent):
                fields = fields_table(kind, [kept.signal.fields]) if kind.fields else pa.table({})
                signals.setdefault(kind.name, []).extend(python_rows(fields) or [{}])
        return Observation(
            firings=observation.firings(store.stored, store.planned),
            tables={name: table.rows.to_pylist() for name, table in self._tables.items()},
            signals=signals,
            webhooks=self._actions.sent,
            emissions=emissions,
            rejected=observation.rejections(store.rejected),
            dead=observation.dead(store.entries.values()),
        )

    def why_not(self, rule: str, key: Mapping[str, Any], at: int | None) -> str | None:
        """Why a rule did not fire for a key, at an instant; None if it did, or nothing is known.
        `at` None: since it fired last, or at all."""
        if self._kept is None:
            self._kept = Sources(self._book, self._worlds.schemas, self._feed, self._buckets)
        evidence = evidence_of(self._book, self._store, self._kept, self._buckets, self._clock.at)
        values = key_values(self._worlds.opening.book, rule, key, self._worlds.schemas)
        if values is None:
            return None
        now = self._clock.at
        if at is not None:
            return why_not(evidence, rule, values, at, at)
        last = ladder(evidence, rule, values, now)[-1]
        if not last.ok:
            return last.sentence
        fired = int(last.evidence["instant"])
        return why_not(evidence, rule, values, now, fired + 1) if fired < now else None

    def close(self) -> None:
        """See `World`."""

    @property
    def _begun(self) -> Loop:
        if self._loop is None:
            raise ValueError("the world has not begun")
        return self._loop

    def _rows(self, table: str, rows: Sequence[Row]) -> pa.Table:
        defaults = self._worlds.defaults.get(table, {})
        return typed_rows(rows, self._worlds.schemas[table], defaults, self._book.timezone)

    def _typed(self, tables: Mapping[str, TableChange]) -> Mapping[str, TypedChange]:
        """Typed by the columns that tables have now; then they have those that are added."""
        defaults, zone = self._worlds.defaults, self._book.timezone
        found = {
            name: typed_change(given, self._schemas[name], defaults.get(name, {}), zone)
            for name, given in tables.items()
        }
        for name, given in tables.items():
            self._schemas[name] = widened(self._schemas[name], given.added)
        return found
