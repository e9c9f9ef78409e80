"""A stop within any call of a bucket, and then a restart: each effect once, nothing lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.simulate.quick import Quick, detector, silence, simulate
from tests.simulate.simulation import FAULTS, STOPS
from tests.support.memorystore import MemoryStore
from tidegate.engine.detect.events.step import component_task

SEEDS, LONG_SEEDS = 100, 10_000


class Stopped(Quick):
    """Nothing fails, but each step is stopped somewhere; operators ask for entries meanwhile."""

    stop_share = 1.0
    steps = 6

    def __init__(self, store: MemoryStore, seed: int, hit: Counter[str]) -> None:
        super().__init__(store, seed, hit)
        self.chance.spared = FAULTS


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(component_task, "Detector", detector)
    with silence():
        yield


@pytest.mark.parametrize("seeds", [SEEDS, pytest.param(LONG_SEEDS, marks=pytest.mark.long)])
def test_g14_g16_a_stop_at_any_point_and_a_restart_lose_and_double_nothing(seeds: int) -> None:
    found = simulate(range(seeds), kind=Stopped)
    print({name: found.hit[name] for name in STOPS})
    assert found.wrong == {}
    assert {name: n for name in STOPS if (n := found.hit[name]) < seeds // 10} == {}
    assert found.effects > 2 * seeds
