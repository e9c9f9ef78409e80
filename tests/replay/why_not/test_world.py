"""Why-not over a world in memory: its evidence is what the loop kept."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.replay.memory.told import HEAD, Told
from tests.support.make import BEGIN, SECOND
from tidegate.engine.replay.memory.feed import MemoryFeed


def said(told: Told, rule: str, key: dict[str, object], at: float | None = None) -> str:
    instant = None if at is None else BEGIN + round(at * SECOND)
    found = told.world.why_not(rule, key, instant)
    assert found is not None
    return found


def test_what_is_missing_is_told() -> None:
    told = Told(HEAD + "  a: {on: new ; gone, per: id}")
    told.insert(1, {"id": 7, "amount": 2.5})
    assert said(told, "a", {"id": 7}).startswith("No `gone` came for id 7 between")


def test_a_firing_is_told_as_none() -> None:
    told = Told(HEAD + "  a: {on: new, per: id}")
    told.insert(1, {"id": 7, "amount": 2.5})
    assert told.world.why_not("a", {"id": 7}, BEGIN + SECOND) is None
    assert told.world.why_not("a", {}, None) is None
    assert said(told, "a", {"id": 8}).startswith("No `new` came for id 8")


def test_another_firing_is_asked_for_since_the_last() -> None:
    told = Told(HEAD + "  a: {on: new ; gone, per: id}")
    told.insert(1, {"id": 7, "amount": 2.5}).change(2, deletes=["id = 7"]).at(9)
    assert said(told, "a", {"id": 7}).startswith(
        "Nothing completed `new ; gone` for id 7 after 09:00:02"
    )
    assert told.world.why_not("a", {"id": 7}, BEGIN + 2 * SECOND) is None


def test_rows_that_where_drops_are_found_by_reading_again() -> None:
    text = HEAD.replace("new: {on: insert", "new: {on: insert, where: amount > 2")
    assert text != HEAD
    told = Told(text + "  a: {on: new, per: id}")
    told.insert(1, {"id": 7, "amount": 1}).insert(2, {"id": 8, "amount": 3})
    found = said(told, "a", {"id": 7})
    assert "is no `new`: `where: amount > 2` is not true of it (amount is 1.00)" in found


def test_why_a_condition_could_not_be_asked_and_what_parked_a_rule() -> None:
    told = Told(HEAD + "  a: {on: new, per: id, if: max(10 / id) > 1}")
    told.insert(1, {"id": 0})
    assert "could not be asked: " in (dead := said(told, "a", {"id": 0}))
    assert dead.endswith("it raises on one of its rows.")
    settings = "settings: {firings_per_rule_per_minute_max: 2}\nrules:"
    told = Told(HEAD.replace("rules:", settings) + "  a: {on: new, per: id}")
    told.insert(1, *({"id": n} for n in range(3))).insert(2, {"id": 7})
    assert "parked: " in (stopped := said(told, "a", {"id": 7}, 2))
    assert "(firings_per_rule_per_minute_max)" in stopped


def test_tables_are_read_again_once_for_all_questions_until_more_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Told((HEAD + "  a: {on: new, per: id}").replace("insert", "insert, where: amount > 2"))
    told.insert(1, {"id": 7, "amount": 1})
    reads, read = [], MemoryFeed.read

    def counted(*given: Any) -> pa.Table:
        reads.append(given)
        return read(*given)

    monkeypatch.setattr(MemoryFeed, "read", counted)
    assert [said(told, "a", {"id": id})[:11] for id in (7, 8)] == ["A row for i", "No `new` ca"]
    before = len(reads)
    assert said(told, "a", {"id": 7})
    assert len(reads) == before
    told.insert(2, {"id": 8, "amount": 1})
    assert said(told, "a", {"id": 8}).startswith("A row for id 8")


def test_updates_that_of_drops_are_found_by_reading_again() -> None:
    text = HEAD.replace("changed: {on: update", "changed: {on: update, of: [note]")
    told = Told(text + "  a: {on: changed, per: id}", items=[{"id": 1, "note": "x"}])
    told.change(1, updates=[("id = 1", {"amount": 9})])
    assert "is no `changed`: it changes none of note (note is x)" in said(told, "a", {"id": 1})


def test_a_bound_and_a_condition_are_told() -> None:
    rules = "  a: {on: new ; gone within 5 s, per: id}\n"
    rules += "  b: {on: new, per: id, if: sum(amount) > 100}"
    told = Told(HEAD + rules)
    told.insert(1, {"id": 7, "amount": 2.5}).change(9, deletes=["id = 7"])
    assert "3 s longer than `within 5 s` allows" in said(told, "a", {"id": 7})
    assert "`sum(amount)` is 2.50" in said(told, "b", {"id": 7})
