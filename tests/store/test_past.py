"""What a store tells of past buckets, on both databases."""

from __future__ import annotations

import pytest

from tests.replay.why_not.stored import Stored, told
from tests.support.make import BEGIN, SECOND
from tidegate.engine.store import SqlStore
from tidegate.engine.store import past as past_module

TEXT = """\
rulebook: shop
timezone: UTC
tables: {items: {path: /items, key: [id]}, out: {path: /out}}
events:
  new: {on: insert, table: items}
  told: {signal: {k: bigint}}
rules:
  r: {per: {new: id, told: k}, on: new ; told, do: [{sql: INSERT INTO out SELECT id FROM event}]}
"""


@pytest.fixture
def run(store: SqlStore) -> Stored:
    """Five buckets with a row each, then one that disables `r`, and one with a signal."""
    run = Stored(store, TEXT)
    for n in range(1, 6):
        run.insert(10 * n, {"id": n}).at(10 * n + 0.5)
    run.signal(55, "told", k=1).at(56)
    run.ledger.controls.ask("disable", "r", asked_by="ada@box")
    run.at(60)
    return run.signal(70, "told", k=2).at(71)


def test_buckets_are_told_newest_first_page_by_page(
    run: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_module, "PAGE_BUCKETS", 3)
    past = run.ledger.past
    found = list(past.back_from(None))
    numbers = [one.number for one in found]
    assert numbers == [*range(numbers[0], 0, -1)]
    assert [one.number for one in past.back_from(4)] == [4, 3, 2, 1]
    read = [
        (span.first, span.last)
        for one in reversed(found)
        for span in one.ranges
        if span.first <= span.last
    ]
    assert read == [(n, n) for n in range(1, 6)]
    (switched,) = [one for one in found if one.switches]
    assert [(c.kind, c.subject, c.asked_by) for c in switched.switches] == [
        ("disable", "r", "ada@box")
    ]
    first, last = numbers[-1], numbers[0]
    instants = past.instants(["items"], first, last)
    assert sorted(v for known in instants.values() for v in known) == [1, 2, 3, 4, 5]
    assert [one.fields for one in past.signals(["told"], first, last)] == [{"k": 1}, {"k": 2}]
    assert past.signals([], first, last) == ()


@pytest.mark.parametrize("page", [1, 500])
def test_the_bucket_that_reaches_an_instant(
    run: Stored, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_module, "PAGE_BUCKETS", page)
    past = run.ledger.past
    for one in past.back_from(None):
        assert past.reaching(one.watermark) == one.number
        assert past.reaching(one.watermark + 1) in (one.number + 1, None)
    assert past.reaching(BEGIN + 10**6 * SECOND) is None


def test_a_standing_says_what_stops_rules(run: Stored) -> None:
    standing = run.ledger.past.standing()
    assert standing.stops["r"].why == "it was disabled"
    assert standing.activations["r"] == BEGIN + 999
    assert standing.cursors["items"].version == 5
    assert run.store.of("other").past.standing().seen is None


def test_an_answer_comes_from_the_store_and_the_tables(run: Stored) -> None:
    assert run.why_not("r", {"id": 1}, 60).fired is not None
    assert told(run.why_not("r", {"id": 2}, 50))[1].startswith("No `told` came for id 2")
    assert "(asked for by ada@box)" in told(run.why_not("r", {"id": 2}, 70, 65))[1]
