"""Every failpoint, in every way: lives of an engine over memory that go on through one after the
other, and what each leaves behind.

A cell is a point, a kind, the pass at which it begins, and how many passes it takes. A life goes
on round by round until the cell has happened. `exit` is a process that ends: an exception that
nothing catches drops the engine, and another one begins on the same store. `delay` is a process
that sleeps past its lease: another engine takes over, does all there is, and then it goes on.
"""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from tests.simulate.judge import AllHold, Analyst, AnyStore, fields_of
from tests.simulate.quick import detector, loaded, pipeline
from tests.simulate.simulation import Killed
from tests.support.acting import executors
from tests.support.bench import Bench
from tests.support.executors import InProcess
from tests.support.memory import Clock, MemoryFeed, MemorySink
from tests.support.memorystore import MemoryStore
from tidegate.engine.act.executors import Executor
from tidegate.engine.act.kinds.webhook import Webhooks
from tidegate.engine.core import failpoints
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.failpoints import FailpointError
from tidegate.engine.core.policy import Answer, Post
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.values import Firings, Signal
from tidegate.engine.detect import stage
from tidegate.engine.detect.events.step import component_task
from tidegate.engine.quarantine.sink import WatchedSink
from tidegate.engine.replay.memory.executors import Unprepared
from tidegate.engine.store import SqlStore
from tidegate.engine.store.posts import Posted
from tidegate.rules.errors import EngineError

SQL = "{sql: INSERT INTO out SELECT id FROM event}"
HEAD = """\
rulebook: loop
settings: {dead_in_a_row_max: 1000}
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}, told: {signal: {id: bigint}}}
scripts:
  counting:  # a row that it has not seen, or has seen twice, makes all that follow wrong
    text: |
      in {long id;} row, {long id;} told out {long id;} counted, {long id;} repeated
      (row(x) {!> counted({id: x.id == n ? n : -1}); n = n + 1;}
       | told(y) {!> repeated({id: y.id});})*
rules:
"""
ACTS = f"""\
{HEAD}
  twice: {{on: row, do: [{SQL}, {SQL}]}}
  asked: {{on: row, coupling: detached, if: id >= 0, do: [{SQL}]}}
  tells: {{on: counted, per: id, do: [{{signal: {{told: {{id: id}}}}}}]}}
  heard: {{on: told, do: [{SQL}]}}
  calls: {{on: told, do: [{{webhook: {{url: 'https://x.example.org/a', body: {{id: id}}}}}}]}}
"""
DIES = f"""\
{HEAD}
  dies: {{on: counted, per: id, for_each: firing, do: [{SQL}], within: 30 min, otherwise: [{SQL}]}}
  begun: {{on: begin_of dies, per: id, do: [{SQL}]}}
"""
KEPT = f"""\
{HEAD}
  tells: {{on: counted, per: id, do: [{{signal: {{told: {{id: id}}}}}}]}}
  heard: {{on: repeated, do: [{SQL}]}}
"""
APART = f"""\
rulebook: loop
settings: {{dead_in_a_row_max: 1000, detect: spark}}
tables: {{t: {{path: /t, key: [id], start: earliest}}, out: {{path: /out}}}}
events: {{row: {{on: insert, table: t}}, told: {{signal: {{id: bigint}}}}}}
rules:
  twice: {{on: row, per: id, do: [{SQL}, {SQL}]}}
  tells: {{on: row, per: id, do: [{{signal: {{told: {{id: id}}}}}}]}}
  both: {{on: row ; told, per: id, do: [{SQL}]}}
"""
ROUNDS_MAX = 9
RESTARTS_MAX = 20
COUNTERS = ("lost", "duplicate", "out of order", "corrupt")


@dataclass
class Box:
    """Takes webhooks, by their idempotency keys."""

    bodies: dict[str, set[bytes]] = field(default_factory=dict)

    def post(self, posts: Sequence[Post]) -> Sequence[Answer]:
        for one in posts:
            self.bodies.setdefault(one.headers["Idempotency-Key"], set()).add(one.body)
        return [Answer() for _ in posts]


class Target(MemorySink):
    """Statements of `dies` itself are refused whatever their attempt; its alternative's are not."""

    def run(self, entry: Entry, firings: Firings) -> None:
        if entry.rule == "dies" and not entry.alternative:
            raise SinkError("[NO] never")
        super().run(entry, firings)

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:
        return fields_of(firings)


