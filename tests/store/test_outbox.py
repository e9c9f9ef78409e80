"""Entries and the firings they run from (G16, G22)."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tests.support import make
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.values import Signal
from tidegate.engine.store import SqlStore, blobs, outbox
from tidegate.rules.errors import EngineError


@pytest.fixture
def url(store_url: str) -> str:
    """Both databases, in the short suite, too."""
    return store_url


@pytest.fixture
def epoch(store: SqlStore) -> int:
    return store.of("bank").lease.acquire("one", 60)


def due(store: SqlStore, epoch: int, bucket: int = 1, rules: str = "a") -> tuple[Entry, ...]:
    entries = [make.entry(rule, order) for order, rule in enumerate(rules)]
    fired = [make.firings(rule, bucket=bucket) for rule in sorted(set(rules))]
    return make.commit(store, epoch, make.plan(bucket), fired=fired, entries=entries)


def test_g16_entries_are_numbered_in_their_order_over_all_rulebooks(
    store: SqlStore, epoch: int
) -> None:
    mixed = [make.entry("b", order=1), make.entry("c", order=2), make.entry("a", order=0)]
    first = make.commit(store, epoch, make.plan(), entries=mixed)
    assert [(e.number, e.rule, e.bucket) for e in first] == [(1, "a", 1), (2, "b", 1), (3, "c", 1)]
    other = store.of("stock").lease.acquire("one", 60)
    entries = make.commit(store, other, make.plan(rulebook="stock"), entries=[make.entry()])
    assert [entry.number for entry in entries] == [4]
    assert store.of("bank").outbox.open_entries() == first
    assert store.of("stock").outbox.open_entries() == entries


def test_an_entry_comes_back_as_it_was(store: SqlStore, epoch: int) -> None:
    fired = make.firings()
    one = make.entry(
        kind="signal",
        target=None,
        text='{"event": "é"}',
        firing_ids=(make.hex_ids(fired)[1],),
        depth=3,
        action=1,
        app_id="tidegate/s/bank/blocked",
        target_version=7,
        details="all that was said",
        fate="unknown",
    )
    dead = make.entry(order=1, state="dead", error="cascade too deep")
    numbered = make.commit(store, epoch, make.plan(), fired=[fired], entries=[one, dead])
    assert numbered == (
        make.altered(one, number=1, bucket=1, place=1),
        make.altered(dead, number=2, bucket=1, place=2),
    )
    assert store.of("bank").outbox.open_entries() == numbered[:1]  # dead from the start
    assert [store.of("bank").outbox.entry(number) for number in (1, 2, 3)] == [*numbered, None]
    assert (store.of("stock").outbox.entry(1), store.last_entry()) == (None, 2)


def test_numbers_are_not_used_twice_after_a_purge(store: SqlStore, epoch: int) -> None:
    (entry,) = due(store, epoch)
    store.of("bank", epoch).outbox.settle([make.outcome(entry, "done", 1)])
    assert make.purge(store, epoch, make.BEGIN + 9 * make.HOUR) > 0
    (again,) = due(store, epoch, 2)
    assert again.number == entry.number + 1


def test_the_stored_firings_are_those_that_were_committed(store: SqlStore, epoch: int) -> None:
    fired = make.firings("a", 5)
    make.commit(store, epoch, make.plan(), fired=[fired, make.firings("b", 1)])
    found = store.of("bank").outbox.firings(1, "a")
    assert found.rule == "a"
    assert found.firings.equals(fired.firings)
    assert found.relation.equals(fired.relation)
    with pytest.raises(EngineError, match="rule 'a' of 'bank' has no stored firings in bucket 2"):
        store.of("bank").outbox.firings(2, "a")


def test_150_000_firings_come_back_equal(store: SqlStore, epoch: int) -> None:
    many = make.firings("a", 150_000)
    make.commit(store, epoch, make.plan(), fired=[many], entries=[make.entry("a")])
    found = store.of("bank").outbox.firings(1, "a")
    assert found.firings.equals(many.firings)
    assert found.relation.equals(many.relation)
    one = make.hex_ids(many)[123_456]
    assert make.find_firing(store, "bank", one) == (1, "a")
    assert [f["firing_id"] for f in store.of("bank").firings.listed(limit=1)] == make.hex_ids(many)[
        -1:
    ]


def test_a_done_entry_stays_done(store: SqlStore, epoch: int) -> None:
    first, second = due(store, epoch, rules="ab")
    store.of("bank", epoch).outbox.settle([make.outcome(first, "done", 1)])
    assert [entry.rule for entry in store.of("bank").outbox.open_entries()] == ["b"]
    store.of("bank", epoch).outbox.settle([make.outcome(first, "pending", 2, "late news")])
    assert store.of("bank").outbox.open_entries() == (second,)
    shown = {e["number"]: e for f in store.of("bank").firings.listed() for e in f["entries"]}
    assert shown[first.number] == {"number": 1, "state": "done", "attempts": 1, "error": None}


def test_a_failed_entry_stays_open_with_its_error(store: SqlStore, epoch: int) -> None:
    (entry,) = due(store, epoch)
    store.of("bank", epoch).outbox.settle([make.outcome(entry, "pending", 3, "table is gone")])
    (left,) = store.of("bank").outbox.open_entries()
    assert (left.number, left.progress.attempts, left.progress.error) == (
        entry.number,
        3,
        "table is gone",
    )
    store.of("bank", epoch).outbox.settle([make.outcome(left, "held", 4, "table is gone")])
    (held,) = store.of("bank").outbox.open_entries()
    assert (held.number, held.state, held.progress.attempts) == (entry.number, "held", 4)
    store.of("bank", epoch).outbox.settle([make.outcome(held, "done", 5)])
    assert store.of("bank").outbox.open_entries() == ()


def test_an_error_may_hold_what_no_database_takes(store: SqlStore, epoch: int) -> None:
    (entry,) = due(store, epoch)
    store.of("bank", epoch).outbox.settle(
        [make.outcome(entry, "pending", 1, "bad value 'a\0b\ud800é'")]
    )
    (left,) = store.of("bank").outbox.open_entries()
    assert left.progress.error == "bad value 'a?b?é'"


def test_g21_a_stale_engine_settles_nothing(store: SqlStore, epoch: int) -> None:
    (entry,) = due(store, epoch)
    store.of("bank", epoch).lease.release()
    store.of("bank").lease.acquire("two", 60)
    with pytest.raises(EngineError) as caught:
        store.of("bank", epoch).outbox.settle(
            [make.outcome(entry, "done", 1, signals=(make.signal(),))]
        )
    assert caught.value.code == "lease-lost"
    assert store.of("bank").outbox.open_entries() == (entry,)
    assert make.unplaced(store) == ()


def test_g22_signals_of_an_action_are_raised_once_with_their_depth(
    store: SqlStore, epoch: int
) -> None:
    (entry,) = due(store, epoch)
    raised = (make.signal("e1-0", depth=2), make.signal("e1-1", depth=2))
    for _ in range(2):  # done again after a crash
        store.of("bank", epoch).outbox.settle([make.outcome(entry, "done", 1, signals=raised)])
    assert make.unplaced(store) == raised


def test_g22_a_failed_action_raises_nothing(store: SqlStore, epoch: int) -> None:
    (entry,) = due(store, epoch)
    store.of("bank", epoch).outbox.settle(
        [make.outcome(entry, "pending", 1, "no", signals=(make.signal(),))]
    )
    assert make.unplaced(store) == ()


def test_g22_an_id_that_is_taken_does_not_swallow_an_actions_signal(
    store: SqlStore, epoch: int
) -> None:
    store.of("bank").signals.raise_signal(make.signal("e1-0"))
    (entry,) = due(store, epoch)
    raised = (make.signal("e1-0", depth=2), make.signal("e1-1", depth=2))
    with pytest.raises(EngineError, match="entry 1 of rule 'a'"):
        store.of("bank", epoch).outbox.settle([make.outcome(entry, "done", 1, signals=raised)])
    assert store.of("bank").outbox.open_entries() == (entry,)
    assert [signal.id for signal in make.unplaced(store)] == ["e1-0"]


def test_firings_without_rows_are_not_kept(store: SqlStore, epoch: int) -> None:
    make.commit(store, epoch, make.plan(), fired=[make.firings(count=0)])
    assert list(store.of("bank").firings.listed()) == []
    with pytest.raises(EngineError, match="rule 'blocked' of 'bank' has no stored firings"):
        store.of("bank").outbox.firings(1, "blocked")


def test_carried_and_fired_tables_keep_types_slices_and_dictionaries(
    store: SqlStore, epoch: int
) -> None:
    words = pa.chunked_array(
        [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c"]).dictionary_encode()]
    )
    table = pa.table({"account_id": words, "n": pa.chunked_array([[1], [2, 3]])})
    table = table.replace_schema_metadata({"version": "4"}).slice(1)
    fired = make.firings(count=2)
    fired = replace(fired, firings=fired.firings.set_column(1, "account_id", table["account_id"]))
    make.commit(store, epoch, make.plan(), fired=[fired])
    found = store.of("bank").outbox.firings(1, "blocked").firings
    assert found.schema.field("account_id").type == words.type
    assert found["account_id"].to_pylist() == ["b", "c"]


@pytest.mark.parametrize("state", ["dead", "skipped"])
def test_g23_a_failure_is_told_of_the_firings_that_an_outcome_leaves(
    store: SqlStore, epoch: int, state: str
) -> None:
    """Three were tried at once: one is done, one is refused, one is left."""
    fired = make.firings("a", 3)
    ids = make.hex_ids(fired)
    (entry,) = make.commit(store, epoch, make.plan(), fired=[fired], entries=[make.entry()])
    fails = tuple(Signal(f"{one}-failed", "failed a", {}, make.BEGIN, 1) for one in ids)
    refused = make.altered(entry, number=0, firing_ids=ids[:1], state="dead")
    done = make.altered(entry, number=0, firing_ids=ids[1:2], state="done")
    outcome = make.outcome(
        entry, state, 1, firing_ids=ids[2:], fails=fails, successors=(done, refused)
    )
    store.of("bank", epoch).outbox.settle([outcome])
    told = store.of("bank").signals.unplaced(["failed a"], make.BEGIN - 1, 9).signals
    assert sorted(signal.id for signal in told) == sorted(f"{ids[n]}-failed" for n in (0, 2))


def test_large_tables_are_stored_as_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"a": range(100), "b": ["x"] * 100})
    small = blobs.table_to_bytes(table)
    monkeypatch.setattr(blobs, "_LARGE_BYTES", 1)
    assert blobs.table_to_bytes(table) == small


def test_many_firings_are_stored_a_few_rules_at_a_time(
    store: SqlStore, epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "FIRINGS_AT_ONCE", 6)
    given: list[int] = []
    monkeypatch.setattr(outbox, "give_back", lambda: given.append(1))
    some = [make.firings(rule, 3) for rule in "abcde"]
    make.commit(store, epoch, make.plan(), fired=some)
    assert len(given) == 3 + 1  # two rules a statement; then ids are sorted
    stored = [store.of("bank").outbox.firings(1, rule) for rule in "abcde"]
    assert [one.firings for one in stored] == [one.firings for one in some]
    given.clear()
    make.commit(store, epoch, make.plan(2), fired=[make.firings("a", 6, 2)])
    assert not given
