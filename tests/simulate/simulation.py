"""An engine over memory, under faults that a seed draws."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from tests.simulate.judge import BOOK, AllHold, Analyst, AnyStore
from tests.support.bench import Bench
from tests.support.memory import Clock, MemoryFeed, MemorySink
from tidegate.engine.core.entries import Entry, Fate
from tidegate.engine.core.instants import floor_millisecond
from tidegate.engine.core.lifecycle import CATCHING_UP, STARTING, Activity
from tidegate.engine.core.ports import OutageError, ReadRequest, SinkError
from tidegate.engine.core.state import BucketReport
from tidegate.engine.core.values import Answers, Failure, Firings, Question, TableRange
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Table

STORE = {  # how often each call fails before, and after its transaction
    "commit": 0.15,
    "settle": 0.04,
    "answer": 0.35,
    "acted": 0.3,
    "arrivals": 0.04,
    "load": 0.04,
    "firings": 0.04,
}
HOW = ("refused", "late", "before", "lost", "after")
FAULTS = [
    *(f"store.{name} {when}" for name in STORE for when in ("before", "after")),
    *(f"sink.run {what}" for what in HOW),
    *(
        SHARED := (
            *(f"sink.run_together {what}" for what in (*HOW, "in part")),
            "taken over in a shared commit",
        )
    ),
    *("sink.seal refused", "sink.seal after", "sink.fate", "sink.fate unknown"),
    *("taken over in a statement", "taken over before a commit"),
    *("feed.version", "feed.read", "feed.head slow", "a condition fails for good"),
    *("skip", "redrive"),
    *(STOPS := ("stopped before a transaction", "stopped between entries", "stopped after all")),
]
STOPPED_IN = (
    *(3 * ("feed.version", "feed.read", "a condition", "sink.run", "store.acted")),
    *(f"store.{name}" for name in STORE if name != "load"),
)


class Killed(BaseException):
    """The process ends here: nothing of it catches this."""


class Chance:
    """Draws the faults; `hit` counts those that really happened. None once `over`, and none of
    those that are `spared`.

    A stop is asked for while some call is under way, which goes on: the engine looks for itself
    whether it is `stopping`. `begun_late`: how many reads and conditions it has begun since."""

    def __init__(self, seed: int, hit: Counter[str]) -> None:
        self.random, self.stops = random.Random(seed), random.Random(~seed)
        self.stopping = False
        self.stop_in, self.calls_before = "", 0
        self.begun_late = 0
        self.hit = hit
        self.over = False
        self.spared: Collection[str] = ()
        self.times = 1.0  # as often as elsewhere
        self.times_of: Mapping[str, float] = {}

    def now(self, what: str, share: float) -> bool:
        times = self.times_of.get(what, self.times)
        if self.over or what in self.spared or self.random.random() >= share * times:
            return False
        self.hit[what] += 1
        return True

    def choose_stop(self, share: float) -> None:
        """The call of the next step, if any, in which a stop is asked for."""
        self.stop_in, self.calls_before = "", self.stops.randrange(2)
        if not self.over and self.stops.random() < share:
            self.stop_in = self.stops.choice(STOPPED_IN)

    def may_stop(self, where: str, *, begins: bool = False) -> None:
        """Within a call; `begins`: one that a stop keeps from beginning."""
        self.begun_late += begins and self.stopping
        if where == self.stop_in and not self.over:
            self.stopping |= self.calls_before == 0
            self.calls_before -= 1

    def fails(self, where: str, share: float = 0.04) -> None:
        """Ends the process, or the connection, or is a bug."""
        errors: list[BaseException] = [
            Killed(),
            OutageError("store-unreachable", "away"),
            RuntimeError("a bug"),
        ]
        if self.now(where, share):
            raise self.random.choice(errors)


class FaultyStore:
    """A store each of whose calls may fail, before or after its transaction; another engine may
    take over just before a bucket is committed."""

    def __init__(self, store: AnyStore, chance: Chance, take_over: Callable[[], None]) -> None:
        self._store, self._chance, self._take_over = store, chance, take_over

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def of(self, rulebook: str, epoch: int = 0) -> Any:
        return FaultyLedger(self._store.of(rulebook, epoch), self._chance, self._take_over)


class FaultyLedger:
    """A ledger, or a part of one, of such a store."""

    def __init__(self, real: Any, chance: Chance, take_over: Callable[[], None]) -> None:
        self._real, self._chance, self._take_over = real, chance, take_over

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if not callable(real):
            return FaultyLedger(real, self._chance, self._take_over)
        if name not in STORE:
            return real

        def call(*given: Any, **named: Any) -> Any:
            if name == "commit" and self._chance.now("taken over before a commit", 0.1):
                self._take_over()
            self._chance.fails(f"store.{name} before", STORE[name])
            self._chance.may_stop(f"store.{name}")
            found = real(*given, **named)
            self._chance.fails(f"store.{name} after", STORE[name])
            return found

        return call


class FaultySink(MemorySink):
    """Statements fail before and after they land, land late, or while another engine takes over.
    Of those that may share a commit, some do not."""

    def __init__(self, chance: Chance, take_over: Callable[[], None]) -> None:
        super().__init__()
        self.chance, self.take_over = chance, take_over
        # Thought lost, may still land
        self.under_way: list[Sequence[tuple[Entry, Firings]]] = []

    def run(self, entry: Entry, firings: Firings) -> None:
        self._run([(entry, firings)], "sink.run", "taken over in a statement")

    def run_together(self, entries: Sequence[tuple[Entry, Firings]]) -> None:
        if self.chance.now("sink.run_together in part", 0.1):
            left = self.chance.random.choice(entries)[0]
            entries = [
                (one, its)
                for one, its in entries
                if one.queue != left.queue or one.position < left.position
            ]
        if len(entries) > 1:
            self._run(entries, "sink.run_together", "taken over in a shared commit")

    def _run(self, entries: Sequence[tuple[Entry, Firings]], name: str, taken_over: str) -> None:
        if self.chance.now(f"{name} refused", 0.15):
            raise SinkError("[NO] not now")
        if self.chance.now(f"{name} late", 0.05):
            self.under_way.append(entries)
            raise SinkError("[IO] no answer")
        if self.chance.now(taken_over, 0.02):
            self.take_over()
        self.chance.fails(f"{name} before")
        self.chance.may_stop("sink.run")
        self._land(entries)
        if self.chance.now(f"{name} lost", 0.05):
            raise SinkError("[IO] no answer")
        self.chance.fails(f"{name} after")

    def _land(self, entries: Sequence[tuple[Entry, Firings]]) -> None:
        if len(entries) > 1:
            super().run_together(entries)
        else:
            super().run(*entries[0])

    def seal(self, entry: Entry) -> None:
        if self.chance.now("sink.seal refused", 0.2):
            raise SinkError("[NO] not now")
        super().seal(entry)
        self.chance.fails("sink.seal after", 0.2)

    def fate(self, entry: Entry, firings: Firings) -> Fate:
        if self.chance.now("sink.fate unknown", 0.05):
            return Fate.UNKNOWN
        self.chance.fails("sink.fate")
        return super().fate(entry, firings)

    def land(self) -> None:
        """One of those that were thought lost."""
        if self.under_way:
            late = self.under_way.pop(self.chance.random.randrange(len(self.under_way)))
            self._land(late)


class FaultyFeed(MemoryFeed):
    """A table that cannot be read, or is listed for half a minute, while a commit lands."""

    def __init__(self, chance: Chance, clock: Clock) -> None:
        super().__init__(0)
        self.chance, self.clock = chance, clock
        self.meanwhile = self.slow

    def slow(self) -> None:
        if self.chance.now("feed.head slow", 0.1):
            self.clock.later(15)
            self.instants[self.commits] = floor_millisecond(self.clock())
            self.commits += 1
            self.clock.later(15)

    def version(self, table: Table) -> int:
        self.chance.may_stop("feed.version")
        self.chance.fails("feed.version", 0.1)
        return super().version(table)

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        self.chance.may_stop("feed.read", begins=True)
        if self.chance.now("feed.read", 0.1):
            raise OSError("no space left on device")
        return super().read(table, span, request)


class FaultyConditions(AllHold):
    def __init__(self, chance: Chance) -> None:
        self.chance = chance

    def hold(self, questions: Sequence[Question]) -> Answers:
        self.chance.may_stop("a condition", begins=True)
        if self.chance.now("a condition fails for good", 0.1):
            return Answers(failed={q.asked: Failure("[NO] never") for q in questions})
        return super().hold(questions)


class Simulation(Bench):
    """Faults, commits, restarts, operators and time in random order; then none of them."""

    text = BOOK
    steps = 30
    stop_share = 0.25  # of the steps
    planned = False  # whether the step has chosen a bucket
    sharing: Callable[[int], bool] = staticmethod(lambda _: False)  # commits, by seed

    def __init__(self, store: AnyStore, seed: int, hit: Counter[str]) -> None:
        self.chance, self.shares = Chance(seed, hit), self.sharing(seed)
        self.real = store
        self.store: Any = FaultyStore(store, self.chance, self.take_over)
        self.clock = Clock()
        self.feed: FaultyFeed = FaultyFeed(self.chance, self.clock)
        self.sink = FaultySink(self.chance, self.take_over)
        self.conditions = FaultyConditions(self.chance)
        self.write(self.text)
        self.begin()

    def begin(self) -> None:
        """A process starts, as often as it takes."""
        while True:
            with suppress(Killed, OutageError, RuntimeError):
                return self.restart()

    def analyst(self) -> Analyst:
        return Analyst()

    def stopped(self) -> bool:
        return self.chance.stopping

    def say(self, activity: Activity) -> None:
        self.planned |= activity.state in (CATCHING_UP, STARTING)

    def restart(self) -> None:
        self.chance.stopping = False
        super().restart()
        self.loop.runner.check = self.ledger.lease.check
        if self.shares:
            self.share()

    def take_over(self) -> None:
        """Another engine goes on while this one is in a statement, or stands before a commit."""
        mine, stopping, planned = self.loop, self.chance.stopping, self.planned
        self.begin()
        try:
            self.loop.bucket()
        except (Killed, EngineError, RuntimeError) as error:
            if not foreseen(error):
                raise
        self.loop, self.chance.stopping, self.planned = mine, stopping, planned

    def live(self) -> None:
        chance = self.chance.random
        for _ in range(self.steps):
            self.feed.commits += chance.randrange(3)
            self.clock.later(chance.choice((0.1, 1, 5, 70)))
            if chance.random() < 0.2:
                self.ask()
            if chance.random() < 0.1:
                self.sink.land()
            self.step()
        self.chance.over = True
        for _ in range(8):
            self.begin()
            self.sink.land()
            self.drain()
            self.again()
            self.clock.later(100)
        assert not self.real.of("loop").controls.pending()

    def moved_back(self) -> int:
        """How many of the commits that landed in a slow listing stand before their time (G1)."""
        placed = (
            (self.real.of("loop").buckets.version_at("t", at - 1), version)
            for version, at in self.feed.instants.items()
        )
        return sum(before is not None and before >= version for before, version in placed)

    def again(self) -> None:
        """The operator asks once more for what was refused after a seal had landed."""
        for entry in self.real.of("loop").outbox.open_entries():
            if entry.progress.fate == "sealed":
                self.real.of("loop").controls.ask("redrive", str(entry.number))

    def step(self) -> None:
        """What one engine does until something fails; then it goes on, or another one begins."""
        self.planned = False
        self.chance.choose_stop(self.stop_share)
        try:
            report = self.loop.bucket()
        except (Killed, EngineError, RuntimeError) as error:
            if not foreseen(error):
                raise
            if not (isinstance(error, Killed) or self.stopped() or self.stale()):
                with suppress(Killed, OutageError, RuntimeError):
                    return self.loop.recover()
            self.begin()
        else:
            if self.stopped():
                self.end(report)

    def end(self, report: BucketReport | None) -> None:
        """A process that was asked to stop ends, and another one begins."""
        if report is None and self.planned:
            self.chance.hit["stopped before a transaction"] += 1
        elif self.loop.runner.queues.count_due(self.clock.at):
            self.chance.hit["stopped between entries"] += 1
        elif report is not None:
            self.chance.hit["stopped after all"] += 1
        with suppress(Killed, EngineError, RuntimeError):
            self.loop.finish()
        self.begin()

    def stale(self) -> bool:
        try:
            self.loop.runner.check()
        except EngineError as error:
            return error.code == "lease-lost"
        return False

    def ask(self) -> None:
        """An operator, of an entry that is open, or of none."""
        kind = self.chance.random.choice(("skip", "redrive"))
        numbers = [entry.number for entry in self.real.of("loop").outbox.open_entries()]
        number = self.chance.random.choice(numbers or [self.real.last_entry() + 1])
        self.real.of("loop").controls.ask(kind, str(number))
        self.chance.hit[kind] += 1


def foreseen(error: BaseException) -> bool:
    """Whether a fault may bring it: no bucket out of turn, say."""
    if not isinstance(error, EngineError) or isinstance(error, OutageError):
        return True
    return error.code in ("lease-lost", "bucket-failed")