class Life(Bench):
    """An engine whose store, tables and clock go on through all that ends it."""

    text = ACTS
    effects: Mapping[str, int] = {"twice": 2, "asked": 1, "heard": 1}
    webhooks = 1

    def __init__(self, store: AnyStore) -> None:
        self.store: Any = store
        self.feed, self.sink, self.clock = MemoryFeed(0), Target(), Clock()
        self.conditions, self.box = AllHold(), Box()
        self.prepared_once: Any = None
        self.book = loaded(self.text)
        self.told: list[int] = []  # ids of signals of clients
        self.rows = 0  # of the commits before the cell
        self.restart()

    def analyst(self) -> Analyst:
        return Analyst()

    def prepare(self, schemas: Any, proven: Any) -> Any:
        self.prepared_once = self.prepared_once or super().prepare(schemas, proven)
        return self.prepared_once

    def targets(self) -> Unprepared:
        return Unprepared(self.sink)

    def executors(self) -> Mapping[str, Executor]:
        known = executors(WatchedSink(self.sink, self.quarantine), self.clock)
        return {**known, "webhook": Webhooks(self.sink, self.box, {})}

    def restart(self) -> None:
        """A process begins, as often as it takes."""
        for _ in range(RESTARTS_MAX):
            with suppress(Killed, FailpointError):
                return self.begin()
        raise AssertionError("no engine begins")

    def begin(self) -> None:
        super().restart()
        self.loop.runner.check = self.ledger.lease.check

    def through(self, do: Callable[[], object]) -> None:
        """As often as it takes: by the same process after an error, by another where it ended."""
        for _ in range(RESTARTS_MAX):
            try:
                do()
            except FailpointError:
                try:
                    self.loop.recover()
                except (Killed, FailpointError, EngineError):
                    self.restart()
            except (Killed, EngineError):  # the lease is lost; what the engine stops at
                self.restart()
            else:
                return
        raise AssertionError("no progress")

    def paused(self, _: float) -> None:
        """This process sleeps; another one takes over, and does what there is."""
        mine, armed = self.loop, dict(failpoints._armed)
        failpoints._armed.clear()
        self.restart()
        self.drain()
        self.loop = mine
        failpoints._armed.update(armed)

    def round(self) -> None:
        self.feed.commits += 1
        self.rest()
        self.through(lambda: self.loop.recover())

    def rest(self) -> None:
        """Until nothing waits for its next attempt."""
        for seconds in (1, 10, 100, 100):
            self.through(self.drain)
            if not any(e.state != "dead" for e in self.store.of("loop").outbox.open_entries()):
                return
            self.clock.later(seconds)

    def judged(self) -> dict[str, int]:
        """What the rounds since the last call have come to."""
        ids = [*range(self.rows, self.feed.commits)]
        wanted = Counter({(rule, n): k for rule, k in self.effects.items() for n in ids})
        wanted += Counter(("heard", n) for n in self.told)
        found, order = self.sink.effects, Counter[str]()
        wrong = 0
        for rule, number in self.sink.entries:
            wrong += number < order[rule]
            order[rule] = number
        sent = [len(bodies) for bodies in self.box.bodies.values()]
        missing = max(0, self.webhooks * (len(ids) + len(self.told)) - len(sent))
        verdict = {
            "lost": (wanted - found).total() + missing,
            "duplicate": sum(n for one, n in (found - wanted).items() if one in wanted),
            "out of order": wrong,
            "corrupt": sum(n for one, n in (found - wanted).items() if one not in wanted)
            + sum(n - 1 for n in sent),
        }
        self.rows, self.told = self.feed.commits, []
        self.sink.effects, self.sink.entries = Counter(), []
        self.box.bodies.clear()
        return verdict


class Sharing(Life):
    """Entries that share commits."""

    def begin(self) -> None:
        super().begin()
        self.share()


class Dying(Life):
    """Entries that die, are sealed, have their alternative done, and are skipped."""

    text = DIES
    effects: Mapping[str, int] = {"dies": 1, "begun": 1}
    webhooks = 0

    def round(self) -> None:
        self.feed.commits += 1
        self.rest()
        self.clock.later(1_800)
        self.rest()
        for entry in self.dead():
            self.store.of("loop").controls.ask("skip", str(entry.number))
        self.store.of("loop").controls.ask("skip", "0")
        self.rest()

    def dead(self) -> list[Entry]:
        if isinstance(self.store, MemoryStore):
            return [entry for entry in self.store.entries.values() if entry.state == "dead"]
        found = self.store.of("loop").rule_states.obstacles()
        return [o for o in found if isinstance(o, Entry) and o.state == "dead"]


