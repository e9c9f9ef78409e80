"""What the first page says is wrong with a rulebook on a real store."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.control import plants
from tests.control.planted import MINUTE, Planted
from tests.control.plants import TEN
from tests.support import make
from tests.support.make import SECOND
from tidegate.engine.control.console.troubles import (
    ARRIVALS_MIN,
    PAUSES_SEEN,
    growth,
    quiet_for,
)
from tidegate.engine.core.lifecycle import IDLE, STARTING
from tidegate.engine.core.state import Parked
from tidegate.engine.store import open_store


def test_a_healthy_rulebook_has_no_trouble(planted: Planted) -> None:
    planted.commit()
    assert planted.troubles() == {}


@pytest.mark.parametrize("name", TEN)
def test_the_first_page_names_each_of_ten_troubles(
    empty_store: Path, tmp_path: Path, name: str
) -> None:
    """It comes first, with the way past it, and nothing else is said to be wrong."""
    trouble = TEN[name]
    file = shutil.copy(empty_store, tmp_path / "bank.db")
    with open_store(f"sqlite:///{file}", create=False) as store:
        planted = Planted(store, tmp_path / "lake", trouble.settings)
        trouble.plant(planted)
        first, *_ = planted.overview()["troubles"]
        assert first["kind"] == trouble.kind
        assert trouble.said in first["said"]
        assert trouble.way in " or ".join(first["ways"])
        assert planted.troubles().keys() == {trouble.kind, *trouble.beside}


def test_a_slow_table_is_named_with_the_stage_that_takes_long(planted: Planted) -> None:
    plants.slow_table(planted)
    [trouble] = planted.troubles()["slow_table"]
    assert trouble["subject"] == "transactions"
    assert "of the last 1 bucket went to the stage capture" in trouble["said"]
    assert planted.overview()["behind"]["commits"] == 3


def test_a_backlog_of_another_stage_is_no_slow_table(planted: Planted) -> None:
    plants.slow_table(planted, "detect")
    found = planted.troubles()
    assert found.keys() == {"behind"}
    assert "went to the stage detect" in found["behind"][0]["said"]


def test_a_row_is_told_for_an_hour_after_it_was_rejected(planted: Planted) -> None:
    plants.poisoned_row(planted)
    [trouble] = planted.troubles()["rejected"]
    assert trouble["subject"] == "withdrawal"
    later = planted.now + 61 * MINUTE
    assert "rejected" not in planted.troubles(later)


def test_a_held_entry_can_be_redriven_or_skipped(planted: Planted) -> None:
    plants.held_entry(planted)
    [trouble] = planted.troubles()["held"]
    assert [way.split()[1] for way in trouble["ways"]] == ["redrive", "skip"]


def test_a_waiting_standby_is_no_trouble_of_the_engine(planted: Planted) -> None:
    plants.waiting_standby(planted)
    [trouble] = planted.troubles()["standby"]
    assert trouble["gravity"] == "note"


def test_a_standby_whose_engine_is_gone_is_named_with_the_stop(planted: Planted) -> None:
    plants.waiting_standby(planted)
    planted.store.of("bank", planted.epoch).lease.release()
    found = planted.troubles()
    assert found.keys() == {"standby", "stopped"}
    assert "which nobody holds" in found["standby"][0]["said"]


def test_a_clock_that_was_set_back_is_named(planted: Planted) -> None:
    """An hour back: the engine's clock goes on from where it was (G3)."""
    planted.commit()
    [trouble] = planted.troubles(planted.now - 60 * MINUTE).pop("clock_moved")
    assert trouble["subject"] == "engine"
    assert "the clock was set back: the engine's is 60 min ahead" in trouble["said"]
    skew = planted.book.settings.skew_max_seconds
    assert "clock_moved" not in planted.troubles(planted.now - (skew - 1) * SECOND)


