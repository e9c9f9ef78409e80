"""Rules that only count, and keys for which a rule does not fire."""

from __future__ import annotations

import pytest

from tests.support.bench import BOOK, Bench
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import InputError


def test_a_dry_rule_fires_and_does_nothing(store: SqlStore) -> None:
    bench = Bench(store, 2, BOOK.replace("a: {on: row,", "a: {on: row, mode: dry,"))
    bench.drain()
    assert {rule for rule, _ in bench.sink.entries} == {"b"}
    shown = [(f["rule"], len(f["entries"])) for f in store.of("loop").firings.listed()]
    assert sorted(shown) == [("a", 0), ("a", 0), ("b", 1), ("b", 1)]


def test_a_rule_does_not_fire_for_the_keys_that_it_is_disabled_for(store: SqlStore) -> None:
    text = BOOK.replace("a: {on: row,", "a: {on: row, per: id, disabled_for: [1, {id: 3}],")
    bench = Bench(store, 4, text)
    bench.drain()
    assert sorted(
        f["key"]["id"] for f in store.of("loop").firings.listed() if f["rule"] == "a"
    ) == [0, 2]
    assert sum(1 for f in store.of("loop").firings.listed() if f["rule"] == "b") == 4
    assert {n for (rule, n) in bench.sink.effects if rule == "a"} == {0, 2}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("per: id, disabled_for: [x]", "not all are of the type bigint"),
        ("per: id, disabled_for: [{di: 1}]", "write {id: ..}"),
        ("disabled_for: [1]", "a rule without per: has no keys"),
    ],
)
def test_what_is_no_key_of_the_rule_is_refused(store: SqlStore, given: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Bench(store, 1, BOOK.replace("a: {on: row,", f"a: {{on: row, {given},"))
