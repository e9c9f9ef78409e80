"""The versions of a rulebook, and what names them (G24)."""

from __future__ import annotations

import sqlalchemy as sa

from tests.support import make
from tidegate.engine.rulesdata import Rules, ask_to_reload, newest
from tidegate.engine.store import KeptRulebook, SqlStore
from tidegate.engine.store import tables as t

TEXT = "rulebook: bank\nevents: {a: {signal: {k: bigint}}}\nrules: {r: {on: a, per: k}}\n"


def test_g24_a_text_is_a_version_and_buckets_and_entries_name_theirs(store: SqlStore) -> None:
    assert [store.register("bank", text, None) for text in ("x: 1", "x: 1", "x: 2")] == [1, 1, 2]
    epoch = store.acquire("bank", "one", 60)
    make.commit(store, epoch, make.plan(1), entries=[make.entry()])
    assert store.propose("bank", KeptRulebook("x: 3", None)) == 3
    make.commit(store, epoch, make.plan(2), entries=[make.entry()])  # 2 still runs
    assert store.register("bank", "x: 3", None) == 3
    make.commit(store, epoch, make.plan(3), entries=[make.entry()])
    with store._database.read() as connection:
        for table in (t.buckets, t.outbox):
            found = connection.execute(sa.select(table.c.version).order_by(table.c.bucket))
            assert [*found.scalars()] == [2, 2, 3]
    assert store.register("bank", "x: 1", None) == 4  # not the first again: it is newer
    assert [(store.version("bank", n) or KeptRulebook("", None)).text for n in (1, 3, 5)] == [
        "x: 1", "x: 3", "",
    ]  # fmt: skip


def test_g24_rules_as_data_build_on_what_was_asked_for_last(store: SqlStore) -> None:
    store.register("bank", TEXT, None)
    data = Rules(store, "bank")
    assert data.put("s", "{on: r ; a}") == 2
    assert data.put("q", "{on: a}") == 3
    assert data.disable_for("r", {"k": "7"}) == 4
    assert [(r["rule"], r["put"]) for r in data.list()] == [
        ("r", None), ("q", "{on: a}"), ("s", "{on: r ; a}"),
    ]  # fmt: skip
    assert newest(store, "bank").load().rules["r"].disabled_for == ({"k": "7"},)
    assert store.rulebooks()["bank"].added == {}  # nothing of it runs yet
    assert data.enable_for("r", {"k": "7"}) == 5
    assert data.drop("s") == 6
    book = newest(store, "bank").load()
    assert ([*book.rules], book.rules["r"].disabled_for) == (["r", "q"], ())
    assert ask_to_reload(store, book, TEXT + "# more\n") == 7
    assert [*newest(store, "bank").load().rules] == ["r", "q"]  # what was put stays
    asked = [c for c in store.pending_controls("bank") if c.kind == "reload"]
    assert [c.subject for c in asked] == ["2", "3", "4", "5", "6", "7"]
    status = store.status("bank")
    assert (status["version"], len(status["asked_for"])) == (1, 6)
