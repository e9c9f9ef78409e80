"""Step 3: everything of a bucket, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

from tests.support import make
from tidegate.engine.core import failpoints
from tidegate.engine.core.state import Parked
from tidegate.engine.core.values import Carried, Rejected
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store.tables import metadata
from tidegate.rules.errors import EngineError


@pytest.fixture
def url(store_url: str) -> str:
    """Both databases, in the short suite, too."""
    return store_url


@pytest.fixture
def epoch(store: SqlStore) -> int:
    return store.of("bank").lease.acquire("one", 60)


@pytest.fixture
def disarm() -> Iterator[None]:
    yield
    failpoints.arm("")


def everything(store: SqlStore, epoch: int, bucket: int = 1) -> None:
    """Commit a bucket with something in each of its parts."""
    store.of("bank").signals.raise_signal(make.signal(f"s{bucket}"))
    placed = replace(make.signal(f"s{bucket}"), instant=make.BEGIN + 5)
    store.of("bank").controls.ask("reset", "accounts", bucket)
    controls = tuple(control.id for control in store.of("bank").controls.pending())
    make.commit(
        store,
        epoch,
        make.plan(
            bucket,
            ranges=(make.a_range("transactions", bucket, bucket),),
            signals=(placed,),
            activations={"blocked": make.BEGIN + 1},
            controls=controls,
        ),
        carried=Carried({"node": pa.table({"n": [bucket]})}, frozenset({"node"})),
        fired=[make.firings(bucket=bucket)],
        entries=[make.entry(), make.entry(order=1)],
        rejected=[Rejected("withdrawal", "transactions", "no time", {"id": 4})],
        digests={"blocked": "d1"},
    )


def seen(store: SqlStore) -> dict[str, Any]:
    """All that a caller can see of a rulebook."""
    state = store.of("bank").buckets.load()
    return {
        "bucket": state.bucket,
        "watermark": state.watermark,
        "now": state.now,
        "cursors": state.cursors,
        "activations": (state.activations, state.activation_digests),
        "carried": {name: table.to_pydict() for name, table in state.carried.tables.items()},
        "signals": [signal.id for signal in make.unplaced(store)],
        "controls": [control.subject for control in store.of("bank").controls.pending()],
        "entries": store.of("bank").outbox.open_entries(),
        "firings": list(store.of("bank").firings.listed()),
        "rejected": store.of("bank").status.shown()["rejected_rows"],
    }


def test_a_rulebook_begins_with_nothing(store: SqlStore) -> None:
    state = store.of("bank").buckets.load()
    assert (state.bucket, state.watermark, state.now) == (0, None, 0)
    assert [*state.cursors, *state.activations, *state.carried.tables] == []


def test_what_is_committed_is_there_after_reopening(url: str, store: SqlStore, epoch: int) -> None:
    everything(store, epoch)
    everything(store, epoch, 2)
    with open_store(url, create=False) as again:
        assert again.id == store.id
        state = again.of("bank").buckets.load()
        found = seen(again)
    assert (state.bucket, state.watermark) == (2, make.BEGIN + 2 * make.HOUR)
    assert state.now == make.BEGIN + 2 * make.HOUR + make.SECOND
    assert state.cursors == {"transactions": make.a_range("transactions", 2, 2).cursor}
    assert state.activations == {"blocked": make.BEGIN + 1}
    assert state.activation_digests == {"blocked": "d1"}
    assert found["carried"] == {"node": {"n": [2]}}
    assert [entry.number for entry in found["entries"]] == [1, 2, 3, 4]
    assert [firing["bucket"] for firing in found["firings"]] == [1, 1, 2, 2]
    assert (found["signals"], found["controls"], found["rejected"]) == ([], [], 2)


@pytest.mark.parametrize("point", ["commit.middle", "commit.before"])
@pytest.mark.usefixtures("disarm")
def test_a_commit_that_fails_leaves_nothing(store: SqlStore, epoch: int, point: str) -> None:
    everything(store, epoch)
    store.of("bank").signals.raise_signal(make.signal("s2"))
    store.of("bank").controls.ask("reset", "accounts", 2)
    before = seen(store)
    failpoints.arm(f"{point}=raise")
    with pytest.raises(failpoints.FailpointError):
        everything(store, epoch, 2)
    after = seen(store)
    assert after.pop("controls") == ["accounts"] * 2  # asked for in a transaction of its own
    before.pop("controls")
    assert after == before
    everything(store, epoch, 2)  # and the same bucket can be committed still
    assert store.of("bank").buckets.load().bucket == 2


@pytest.mark.parametrize(
    ("point", "bucket", "entries"), [("commit.before", 0, 0), ("commit.after", 1, 2)]
)
def test_a_process_that_dies_around_the_commit(
    url: str, store: SqlStore, point: str, bucket: int, entries: int
) -> None:
    def child() -> None:
        failpoints.arm(f"{point}=exit")
        own = open_store(url, create=False)
        everything(own, own.of("bank").lease.acquire("child", 60))

    ended = get_context("fork").Process(target=child)
    ended.start()
    ended.join()
    assert ended.exitcode == failpoints.EXIT_CODE
    assert store.of("bank").buckets.load().bucket == bucket
    assert len(store.of("bank").outbox.open_entries()) == entries
    assert len(make.unplaced(store)) == 1 - bucket


def test_g21_a_stale_epoch_writes_nothing(store: SqlStore, epoch: int) -> None:
    store.of("bank", epoch).lease.release()
    store.of("bank").lease.acquire("two", 60)
    before = seen(store)
    with pytest.raises(EngineError, match="nothing of this bucket was written") as caught:
        make.commit(store, epoch, make.plan(), fired=[make.firings()], entries=[make.entry()])
    assert caught.value.code == "lease-lost"
    assert seen(store) == before


def test_g21_a_stale_engine_changes_nothing_beside_buckets_either(
    store: SqlStore, epoch: int
) -> None:
    (entry,) = make.commit(store, epoch, make.plan(), entries=[make.entry()])
    store.of("bank", epoch).outbox.settle([make.outcome(entry, "done", 1)])
    store.of("bank").controls.ask("enable", "blocked")
    (asked,) = store.of("bank").controls.pending()
    store.of("bank", epoch).lease.release()
    successor = store.of("bank").lease.acquire("two", 60)
    writes: list[Callable[[int], object]] = [
        lambda by: store.of("bank", by).buckets.acted(1, 0.5),
        lambda by: store.of("bank", by).lease.set_stopped("no space left"),
        lambda by: store.of("bank", by).controls.answer(asked.id, "no"),
        lambda by: store.adopt("bank", by, ()),
        lambda by: store.of("bank", by).retention.purge(make.BEGIN + 9 * make.HOUR, 0, 99),
    ]
    store.of("bank").versions.register("text", None)
    for write in writes:
        before = every_row(store)
        with pytest.raises(EngineError, match="run by two now") as caught:
            write(epoch)
        assert caught.value.code == "lease-lost"
        assert every_row(store) == before
        write(successor)
        assert every_row(store) != before


def every_row(store: SqlStore) -> list[list[tuple[Any, ...]]]:
    """All that a store holds."""
    with store.database.read() as connection:
        return [[*map(tuple, connection.execute(sa.select(t)))] for t in metadata.sorted_tables]


def test_g21_a_commit_without_a_lease_is_refused(store: SqlStore) -> None:
    with pytest.raises(EngineError, match="run by nobody now"):
        make.commit(store, 1, make.plan())


@pytest.mark.parametrize("bucket", [1, 3])
def test_a_bucket_that_is_not_the_next_is_refused(store: SqlStore, epoch: int, bucket: int) -> None:
    everything(store, epoch)
    before = seen(store)
    with pytest.raises(EngineError, match=f"bucket {bucket} of 'bank' cannot follow bucket 1"):
        make.commit(store, epoch, make.plan(bucket), entries=[make.entry()])
    assert seen(store) == before


def test_only_changed_instances_are_written(store: SqlStore, epoch: int) -> None:
    one, two = pa.table({"n": [1]}), pa.table({"n": [2]})
    make.commit(
        store,
        epoch,
        make.plan(1),
        carried=Carried({"a": one, "b": one, "c": one}, frozenset("abc")),
    )
    make.commit(store, epoch, make.plan(2), carried=Carried({"a": two, "b": two}, frozenset("bc")))
    tables = store.of("bank").buckets.load().carried.tables
    assert {name: table.to_pydict() for name, table in tables.items()} == {
        "a": {"n": [1]},  # said to be as it was
        "b": {"n": [2]},  # c is gone
    }


def test_g09_activations_stay_digests_change_and_rules_leave(store: SqlStore, epoch: int) -> None:
    first = make.plan(1, activations={"a": 5, "b": 6})
    make.commit(store, epoch, first, digests={"a": "a1", "b": "b1"})
    make.commit(store, epoch, make.plan(2, activations={"c": 9}), digests={"a": "a2", "c": "c1"})
    state = store.of("bank").buckets.load()
    assert state.activations == {"a": 5, "c": 9}
    assert state.activation_digests == {"a": "a2", "c": "c1"}


def test_g07_rulebooks_have_their_own_buckets(store: SqlStore, epoch: int) -> None:
    everything(store, epoch)
    other = store.of("stock").lease.acquire("one", 60)
    make.commit(store, other, make.plan(rulebook="stock"), fired=[make.firings()])
    assert store.of("stock").buckets.load().bucket == 1
    assert store.of("stock").buckets.load().cursors == {}
    assert len(list(store.of("stock").firings.listed())) == 2


def test_g13_rules_of_one_name_are_parked_in_their_own_rulebooks(
    store: SqlStore, epoch: int
) -> None:
    other = store.of("shop").lease.acquire("one", 60)
    parked = Parked("blocked", "at most 3 are carried", "enable it", make.BEGIN)
    digests = {"blocked": "d"}
    for name, by in (("shop", other), ("bank", epoch)):
        first = make.plan(rulebook=name, activations={"blocked": 1})
        make.commit(store, by, first, digests=digests, parked=(parked,))
    enabled = make.plan(2, enabled=frozenset({"blocked"}))
    make.commit(store, epoch, enabled, digests=digests)
    make.commit(store, epoch, make.plan(3), digests={})  # the rule is deleted
    assert (store.of("bank").rule_states.parked(), store.of("shop").rule_states.parked()) == (
        frozenset(),
        {"blocked"},
    )
    assert store.of("shop").rule_states.obstacles() == (parked,)
    assert store.of("bank").rule_states.obstacles() == ()


def test_the_registered_rulebook_can_be_read_again(url: str, store: SqlStore) -> None:
    store.of("bank").versions.register("rulebook: bank # é", "/lake/bank.yaml")
    store.of("bank").versions.register("rulebook: bank # 2", None)
    with open_store(url, create=False) as again:
        kept = again.rulebooks()
    assert (kept["bank"].text, kept["bank"].file) == ("rulebook: bank # 2", None)


def test_g24_a_reset_waits_for_the_plan_that_carries_it_out(store: SqlStore, epoch: int) -> None:
    store.of("bank").controls.ask("reset", "accounts", None)
    store.of("bank").controls.ask("reset", "transactions", 7)
    first, second = store.of("bank").controls.pending()
    assert (first.kind, first.subject, first.version) == ("reset", "accounts", None)
    assert (second.subject, second.version) == ("transactions", 7)
    make.commit(store, epoch, make.plan(1, controls=(first.id,)))
    assert store.of("bank").controls.pending() == (second,)


def test_g10_g14_what_a_reset_passes_over_is_not_hidden_by_earlier_commits(
    store: SqlStore, epoch: int
) -> None:
    """After a jump in a table's versions, or a new table of its name, only its log knows."""
    late = make.BEGIN + make.HOUR

    def known(bucket: int, first: int, last: int, table_id: str = "id-of-t") -> int | None:
        span = make.a_range("t", first, last)
        span = replace(span, cursor=replace(span.cursor, table_id=table_id))
        make.commit(store, epoch, make.plan(bucket, ranges=(span,)))
        return store.of("bank").buckets.version_at("t", late)

    assert known(1, 0, 3) == 3
    assert known(2, 4, 4) == 4
    assert known(3, 9, 8) is None  # reset to its head: nothing was read
    assert known(4, 9, 9) == 9
    assert known(5, 10, 9, "another") is None
