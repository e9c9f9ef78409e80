"""What damping remembers: stored with the bucket or the outcome that it comes of, or not at all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from tests.support import make
from tidegate.engine.control.firings import FiringFilter
from tidegate.engine.core import failpoints
from tidegate.engine.core.damping_memory import rows, wanted
from tidegate.engine.core.values import FOREVER
from tidegate.engine.evaluate.damping.kernel import COOLDOWN, DEDUPE, HYSTERESIS
from tidegate.engine.store import SqlStore
from tidegate.rules.model import DAMPINGS

DAMPED = pa.array([None, *DAMPINGS], pa.string())
ONES = np.ones(2, np.int64)


@pytest.fixture
def epoch(store: SqlStore) -> int:
    return store.of("bank").lease.acquire("one", 60)


@pytest.fixture
def disarm() -> Iterator[None]:
    yield
    failpoints.arm("")


def cooled(first: int, second: int) -> pa.Table:
    """Two keys, silent until these hours after the beginning."""
    hours = np.array([first, second])
    return rows(
        COOLDOWN, pa.array(["a" * 32, "b" * 32]), make.BEGIN + hours * make.HOUR, ONES, hours
    )


def known(store: SqlStore, rule: str = "hot", kind: int = COOLDOWN) -> list[tuple[str, list[int]]]:
    ids = pa.array([letter * 32 for letter in "abc"])
    found = store.of("bank").damping.remembered(rule, wanted(kind, ids)).to_pylist()
    return sorted((f["id"][0], np.frombuffer(f["instants"], "<i8").tolist()) for f in found)


@pytest.mark.usefixtures("disarm")
def test_a_bucket_and_what_it_remembers_are_one_transaction(store: SqlStore, epoch: int) -> None:
    make.commit(store, epoch, make.plan(), memory={"hot": cooled(1, 2), "other": cooled(3, 4)})
    assert known(store) == [("a", [1]), ("b", [2])]
    assert known(store, "other") == [("a", [3]), ("b", [4])]
    assert known(store, kind=DEDUPE) == known(store, "none") == []
    assert (
        store.of("stock").damping.remembered("hot", wanted(COOLDOWN, pa.array(["a" * 32]))).num_rows
        == 0
    )
    failpoints.arm("commit.before=raise")
    again = make.plan(2)
    with pytest.raises(failpoints.FailpointError):
        make.commit(store, epoch, again, memory={"hot": cooled(9, 9)})
    assert known(store) == [("a", [1]), ("b", [2])]
    failpoints.arm("")
    make.commit(store, epoch, again, memory={"hot": cooled(9, 2).slice(0, 1)})
    assert known(store) == [("a", [9]), ("b", [2])]
    assert store.of("bank").damping.count("hot", COOLDOWN, make.BEGIN + 2 * make.HOUR) == 1
    assert (
        store.of("bank")
        .damping.remembered("hot", wanted(COOLDOWN, pa.array([], pa.string())))
        .num_rows
        == 0
    )


def test_a_rule_that_is_taken_out_forgets(store: SqlStore, epoch: int) -> None:
    activations = {"hot": 1, "other": 1}
    made = make.plan(activations=activations)
    memory = dict.fromkeys(activations, cooled(1, 2))
    make.commit(store, epoch, made, digests=dict.fromkeys(activations, "d"), memory=memory)
    make.commit(store, epoch, make.plan(2), digests={"other": "edited"})
    assert known(store) == []
    assert known(store, "other") == [("a", [1]), ("b", [2])]


@pytest.mark.usefixtures("disarm")
def test_an_outcome_counts_once_however_often_it_is_settled(store: SqlStore, epoch: int) -> None:
    asked = make.entry("hot", kind="condition", target=None, stage=None)
    (entry,) = make.commit(store, epoch, make.plan(), fired=[make.firings("hot")], entries=[asked])
    decided = make.firings("hot", damped=pa.array([None, "cooldown"]))
    outcome = make.outcome(entry, "done", 1, firings=decided, memory=cooled(1, 2))
    failpoints.arm("settle.before=raise")
    with pytest.raises(failpoints.FailpointError):
        store.of("bank", epoch).outbox.settle([outcome])
    assert known(store) == []
    failpoints.arm("")
    for memory in (cooled(1, 2), cooled(7, 8)):  # the answer of the first was lost
        store.of("bank", epoch).outbox.settle(
            [make.outcome(entry, "done", 1, firings=decided, memory=memory)]
        )
    assert known(store) == [("a", [1]), ("b", [2])]
    assert [f.get("damped") for f in store.of("bank").firings.listed()] == [None, "cooldown"]
    assert store.of("bank").status.shown()["rules"] == []  # which lists those that are active
    make.commit(store, epoch, make.plan(2, activations={"hot": 1}), digests={"hot": "d"})
    (row,) = store.of("bank").status.shown()["rules"]
    counts = ("fired", "condition_failed", "damped", "dead", "damped_by")
    assert [row[name] for name in counts] == [1, 0, 1, 0, {"cooldown": 1}]


def test_what_says_nothing_any_more_is_forgotten(store: SqlStore, epoch: int) -> None:
    """Unless a condition waits that is to be asked of older firings."""
    flags = np.zeros(0, np.int64)
    levels = rows(HYSTERESIS, pa.array(["a" * 32]), np.array([FOREVER]), ONES[:1] * 0, flags)
    make.commit(store, epoch, make.plan(), memory={"hot": cooled(1, 2), "level": levels})
    asked = make.entry("slow", kind="condition", target=None, stage=None)
    (entry,) = make.commit(
        store, epoch, make.plan(2), fired=[make.firings("slow")], entries=[asked]
    )
    make.commit(store, epoch, make.plan(3))
    assert make.purge(store, epoch) == 1
    assert known(store) == [("b", [2])]  # bucket 2 begins at the first hour
    store.of("bank", epoch).outbox.settle([make.outcome(entry, "dead", 3)])
    assert make.purge(store, epoch) == 1
    assert known(store) == []
    assert known(store, "level", HYSTERESIS) == [("a", [])]


def test_what_dropped_a_firing_is_kept_beside_its_condition(store: SqlStore, epoch: int) -> None:
    outcomes = ["held", "none", "held", "held", "held"]
    fired = make.firings("hot", condition=pa.array(outcomes), damped=DAMPED)
    plan = make.plan(watermark_before=make.BEGIN + make.HOUR)  # within the last minute
    make.commit(store, epoch, plan, fired=[fired], entries=[make.entry("hot")])
    found = [*store.of("bank").firings.listed()]
    assert [f.get("damped") for f in found] == [None, *DAMPINGS]
    assert [f["condition"] for f in found] == outcomes
    assert [len(f["entries"]) for f in found] == [1, 0, 0, 0, 0]
    assert "damped" not in found[0]
    assert store.of("bank").outbox.firings(1, "hot").firings.equals(fired.firings)
    chosen = FiringFilter(state="damped")
    assert [chosen.matches(firing) for firing in found] == [False, True, True, True, True]
    assert [one.counts for one in store.of("bank").buckets.load().fired] == [{"hot": 1}]  # G22
