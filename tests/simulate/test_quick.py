"""Hundreds of short lives under random faults: lost = duplicate = out of order = corrupt = 0."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulate import quick
from tests.simulate.planted import PLANTED
from tests.simulate.quick import COUNTERS, detector, silence, simulate, simulate_all
from tests.simulate.simulation import FAULTS
from tidegate.engine.detect.events.step import component_task

SEEDS, LONG_SEEDS = 600, 100_000
LEFT_OUT = {"a condition fails for good", "sink.seal refused", "sink.seal after"}
NOTHING = dict.fromkeys(COUNTERS, 0)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(component_task, "Detector", detector)
    with silence():
        yield


def test_g16b_hundreds_of_seeds() -> None:
    found = simulate_all(range(SEEDS))
    assert (found.wrong, found.counters) == ({}, NOTHING)
    assert {name for name in FAULTS if not found.hit[name]} <= LEFT_OUT
    assert found.effects > 2 * SEEDS


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_g16b_a_hundred_thousand_seeds() -> None:
    first = random.randrange(10**9)
    print(f"seeds from {first}")
    found = simulate_all(range(first, first + LONG_SEEDS))
    assert (found.wrong, found.counters) == ({}, NOTHING)
    assert found.effects > 2 * LONG_SEEDS


@pytest.mark.parametrize("fault", PLANTED)
def test_g16_a_planted_fault_shows(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[fault](monkeypatch)
    for seed in range(100):
        counters = simulate([seed]).counters
        if any(counters[name] for name in ("lost", "duplicate", "out of order", "corrupt")):
            print(fault, seed, counters)
            return
    pytest.fail(f"{fault}: no seed shows it")


def test_a_seed_that_failed_is_kept_and_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "seeds"
    ran: list[int] = []

    def wrong_at_7(seeds: list[int]) -> quick.Simulated:
        ran[:] = seeds
        return quick.Simulated({seed: {"lost": 1} for seed in seeds if seed == 7})

    monkeypatch.setattr(quick, "simulate", wrong_at_7)
    simulate_all(range(6, 9), kept)
    assert capsys.readouterr().out == "seed 7: {'lost': 1}\n"
    simulate_all(range(2), kept)
    assert ran == [7, 0, 1]
    monkeypatch.setattr(quick, "simulate", lambda _: quick.Simulated())
    simulate_all(range(2), kept)
    assert not kept.exists()
