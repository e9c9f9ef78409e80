"""A commit that an action of one rulebook made is an event of another rulebook of the store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support import make
from tidegate import rules
from tidegate.engine.core.entries import Effect
from tidegate.engine.core.values import Firings
from tidegate.engine.replay.why import neighbours
from tidegate.engine.replay.why.ask import why, why_commit
from tidegate.engine.replay.why.commit import lines as commit_lines
from tidegate.engine.replay.why.model import as_json
from tidegate.engine.replay.why.neighbours import Neighbours
from tidegate.engine.replay.why.text import lines
from tidegate.engine.replay.why.texts import read
from tidegate.engine.store import KeptRulebook, SqlStore, open_store
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook

BANK = """\
rulebook: bank
tables: {ledger: {path: /lake/log}}
events: {e: {signal: {}}}
rules: {pay: {on: e, do: [{sql: INSERT INTO ledger SELECT 1}]}}
"""
READER = """\
rulebook: %s
tables: {%s: {path: /lake/%s}}
events: {withdrawal: {on: insert, table: %s}}
rules: {audited: {on: withdrawal}}
"""


def read_by(rulebook: str, version: int) -> Firings:
    """A firing of a rulebook's `audited`: it has rows that a version of its table brought."""
    fired = make.firings("audited", 1, bucket=len(rulebook), depth=pa.array([2], pa.int32()))
    sources = {
        "version": pa.array([version] * 2, pa.int64()),
        "signal": pa.array([None] * 2, pa.string()),
    }
    return replace(fired, sources=pa.table(sources))


@pytest.fixture
def store(tmp_path: Path, empty_store: Path) -> Iterator[SqlStore]:
    """Rulebook `bank` has written version 12 of a table. `audit` and `apart` read a version 12:
    the one of this table, the other of another."""
    url = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'bank.db')}"
    with open_store(url, create=False) as store:
        store.of("bank").versions.register(BANK, "/bank.yaml")
        epoch = store.of("bank").lease.acquire("one", 60)
        done = make.entry("pay", target="ledger")
        fired = make.firings("pay", 2)
        (entry,) = make.commit(store, epoch, make.plan(), fired=[fired], entries=[done])
        settled = make.outcome(entry, "done", 1, effect=Effect(12, 2), settled_at=make.BEGIN)
        store.of("bank", epoch).outbox.settle([settled])
        for rulebook, table, last in (("audit", "entries", "log/"), ("apart", "ledger", "log2")):
            text = READER % (rulebook, table, last, table)
            store.of(rulebook).versions.register(text, f"/{rulebook}.yaml")
            epoch = store.of(rulebook).lease.acquire("two", 60)
            plan = make.plan(rulebook=rulebook)
            make.commit(store, epoch, plan, fired=[read_by(rulebook, 12)])
        yield store


def test_a_commit_is_followed_to_the_rulebook_that_reads_it_and_back(store: SqlStore) -> None:
    (audited,) = make.hex_ids(read_by("audit", 12))
    paid = make.hex_ids(make.firings("pay", 2))
    story = why(store, "audit", audited)
    assert [(one.firing_id, one.rule, one.rulebook) for one in story.causes] == [
        (one, "pay", "bank") for one in paid
    ]
    assert f"  firing {paid[0][:8]} of rule pay of rulebook bank, by entries version 12" in [
        *lines(story, 100)
    ]
    assert as_json(story)["links"][paid[0]]["rulebook"] == "bank"
    assert "No entry" not in " ".join(story.notes)
    for one in paid:
        (effect,) = why(store, "bank", one).effects
        assert (effect.firing_id, effect.rulebook) == (audited, "audit")
        assert effect.via == "ledger version 12"


def test_a_location_may_be_put_together_of_variables(store: SqlStore) -> None:
    text = (READER % ("parts", "entries", "@", "entries")).replace(
        "/lake/@", '"/lake/${one}${two}"'
    )
    text += "vars: {one: lo, two: g}\n"
    assert "log" not in text
    store.of("parts").versions.register(text, "/parts.yaml")
    table = rules.load(BANK).tables["ledger"]
    assert [one.book.name for one in Neighbours(store, "bank").of(table)] == ["audit", "parts"]


def test_rulebooks_are_read_once_for_a_table(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def counted(kept: KeptRulebook) -> Rulebook | None:
        asked.append(kept.file)
        return read(kept)

    monkeypatch.setattr(neighbours, "read", counted)
    table = rules.load(BANK).tables["ledger"]
    others = Neighbours(store, "bank")
    found = [[one.book.name for one in others.of(table)] for _ in range(3)]
    assert found == [["audit"]] * 3
    assert asked == ["/apart.yaml", "/audit.yaml"]


def test_a_table_of_another_place_is_another_table(store: SqlStore) -> None:
    (apart,) = make.hex_ids(read_by("apart", 12))
    story = why(store, "apart", apart)
    assert story.causes == ()
    (note,) = story.notes
    assert note.startswith("An action caused it, but no entry that this store still has")


def test_a_commit_leads_to_its_firings_from_whichever_rulebook(store: SqlStore) -> None:
    paid = make.hex_ids(make.firings("pay", 2))
    (own,) = why_commit(store, "bank", "ledger@12")["entries"]
    assert (own["rulebook"], own["firings"]) == ("bank", paid)
    for name in ("audit", None):
        found = why_commit(store, name, "entries@12")
        assert (found["rulebook"], found["entries"]) == ("audit", [own])
        (said, *_) = commit_lines(found, 200)
        assert said.startswith("Entry 1 of rule pay of rulebook bank made version 12 of entries")
    with pytest.raises(EngineError, match="which rulebook is meant"):
        why_commit(store, None, "ledger@12")  # `apart` calls another one so
