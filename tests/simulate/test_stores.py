"""The store in memory keeps what a database keeps: the same lives on both end in the same state."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.simulate.judge import AllHold, Analyst, AnyStore, every_entry, fields_of
from tests.simulate.quick import loaded, silence
from tests.support.bench import Bench
from tests.support.memory import MemorySink
from tests.support.memorystore import MemoryStore
from tidegate.engine.act.targets import Targets
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.values import DAMPED, FOREVER, Carried, Firings, Signal
from tidegate.engine.replay.memory.executors import Unprepared
from tidegate.engine.store import open_store
from tidegate.rules.model import DAMPINGS

SQL = "{sql: INSERT INTO out SELECT id FROM event}"
QUICK = "retry: {attempts: 2, backoff: 1s..4s}"
BOOK = f"""\
rulebook: loop
settings: {{dead_in_a_row_max: 2}}
tables: {{t: {{path: /t, key: [id], start: earliest}}, out: {{path: /out}}}}
events: {{row: {{on: insert, table: t}}, told: {{signal: {{id: bigint}}}}}}
rules:
  twice: {{on: row, {QUICK}, if: id >= 0, do: [{SQL}, {SQL}]}}
  holds: {{on: row, {QUICK}, on_dead: hold, do: [{SQL}]}}
  single:
    on: row
    per: id
    for_each: firing
    do: [{SQL}, {SQL}]
    within: 1 min
    otherwise: [{SQL}, {SQL}]
  whole: {{on: row, {QUICK}, do: [{SQL}], within: 20 s, otherwise: [{SQL}]}}
  begun: {{on: begin_of single, per: id, do: [{SQL}]}}
  ended: {{on: end_of single, per: id}}
  died: {{on: failed twice}}
  tells: {{on: row, per: id, do: [{{signal: {{told: {{id: id + 0}}}}}}]}}
  heard: {{on: told, do: [{SQL}]}}
  pair: {{on: row ; row, context: chronicle}}
  rare: {{on: row, cooldown: 2 s, dedupe: {{by: [id], within: 1 d}}, do: [{SQL}]}}
  alarm: {{on: row, hysteresis: {{fire: id >= 0, rearm: id < 0}}}}
  later: {{on: row, if: id >= 0, coupling: detached, throttle: 1 per 5 s, do: [{SQL}]}}
  off: {{on: "row ; row ; row", do: [{{disable: pair}}]}}
  on: {{on: "told ; told", do: [{{enable: pair}}]}}
"""


class Refusing(MemorySink):
    """Which attempts fail is drawn by entry and attempt: in both lives the same."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def run(self, entry: Entry, firings: Firings) -> None:
        drawn = random.Random(f"{self.seed}/{entry.number}/{entry.progress.attempts}")
        if drawn.random() < 0.4:
            raise SinkError("[NO] not now")
        super().run(entry, firings)

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:
        return fields_of(firings)


class Life(Bench):
    """A few steps that a seed draws: commits, pauses, signals, what operators ask for."""

    def __init__(self, store: AnyStore, seed: int) -> None:
        self.chance = random.Random(seed)
        super().__init__(store, 0, BOOK)  # type: ignore[arg-type]
        self.sink, self.conditions = Refusing(seed), AllHold()
        self.restart()

    def write(self, text: str) -> None:
        self.book = loaded(text)

    def analyst(self) -> Analyst:
        return Analyst()

    def targets(self) -> Targets:
        return Unprepared(self.sink)

    def live(self) -> None:
        chance = self.chance
        for n in range(12):
            self.feed.commits += chance.choice((0, 1, 1, 2))
            if chance.random() < 0.4:
                told = Signal(f"s{n}", "told", {"id": 100 + n}, self.clock())
                self.store.of("loop").signals.raise_signal(told)
            opened = self.store.of("loop").outbox.open_entries()
            if opened and chance.random() < 0.5:
                number = str(chance.choice(opened).number)
                self.ledger.controls.ask(chance.choice(("skip", "redrive")), number)
            if chance.random() < 0.2:
                asked = chance.choice(("disable", "enable"))
                self.ledger.controls.ask(asked, chance.choice(("pair", "rare", "twice")))
            if chance.random() < 0.2:
                self.loop.recover()
            self.drain()
            self.clock.later(chance.choice((0.1, 2, 8, 30, 100)))
            self.loop.work()

    def kept(self) -> Mapping[str, Any]:
        """What the store has, as far as an engine asks for it."""
        ledger, state = self.store.of("loop"), self.store.of("loop").buckets.load()
        entries = every_entry(self.store)
        stored = {(e.bucket, e.rule) for e in entries}
        return {
            "state": replace(state, carried=Carried(), fired=()),
            "fired": Counter(
                {
                    (one.now, rule): count
                    for one in state.fired
                    for rule, count in one.counts.items()
                    if count and rule != "later"  # a disk counts what its condition let through
                }
            ),
            "carried": {n: table.to_pydict() for n, table in state.carried.tables.items()},
            "entries": entries,
            "firings": {key: firings_of(ledger.outbox.firings(*key)) for key in stored},
            "relations": {key: ledger.outbox.firings(*key).relation.to_pylist() for key in stored},
            "open": ledger.outbox.open_entries(),
            "unplaced": ledger.signals.unplaced(self.loop.planner.sources.signals, 0, 1_000),
            "controls": [(one.id, one.kind, one.subject) for one in ledger.controls.pending()],
            "damping": {
                (rule, kind): ledger.damping.count(rule, kind, 0)
                for rule in self.book.rules
                for kind in range(1, len(DAMPINGS) + 1)
            },
            "versions": [ledger.buckets.version_at("t", at) for at in state_instants(state)],
            "landed": self.sink.commits,
        }


def firings_of(fired: Firings) -> list[dict[str, Any]]:
    """A disk has no column for damping that dropped nothing."""
    return [{DAMPED: None, **row} for row in fired.firings.to_pylist()]


def state_instants(state: Any) -> range:
    last = state.cursors["t"].instant
    return range(last - 5_000_000, last + 1_000_001, 500_000)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2, 3))])
def test_lives_on_both_stores_end_alike(seed: int, tmp_path: Path) -> None:
    disk = open_store(f"sqlite:///{tmp_path / 'store.db'}", create=True)
    disk.of("loop").versions.register(BOOK, None)
    memory = MemoryStore(lambda: FOREVER)  # a control is no later than now: as with a disk's clock
    memory.id = disk.id
    lives = [Life(store, seed) for store in (disk, memory)]
    with silence():
        for life in lives:
            life.live()
    on_disk, in_memory = (life.kept() for life in lives)
    states = {entry.state for entry in on_disk["entries"]}
    assert {"done", "dead"} <= states
    for name, found in on_disk.items():
        assert in_memory[name] == found, name
    disk.close()
