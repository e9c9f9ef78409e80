"""A short simulation: a rule that tells another by signals, on a store in memory, a few steps under
faults; thousands of seeds in the time of a few on a database.

What does not depend on the seed is made once: the rulebook, prepared statements, detectors.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.simulate.judge import judge
from tests.simulate.simulation import Simulation
from tests.support.memorystore import MemoryStore
from tidegate import rules
from tidegate.engine.act.targets import Targets
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.inputs import Taking
from tidegate.engine.detect.pipeline import Pipeline
from tidegate.engine.evaluate.requirements import Prepared
from tidegate.engine.replay.memory.executors import Unprepared
from tidegate.rules.checks.gaps import SIMULATED
from tidegate.rules.model import Rulebook

BOOK = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}, told: {signal: {id: bigint}}}
rules:
  tells: {on: row, per: id, do: [{signal: {told: {id: id}}}]}
  heard:
    on: told
    do: [{sql: INSERT INTO out SELECT id FROM event}, {sql: INSERT INTO out SELECT id FROM event}]
"""
EFFECTS = {"heard": 2}
COUNTERS = ("lost", "duplicate", "out of order", "corrupt", "stuck", "moved back", "begun late")
OFTEN = 1.5  # times the usual share of a fault
# Few lives come to where these happen: five times as often
RARE = (
    "sink.run after",
    "sink.seal refused",
    "sink.seal after",
    "sink.fate",
    "taken over in a statement",
    "sink.run_together before",
    "sink.run_together lost",
    "sink.run_together after",
    "taken over in a shared commit",
)
KEPT = Path(__file__).parents[2] / ".failing-seeds"


class Quick(Simulation):
    """A few steps under faults, and then without until all is done."""

    text = BOOK
    sharing = staticmethod(lambda seed: seed % 2 == 1)
    steps = 3
    rounds_max = 12

    def write(self, text: str) -> None:
        self.book = loaded(text)

    def prepare(self, schemas: Mapping[str, str], proven: Collection[str]) -> Prepared:
        found = PREPARED.get("one")
        if found is None:
            found = PREPARED["one"] = super().prepare(schemas, proven)
        return found

    def targets(self) -> Targets:
        return Unprepared(self.sink)

    def live(self) -> None:
        chance, self.chance.times = self.chance.random, OFTEN
        self.chance.times_of = dict.fromkeys(RARE, 5 * OFTEN)
        for n in range(self.steps):
            if n == 0 or (n == 1 and chance.random() < 0.4):
                self.feed.commits += chance.choice((1, 1, 2))
            self.clock.later(chance.choice((0.1, 1, 5, 70)))
            if chance.random() < (0.5 if self.real.of("loop").outbox.open_entries() else 0.05):
                self.ask()
            if chance.random() < 0.1:
                self.sink.land()
            self.step()
        self.chance.over = True
        self.begin()
        for _ in range(self.rounds_max):
            self.sink.land()
            self.drain()
            self.again()
            self.clock.later(100)
            left = [k for k in self.real.signals.values() if k.bucket is None]
            left += [*self.sink.under_way, *self.real.of("loop").controls.pending()]
            if not (left or self.real.of("loop").outbox.open_entries()):
                return


@cache
def loaded(text: str) -> Rulebook:
    return rules.load(text, features=SIMULATED)


PREPARED: dict[str, Prepared] = {}
DETECTORS: dict[Any, Detector] = {}


def detector(book: Rulebook, activations: Mapping[str, int], **more: Any) -> Detector:
    """A detector knows nothing of what it has detected: one for all that are equal."""
    only = more.get("only")
    key = book.text, *sorted(activations.items()), None if only is None else frozenset(only)
    if key not in DETECTORS:
        DETECTORS[key] = Detector(book, activations, **more)
    return DETECTORS[key]


PIPELINES: dict[Any, Pipeline] = {}


def pipeline(
    book: Rulebook, activations: Mapping[str, int], taking: Taking, lateness: Mapping[str, int]
) -> Pipeline:
    """Nor do scripts, but for the table of their states, which grows."""
    key = (book.text, *sorted(activations.items()))
    if key not in PIPELINES:
        PIPELINES[key] = Pipeline(book, activations, taking, lateness)
    return PIPELINES[key]


@dataclass
class Simulated:
    """What many seeds came to: the counters of those that went wrong, by seed; the faults that
    really happened; how many effects there were."""

    wrong: dict[int, dict[str, int]] = field(default_factory=dict)
    hit: Counter[str] = field(default_factory=Counter)
    effects: int = 0

    @property
    def counters(self) -> dict[str, int]:
        return {name: sum(one.get(name, 0) for one in self.wrong.values()) for name in COUNTERS}


def simulate(
    seeds: Iterable[int],
    store: Callable[[], MemoryStore] = MemoryStore,
    kind: type[Quick] = Quick,
) -> Simulated:
    """The verdicts of a run for each seed. What the engine refuses though nothing but the faults
    is wrong counts as corrupt."""
    found = Simulated()
    for seed in seeds:
        simulation = kind(store(), seed, found.hit)
        try:
            simulation.live()
            verdict = judge(
                simulation.real, simulation.sink, simulation.feed.commits, effects=EFFECTS
            )
            verdict["moved back"] = simulation.moved_back()
            verdict["begun late"] = simulation.chance.begun_late
        except Exception as error:
            verdict = {"corrupt": 1, f"{type(error).__name__}: {error}": 1}
        found.effects += simulation.sink.effects.total()
        if any(verdict.values()):
            found.wrong[seed] = verdict
    return found


def simulate_all(drawn: Iterable[int], kept: Path = KEPT) -> Simulated:
    """A run for each seed, first for those at which the last call failed. Those at which this one
    fails are printed, and kept in a file for the next."""
    before = [int(seed) for seed in kept.read_text().split()] if kept.exists() else []
    found = simulate([*before, *drawn])
    for seed, verdict in found.wrong.items():
        print(f"seed {seed}: {verdict}")
    if found.wrong:
        kept.write_text("".join(f"{seed}\n" for seed in found.wrong))
    else:
        kept.unlink(missing_ok=True)
    return found


@contextmanager
def silence() -> Iterator[None]:
    """What thousands of faults would tell is not written down."""
    log = logging.getLogger("tidegate")
    level = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(level)
