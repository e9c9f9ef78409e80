"""Ten troubles are planted on a real store, one after the other: each is named by the first page
alone, with the way past it, and no other trouble is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.control.planted import HOUR, MINUTE, Planted
from tests.support import make
from tests.support.make import SECOND
from tidegate.engine.control.console.troubles import ARRIVALS_MIN, growth, quiet_for
from tidegate.engine.core.lifecycle import CATCHING_UP, IDLE, STARTING
from tidegate.engine.core.state import Parked
from tidegate.engine.core.values import Load, Rejected
from tidegate.engine.store.lease import standby_of


def test_a_healthy_rulebook_has_no_trouble(planted: Planted) -> None:
    planted.commit()
    assert planted.troubles() == {}


def test_a_slow_table_is_named_with_the_stage_that_takes_long(planted: Planted) -> None:
    instants = [planted.now - (10 - n) * MINUTE for n in range(5)]
    planted.log("transactions", instants)
    span = planted.span("transactions", {0: instants[0], 1: instants[1]})
    planted.commit(planted.plan(ranges=(span,)), seconds={"capture": 40.0, "detect": 0.2})
    planted.say(CATCHING_UP, commits=3, oldest=instants[2])
    [trouble] = planted.troubles().pop("slow_table")
    assert trouble["subject"] == "transactions"
    assert "table transactions is behind by 3 commits, the oldest of 8 min ago" in trouble["said"]
    assert "of the last 1 bucket went to the stage capture" in trouble["said"]
    assert planted.overview()["behind"]["commits"] == 3


def test_a_backlog_of_another_stage_is_no_slow_table(planted: Planted) -> None:
    instants = [planted.now - (10 - n) * MINUTE for n in range(5)]
    planted.log("transactions", instants)
    span = planted.span("transactions", {0: instants[0], 1: instants[1]})
    planted.commit(planted.plan(ranges=(span,)), seconds={"capture": 0.2, "detect": 40.0})
    planted.say(CATCHING_UP, commits=3, oldest=instants[2])
    found = planted.troubles()
    assert found.keys() == {"behind"}
    assert "went to the stage detect" in found["behind"][0]["said"]


def test_a_poisoned_row_is_named_with_its_reason(planted: Planted) -> None:
    reason = "where raises: DIVIDE_BY_ZERO"
    planted.commit(rejected=[Rejected("withdrawal", "transactions", reason, {"id": 4})])
    [trouble] = planted.troubles().pop("rejected")
    assert (trouble["subject"], trouble["ways"]) == ("withdrawal", ["tidegate rejected -v"])
    assert "1 row or signal rejected in this hour; the newest, of withdrawal" in trouble["said"]
    assert reason in trouble["said"]
    later = planted.now + 61 * MINUTE
    assert "rejected" not in planted.troubles(later)


def test_a_held_entry_is_named_with_what_waits_behind_it(planted: Planted) -> None:
    entries = planted.commit(
        fired=[make.firings("pay", 2)], entries=[make.entry("pay"), make.entry("pay", 1)]
    )
    held = make.outcome(entries[0], "held", 3, "PERMISSION_DENIED: accounts", fate="unknown")
    planted.store.of("bank", planted.epoch).outbox.settle([held])
    [trouble] = planted.troubles().pop("held")
    number = entries[0].number
    assert trouble["said"] == (
        f"entry {number} of rule pay is held: PERMISSION_DENIED: accounts; 1 entry behind it"
    )
    assert [way.split()[1] for way in trouble["ways"]] == ["redrive", "skip"]


def test_a_waiting_standby_is_named_and_no_trouble_of_the_engine(planted: Planted) -> None:
    planted.commit()
    planted.store.of(standby_of("bank")).lease.acquire("m2-1/17/1-aa", 600)
    found = planted.troubles()
    assert found.keys() == {"standby"}
    [trouble] = found["standby"]
    assert trouble["gravity"] == "note"
    assert trouble["said"].startswith("process 17 on m2-1 is a standby: it waits for the lease")


def test_a_standby_whose_engine_is_gone_is_named_with_the_stop(planted: Planted) -> None:
    planted.commit()
    planted.store.of(standby_of("bank")).lease.acquire("m2-1/17/1-aa", 600)
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


def test_a_full_outbox_is_named_with_the_rule_that_fills_it(
    planted: Planted, tmp_path: Path
) -> None:
    planted.store.of("bank", planted.epoch).lease.release()
    small = Planted(planted.store, tmp_path, "settings: {outbox_entries_max: 3}\n")
    entries = [make.entry("pay", n) for n in range(2)] + [make.entry("block")]
    small.commit(fired=[make.firings("pay"), make.firings("block")], entries=entries)
    [trouble] = small.troubles().pop("outbox_full")
    assert trouble["subject"] == "pay"
    assert "the outbox is full: 3 entries wait, 2 of them of rule pay" in trouble["said"]


def test_a_parked_rule_is_named_with_its_reason_and_way(planted: Planted) -> None:
    planted.commit(
        parked=[Parked("block", "2 instances of one key", "add `within`", planted.now)],
    )
    [trouble] = planted.troubles().pop("parked")
    assert trouble["said"].startswith("rule block is parked: 2 instances of one key; add `within`")
    assert trouble["ways"] == ["tidegate enable block"]


def test_a_quiet_source_is_named_by_its_own_pace(planted: Planted) -> None:
    """A commit a minute, and then none for half an hour."""
    begin = planted.now - 40 * MINUTE
    instants = {n: begin + n * MINUTE for n in range(10)}
    planted.log("transactions", [*instants.values()])
    planted.commit(planted.plan(ranges=(planted.span("transactions", instants),)))
    [trouble] = planted.troubles().pop("quiet_source")
    assert trouble["subject"] == "table transactions"
    assert "brought nothing for 31 min; its longest pause before was 60 s" in trouble["said"]


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


def test_growing_state_is_named_with_its_rule(planted: Planted) -> None:
    """A bucket in each of four hours, and two now."""
    for n, instances in enumerate([500, 900, 1_500, 2_000, 2_500]):
        at = planted.now - (4 - n) * HOUR
        plan = planted.plan(watermark_before=at - SECOND, watermark=at, now=at)
        loads = {"block": Load(instances, 7), "pay": Load(900, 1)}
        planted.commit(plan, loads=loads)
    planted.commit(loads={"block": Load(2_600, 7), "pay": Load(900, 1)})
    [trouble] = planted.troubles().pop("growing_state")
    assert trouble["subject"] == "block"
    assert "the state of block grows: 2,600 instances are carried, 500 at" in trouble["said"]
    size = planted.overview()["size"]
    assert (size["instances"], size["keys"]) == (3_500, 8)
    assert [row["instances"] for row in size["hours"]] == [1_400, 1_800, 2_400, 2_900, 3_400]
