"""Dead letters, and what fired lately, of a store."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tests.support import make
from tidegate.engine.core.state import Fired
from tidegate.engine.store import SqlStore

MINUTE = 60 * make.SECOND


@pytest.fixture
def epoch(store: SqlStore) -> int:
    return store.of("bank").lease.acquire("one", 60)


def test_g18_dead_letters_are_the_newest_with_the_firings_that_they_are_for(
    store: SqlStore, epoch: int
) -> None:
    fired = make.firings(count=3, condition=pa.array(["held", "failed", "held"]))
    dead = {"state": "dead", "error": "no"}
    entries = [
        make.entry(order=0, **dead),
        make.entry(order=1, firing_ids=make.hex_ids(fired)[2:], **dead),
        make.entry(order=2, kind="condition", target=None, **dead),
        make.entry(order=3),
        make.entry("other", 4, **dead),
    ]
    make.commit(store, epoch, make.plan(), fired=[fired], entries=entries)
    found = store.of("bank").dead_letters.newest(None, 9, {"blocked"})
    assert [(row["number"], row["rule"], row["firings"]) for row in found] == [
        (1, "blocked", 2),
        (2, "blocked", 1),
        (3, "blocked", 3),
        (5, "other", None),  # its firings are forgotten
    ]
    assert found[-1]["commands"] == ["tidegate skip 5"]  # its rule is gone
    newest = store.of("bank").dead_letters.newest("blocked", 2, {"blocked"})
    assert [row["number"] for row in newest] == [2, 3]
    assert store.of("bank").dead_letters.stuck("blocked") == [
        (n, "blocked", "dead") for n in (1, 2, 3)
    ]
    assert store.of("bank").dead_letters.counts() == [
        {"rule": "blocked", "dead": 3, "held": 0}, {"rule": "other", "dead": 1, "held": 0},
    ]  # fmt: skip


def test_g17_entries_that_were_dead_before_anyone_tried_them_do_not_suspend_a_rule(
    store: SqlStore, epoch: int
) -> None:
    """Their cascades were too deep, say: that tells nothing of what the rule writes to."""
    made = [make.entry(order=0), *(make.entry(order=n, state="dead") for n in (1, 2)), make.entry()]
    made[-1] = make.altered(made[-1], order=3)
    tried, *_, last = make.commit(store, epoch, make.plan(), entries=made)
    assert store.of("bank").outbox.dead_in_a_row(last, 9) == 0
    store.of("bank", epoch).outbox.settle([make.outcome(tried, "dead", 3, "no")])
    assert store.of("bank").outbox.dead_in_a_row(last, 9) == 1
    store.of("bank", epoch).outbox.settle([make.outcome(last, "done", 1)])
    assert store.of("bank").outbox.dead_in_a_row(last, 9) == 0


def test_g22_what_fired_within_the_last_minute_of_the_clock(store: SqlStore, epoch: int) -> None:
    """Bucket n is planned 20 s after the one before; the first one catches up with old commits."""
    held = pa.array(["held", "failed"])
    for number in range(1, 6):
        plan = make.plan(number)
        plan = replace(plan, now=make.BEGIN + 4 * make.HOUR + number * 20 * make.SECOND)
        late = replace(plan, watermark_before=plan.now - 2 * MINUTE)
        fresh = replace(plan, watermark_before=plan.now - make.SECOND)
        fired = make.firings(condition=held, bucket=number)
        make.commit(store, epoch, late if number == 4 else fresh, fired=[fired])
    now = make.BEGIN + 4 * make.HOUR
    assert store.of("bank").buckets.load().fired == (
        Fired(now + 60 * make.SECOND, {"blocked": 1}),
        Fired(now + 100 * make.SECOND, {"blocked": 1}),
    )