def test_a_writer_whose_clock_is_ahead_is_named(planted: Planted) -> None:
    logged = planted.now + 60 * MINUTE
    span = planted.span("transactions", {0: planted.now}, {0: logged})
    planted.commit(planted.plan(ranges=(span,)))
    [trouble] = planted.troubles().pop("clock_moved")
    assert trouble["subject"] == "transactions"
    assert "the clock of a writer is off: version 0 of table transactions" in trouble["said"]


@pytest.mark.parametrize(
    ("times", "now", "expected"),
    [
        ([0], 10**12, None),
        ([n * MINUTE for n in range(ARRIVALS_MIN)], 8 * MINUTE, None),  # exactly five pauses
        ([n * MINUTE for n in range(ARRIVALS_MIN)], 8 * MINUTE + 1, 300.000001),
        ([0, MINUTE, 2 * MINUTE], 10**12, None),  # too few to know its pace
        ([0, 30 * MINUTE, 31 * MINUTE, 32 * MINUTE], 60 * MINUTE, None),  # it has rested before
        ([n * SECOND for n in range(9)], 8 * SECOND + MINUTE, None),
    ],
)
def test_a_source_is_quiet_by_the_longest_pause_before(
    times: list[int], now: int, expected: float | None
) -> None:
    assert quiet_for(times[::-1], now) == expected


def test_a_signal_that_comes_no_more_is_named(planted: Planted) -> None:
    begin = planted.now - 40 * MINUTE
    for n in range(5):
        signal = make.signal(f"s{n}", begin + n * MINUTE, event="atm_empty")
        planted.store.of("bank").signals.raise_signal(signal)
    [trouble] = planted.troubles().pop("quiet_source")
    assert trouble["subject"] == "signal atm_empty"


def test_a_longer_pause_than_the_one_that_is_told_lies_further_back(planted: Planted) -> None:
    begin = planted.now - 60 * MINUTE
    for n, minutes in enumerate([0, *range(20, 21 + PAUSES_SEEN)]):
        signal = make.signal(f"s{n}", begin + minutes * MINUTE // 2, event="atm_empty")
        planted.store.of("bank").signals.raise_signal(signal)
    [trouble] = planted.troubles().pop("quiet_source")
    assert trouble["said"].endswith("the longest pause between its last 20 arrivals was 30 s")


@pytest.mark.parametrize("state", [IDLE, STARTING])
def test_an_engine_that_runs_is_no_trouble(planted: Planted, state: str) -> None:
    planted.say(state)
    assert planted.troubles() == {}


def test_why_an_engine_stopped_comes_first(planted: Planted) -> None:
    planted.commit(parked=[Parked("block", "too many", "fewer", planted.now)])
    planted.store.of("bank", planted.epoch).lease.set_stopped("table t: it was replaced")
    planted.store.of("bank", planted.epoch).lease.release()
    first, second = planted.overview()["troubles"]
    assert (first["kind"], first["said"]) == ("stopped", "stopped: table t: it was replaced")
    assert second["kind"] == "parked"


@pytest.mark.parametrize(
    ("sizes", "now", "expected"),
    [
        ([1_000, 2_000, 3_000], 4_000, 0),
        ([1_000, 2_000, 3_000], 3_000, None),  # it did not grow in this hour
        ([1_000, 2_000], 4_000, None),  # too few hours
        ([3_000, 1_500, 2_000, 3_000], 4_000, 1),  # since then
        ([3_000, 3_100, 3_200], 4_000, None),  # not twice as much
        ([10, 20, 30], 999, None),  # small
        ([], 4_000, None),
    ],
)
def test_a_state_grows_that_was_larger_at_each_hour(
    sizes: list[int], now: int, expected: int | None
) -> None:
    assert growth(dict(enumerate(sizes)), now) == expected


def test_growing_state_is_named_with_its_sizes(planted: Planted) -> None:
    plants.growing_state(planted)
    [trouble] = planted.troubles()["growing_state"]
    assert trouble["subject"] == "block"
    size = planted.overview()["size"]
    assert (size["instances"], size["keys"]) == (3_500, 8)
    assert [row["instances"] for row in size["hours"]] == [1_400, 1_800, 2_400, 2_900, 3_400]