class Kept(Life):
    """What a bucket and its entries write into a database."""

    text = KEPT
    effects: Mapping[str, int] = {"heard": 1}
    webhooks = 0

    def paused(self, _: float) -> None:
        """In a transaction that another one waits for."""
        self.clock.later(60)

    def round(self) -> None:
        self.feed.commits += 1
        self.rest()


class Clients(Kept):
    """What else an engine and its clients write into a database, and what is forgotten of it."""

    numbers = count(1_000_000)

    def begin(self) -> None:
        self.store.of("loop").versions.register(self.text, None)
        super().begin()

    def round(self) -> None:
        one, two = next(self.numbers), next(self.numbers)
        signal = Signal(f"client-{one}", "told", {"id": one}, self.clock())
        self.through(lambda: self.store.of("loop").signals.raise_signal(signal))
        post = Posted("told", [f"client-{two}"], {"loop": [f'{{"id":{two}}}']}, False)
        self.through(lambda: self.store.raise_posted([post], [self.clock()]))
        self.told += [one, two]
        self.rest()
        self.through(lambda: self.ledger.lease.renew(600))
        self.through(self.purge)
        self.restart()

    def purge(self) -> None:
        before = self.clock.at
        while self.loop.ports.ledger.retention.purge(before, before, 100) == 100:
            pass


class KeptDying(Dying):
    """As Dying, on a database."""

    paused = Kept.paused


class Apart(Life):
    """Executors read the table, detect, and carry each row until its signal comes."""

    text = APART
    effects: Mapping[str, int] = {"twice": 2, "both": 2}  # the row and the signal
    webhooks = 0

    def __init__(self, store: AnyStore) -> None:
        self.executors_beside = InProcess()
        super().__init__(store)


class KeptApart(Apart):
    """As Apart, on a database, whose small state files are put together."""

    paused = Kept.paused

    def round(self) -> None:
        super().round()
        self.through(lambda: self.loop.compact())


@dataclass
class Outcome:
    """What the cells of some points came to; how often each kind of failure happened there."""

    counters: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, dict[str, int]] = field(default_factory=dict)
    happened: Counter[tuple[str, str]] = field(default_factory=Counter)
    untold: list[str] = field(default_factory=list)  # cells that never happened


class Matrix:
    """Runs cells, and counts what happens in them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.outcome = Outcome()
        self.life: Life | None = None
        kind_now = failpoints._kind_now

        def counted(name: str) -> str | None:
            kind = kind_now(name)
            if kind is not None:
                self.outcome.happened[name, kind] += 1
            return kind

        def end(_: int) -> None:
            raise Killed

        def wait(seconds: float) -> None:
            assert self.life is not None
            self.life.paused(seconds)

        patch.setattr(failpoints, "_kind_now", counted)
        patch.setattr(failpoints, "_end_process", end)
        patch.setattr(failpoints, "_wait", wait)
        patch.setattr(component_task, "Detector", detector)
        patch.setattr(stage, "Pipeline", pipeline)

    def run(self, point: str, life: Life, cells: Sequence[tuple[str, int, int]]) -> None:
        """The cells of a point, one after the other, in one life."""
        self.life = life
        for kind, nth, times in cells:
            name = f"{point}={kind}:{nth}x{times}"
            failpoints.arm(name)
            try:
                for _ in range(ROUNDS_MAX):
                    life.round()
                    if point not in failpoints._armed:
                        break
                else:
                    self.outcome.untold.append(name)
                failpoints.arm("")
                life.through(life.drain)
                verdict = life.judged()
            except (AssertionError, EngineError, KeyError) as error:
                verdict = {"corrupt": 1, f"{type(error).__name__}: {error}": 1}
                failpoints.arm("")
                life = self.life = type(life)(new_store(life.store))
            self.outcome.counters.update({c: verdict.get(c, 0) for c in COUNTERS})
            if any(verdict.values()):
                self.outcome.wrong[name] = verdict


def new_store(store: AnyStore) -> AnyStore:
    """Where one was left behind in a state that says no more."""
    if isinstance(store, SqlStore):
        raise TypeError("a database is not thrown away")
    return MemoryStore()
