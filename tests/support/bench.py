"""The loop over memory and a store on disk."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import pyarrow as pa

from tests.support.acting import executors
from tests.support.analysts import EveryIdAnalyst
from tests.support.executors import InProcess
from tests.support.make import SECOND
from tests.support.memory import SCHEMA, Clock, MemoryFeed, MemorySink
from tidegate import rules
from tidegate.engine.act.executors import Executor
from tidegate.engine.act.run import Runner
from tidegate.engine.act.shared import SharedCommits
from tidegate.engine.act.targets import Targets
from tidegate.engine.capture.commit_instants import Instants
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.core.ports import Analyst, Conditions, Executors
from tidegate.engine.core.types.spark import arrow_schema
from tidegate.engine.core.values import Answers, Failure, Question
from tidegate.engine.detect.stage import BucketDetector
from tidegate.engine.evaluate.action_events import with_action_events
from tidegate.engine.evaluate.requirements import Prepared, prepare
from tidegate.engine.loop.compiled_rulebook import first_compiled, script_digests
from tidegate.engine.loop.loop import Loop
from tidegate.engine.loop.planner import Planner
from tidegate.engine.loop.ports import Ports
from tidegate.engine.quarantine.conditions import WatchedConditions
from tidegate.engine.quarantine.feed import WatchedFeed
from tidegate.engine.quarantine.sink import WatchedSink
from tidegate.engine.replay.memory.executors import Alone
from tidegate.engine.replay.memory.opening import quarantine
from tidegate.engine.store import SqlStore
from tidegate.rules.checks.gaps import SIMULATED
from tidegate.rules.model import Rulebook

BOOK = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}}
rules:
  a: {on: row, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  b: {on: row, do: [{sql: INSERT INTO out SELECT id FROM event}]}
"""


class NoConditions:
    def hold(self, questions: Sequence[Question]) -> Answers:
        raise AssertionError

    def sample(self, text: str, pinned: Mapping[str, int]) -> pa.Scalar | Failure | None:
        raise AssertionError


class Bench:
    """A loop over memory and a store on disk; `restart` makes another one on the same. `stopped`:
    whether it is asked to stop. `executors_beside`: who may detect beside the driver."""

    stopped: Callable[[], bool] = staticmethod(lambda: False)
    executors_beside: Executors | None = None

    def __init__(self, store: SqlStore, commits: int, text: str = BOOK) -> None:
        self.store, self.feed, self.sink = store, MemoryFeed(commits), MemorySink()
        self.clock = Clock()
        self.conditions: Conditions = NoConditions()
        self.unfit = ""
        self.write(text)
        self.restart()

    def write(self, text: str) -> None:
        """Another rulebook, from the next start on."""
        self.book: Rulebook = rules.load(text, features=SIMULATED)

    def restart(self) -> None:
        schemas = {"t": SCHEMA, "out": SCHEMA}
        book = with_action_events(self.book, {t: arrow_schema(s) for t, s in schemas.items()})
        store = self.store
        self.sink.app_ids = store.app_ids
        self.epoch = store.of(book.name).lease.acquire("one", 600)
        self.ledger = ledger = store.of(book.name, self.epoch)
        most, stopped = book.settings.strikes_max, self.stopped
        self.quarantine = quarantine(ledger.suspects, most=most, stopped=stopped)
        self.prepared: list[Mapping[str, str]] = []
        state = ledger.buckets.load(apart=book.settings.detect != "driver")
        digests = {name: "same" for name, rule in book.rules.items() if rule.enabled}
        digests |= script_digests(book)
        self.running = book
        beside = self.executors_beside
        if isinstance(beside, InProcess):
            beside.feed = self.feed
        detecting = partial(BucketDetector, executors=beside)
        compiled = first_compiled(
            book, digests, schemas, state.activations, self.prepare, detecting=detecting
        )
        ports = Ports(
            ledger=ledger,
            store_id=store.id,
            check_lease=ledger.lease.check,
            prepare=self.prepare,
            feed=WatchedFeed(self.feed, self.quarantine, book, stopped),
            conditions=WatchedConditions(self.conditions, self.quarantine, stopped),
            asked_later=WatchedConditions(self.conditions, self.quarantine),
            quarantine=self.quarantine,
            now=self.clock,
            stopped=stopped,
            say=self.say,
            executors=beside,
        )
        self.loop = Loop(
            compiled,
            state,
            ports,
            planner=Planner(book, ports, Instants(10 * SECOND)),
            runner=Runner(book, self.executors(), ledger, lambda: None, self.clock, Alone()),
            targets=self.targets(),
        )

    def share(self, most: int = 50) -> None:
        """From now on, so many entries may share a commit."""
        sink = WatchedSink(self.sink, self.quarantine)
        self.loop.runner.shared = SharedCommits(sink, lambda table: table == "out", most)

    def say(self, activity: Activity) -> None:
        """What it does from now on."""

    def prepare(self, schemas: Mapping[str, str], proven: Collection[str]) -> Prepared:
        self.prepared.append(schemas)
        arrow = {name: arrow_schema(schema) for name, schema in schemas.items()}
        return prepare(self.running, arrow, self.analyst(), proven)

    def executors(self) -> Mapping[str, Executor]:
        return executors(WatchedSink(self.sink, self.quarantine), self.clock)

    def targets(self) -> Targets:
        return Targets(self.sink)

    def analyst(self) -> Analyst:
        return EveryIdAnalyst(self.unfit)

    def drain(self) -> list[int]:
        """Buckets until there is nothing left; the firings of each."""
        found = []
        while (report := self.loop.bucket()) is not None:
            found.append(report.firings)
        return found

    def expected(self) -> Counter[tuple[str, int]]:
        return Counter((rule, n) for rule in "ab" for n in range(self.feed.commits))

    def states(self) -> list[tuple[int, str]]:
        """The entries that are not finished."""
        return [
            (e.number, e.state)
            for e in self.store.of("loop").rule_states.obstacles()
            if isinstance(e, Entry)
        ]
