"""Ten troubles that are planted on a real store, each with the sentence and the way past it by
which the first page names it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.control.planted import DAY, HOUR, MINUTE, Planted
from tests.support import make
from tests.support.make import SECOND
from tidegate.engine.core.keeping import FILES, Keeping
from tidegate.engine.core.lifecycle import CATCHING_UP, IDLE
from tidegate.engine.core.state import Parked
from tidegate.engine.core.values import Load, Rejected
from tidegate.engine.store.lease import standby_of


@dataclass(frozen=True, slots=True)
class Trouble:
    """A trouble. `plant`: brings it about. `said`, `way`: what the page has in its sentence, and in
    the way past it, empty where there is none. `settings`: of the rulebook. `beside`: what else is
    wrong then, by kind."""

    kind: str
    plant: Callable[[Planted], None]
    said: str
    way: str
    settings: str = ""
    beside: frozenset[str] = frozenset()


def slow_table(planted: Planted, stage: str = "capture") -> None:
    """Three commits wait, and a stage took most of the last bucket."""
    instants = [planted.now - (10 - n) * MINUTE for n in range(5)]
    planted.log("transactions", instants)
    span = planted.span("transactions", {0: instants[0], 1: instants[1]})
    others = {"capture": 0.2, "detect": 0.2}
    planted.commit(planted.plan(ranges=(span,)), seconds={**others, stage: 40.0})
    planted.say(CATCHING_UP, commits=3, oldest=instants[2])


def poisoned_row(planted: Planted) -> None:
    reason = "where raises: DIVIDE_BY_ZERO"
    planted.commit(rejected=[Rejected("withdrawal", "transactions", reason, {"id": 4})])


def held_entry(planted: Planted) -> None:
    entries = planted.commit(
        fired=[make.firings("pay", 2)], entries=[make.entry("pay"), make.entry("pay", 1)]
    )
    held = make.outcome(entries[0], "held", 3, "PERMISSION_DENIED: accounts", fate="unknown")
    planted.store.of("bank", planted.epoch).outbox.settle([held])


def waiting_standby(planted: Planted) -> None:
    planted.commit()
    planted.store.of(standby_of("bank")).lease.acquire("m2-1/17/1-aa", 600)


def moved_clock(planted: Planted) -> None:
    """The machine's was set back by an hour: the engine's goes on from where it was (G3)."""
    planted.commit()
    planted.say(IDLE, looked_at=planted.now + HOUR + MINUTE // 2)


def full_outbox(planted: Planted) -> None:
    entries = [make.entry("pay", n) for n in range(2)] + [make.entry("block")]
    planted.commit(fired=[make.firings("pay"), make.firings("block")], entries=entries)


def parked_rule(planted: Planted) -> None:
    why = "2 instances of one key", "add `within`"
    planted.commit(parked=[Parked("block", *why, planted.now)])


def quiet_source(planted: Planted) -> None:
    """A commit a minute, and then none for half an hour."""
    begin = planted.now - 40 * MINUTE
    instants = {n: begin + n * MINUTE for n in range(10)}
    planted.log("transactions", [*instants.values()])
    planted.commit(planted.plan(ranges=(planted.span("transactions", instants),)))


def growing_state(planted: Planted) -> None:
    """A bucket in each of four hours, and two now."""
    for n, instances in enumerate([500, 900, 1_500, 2_000, 2_500]):
        at = planted.now - (4 - n) * HOUR
        plan = planted.plan(watermark_before=at - SECOND, watermark=at, now=at)
        planted.commit(plan, loads={"block": Load(instances, 7), "pay": Load(900, 1)})
    planted.commit(loads={"block": Load(2_600, 7), "pay": Load(900, 1)})


def expired_retention(planted: Planted) -> None:
    """A commit is not read that is older than the files are kept."""
    kept = [Keeping(name, 30 * DAY, 7 * DAY) for name in ("transactions", "accounts")]
    planted.store.of("bank", planted.epoch).keepings.tell(kept)
    instants = [planted.now - 9 * DAY, planted.now - 8 * DAY]
    planted.log("transactions", instants)
    planted.commit(planted.plan(ranges=(planted.span("transactions", {0: instants[0]}),)))


TEN: Mapping[str, Trouble] = {
    "a slow table": Trouble(
        "slow_table",
        slow_table,
        "table transactions is behind by 3 commits, the oldest of 8 min ago",
        "OPTIMIZE",
    ),
    "a poisoned row": Trouble(
        "rejected",
        poisoned_row,
        "1 row or signal rejected in the last 60 minutes; the newest, of withdrawal from "
        "transactions: where raises: DIVIDE_BY_ZERO",
        "tidegate rejected -v",
    ),
    "a held entry": Trouble(
        "held",
        held_entry,
        "entry 1 of rule pay is held: PERMISSION_DENIED: accounts; 1 entry behind it",
        "tidegate redrive 1",
    ),
    "a standby that waits": Trouble(
        "standby",
        waiting_standby,
        "process 17 on m2-1 is a standby: it waits for the lease, which",
        "",
    ),
    "a clock that moved": Trouble(
        "clock_moved",
        moved_clock,
        "the clock was set back: the engine's is 60 min ahead of the store's",
        "set the clock right (NTP)",
    ),
    "a full outbox": Trouble(
        "outbox_full",
        full_outbox,
        "the outbox is full: 3 entries wait, 2 of them of rule pay",
        "tidegate disable pay --purge",
        "settings: {outbox_entries_max: 3}\n",
    ),
    "a parked rule": Trouble(
        "parked",
        parked_rule,
        "rule block is parked: 2 instances of one key; add ",
        "tidegate enable block",
    ),
    "a quiet source": Trouble(
        "quiet_source",
        quiet_source,
        "table transactions has brought nothing for 31 min; the longest pause between its last 10 "
        "arrivals was 60 s",
        "look at what writes it",
    ),
    "a state that grows": Trouble(
        "growing_state",
        growing_state,
        "the state of block grows: 2,600 instances are carried, 500 at",
        "tidegate explain FILE block",
    ),
    "retention that has expired": Trouble(
        "retention",
        expired_retention,
        "commits of table transactions that are not read may be gone since 24 h",
        f"raise {FILES}",
        beside=frozenset({"behind"}),
    ),
}
