"""Seeded random faults on the loop over memory: nothing lost, doubled, out of order or stuck."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.simulate.judge import BOOK, judge
from tests.simulate.simulation import FAULTS, Simulation
from tidegate.engine.store import open_store

SEEDS, LONG_SEEDS = 6, 200


def simulate(folder: Path, seeds: range) -> Counter[str]:
    """The faults that really happened; whatever is wrong fails with its seed."""
    hit: Counter[str] = Counter()
    wrong = {}
    effects = 0
    for seed in seeds:
        with open_store(f"sqlite:///{folder}/{seed}.db", create=True) as store:
            store.register("loop", BOOK, None)
            simulation = Simulation(store, seed, hit)
            simulation.live()
            effects += simulation.sink.effects.total()
            verdict = judge(store, simulation.sink, simulation.feed.commits)
            verdict["moved back"] = simulation.moved_back()
            if any(verdict.values()):
                wrong[seed] = verdict
    assert wrong == {}
    assert effects > 100 * len(seeds)
    return hit


def test_g16b_random_faults_lose_double_and_disorder_nothing(tmp_path: Path) -> None:
    hit = simulate(tmp_path, range(SEEDS))
    assert {kind: hit[kind] for kind in FAULTS if not hit[kind]} == {}


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_g16b_many_random_faults_lose_double_and_disorder_nothing(tmp_path: Path) -> None:
    hit = simulate(tmp_path, range(LONG_SEEDS))
    assert {kind: hit[kind] for kind in FAULTS if hit[kind] < LONG_SEEDS // 4} == {}
