"""The verdict of the kill loop on engines with planted faults, over memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from tests.crash.lake import Lake, Rows
from tests.crash.verdict import Verdict, judge
from tests.simulate.judge import ids_of
from tests.simulate.planted import PLANTED
from tests.simulate.quick import Quick, detector, silence
from tests.support.memorystore import MemoryStore
from tidegate.engine.detect.events.step import component_task

SEEDS = 100


class Killed(Quick):
    """Killed, taken over, its store away; nothing is refused, and no operator asks for anything."""

    def __init__(self, store: MemoryStore, seed: int, hit: Counter[str]) -> None:
        super().__init__(store, seed, hit)
        self.chance.spared = ("sink.run refused", "sink.run late", "sink.run lost")
        self.chance.spared += ("sink.fate unknown",)

    def ask(self) -> None: ...


class Landed:
    """What a simulation has left, as tables of a lake: a row of the source is a move of 1 into an
    account of its own, the first statement of `heard` copies it, the second adds it up."""

    scripted = False

    def __init__(self, simulation: Quick) -> None:
        self.store, self.sink = simulation.real, simulation.sink
        self.moves = range(simulation.feed.commits)

    def rows(self, name: str) -> Rows:
        if name == "moves":
            return Counter((n, n, 1) for n in self.moves)
        landed = [n for entry in self.entries(name) for n in ids_of(self.store, entry)]
        if name == "effects":
            return Counter(("copied", n, n, 1) for n in landed)
        return Counter((n, times, times) for n, times in Counter(landed).items())

    def effect_commits(self, name: str) -> Iterator[dict[str, Any]]:
        for entry in self.entries(name):
            whose = {"store": self.store.id, "rulebook": "loop", "rule": entry.rule}
            marker = {"appId": f"tidegate/{self.store.id}/loop/{entry.rule}"}
            noted = {**whose, "entry": entry.number, "last": entry.number}
            yield {**noted, "marker": [{**marker, "version": entry.number}]}

    def entries(self, name: str) -> Iterator[Any]:
        for _, number in self.sink.entries:
            entry = self.store.entries[number]
            if entry.statement.action == ("effects", "totals").index(name):
                yield entry


def verdicts() -> Iterator[Counter[str]]:
    """The counters of each seed."""
    for seed in range(SEEDS):
        found: Counter[str] = Counter()
        simulation = Killed(MemoryStore(), seed, Counter())
        try:
            simulation.live()
        except Exception as error:
            found[f"{type(error).__name__}: {error}"] += 1
        else:
            found.update(vars(judge(cast(Lake, Landed(simulation)))))
        yield +found


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(component_task, "Detector", detector)
    with silence():
        yield


def test_g16b_nothing_shows_where_nothing_is_planted() -> None:
    assert [found for found in verdicts() if found] == []


@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED)
def test_g16_a_planted_fault_shows(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert any(found[name] for found in verdicts() for name in vars(Verdict()))
