"""Which targets no rulebook of a store watches (G16)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate import rules
from tidegate.engine.app.unread import Unread
from tidegate.engine.store import KeptRulebook, SqlStore, open_store
from tidegate.engine.store.versions import Versions


def book(name: str, tables: str, watched: str) -> str:
    return (
        f"rulebook: {name}\ntables: {{{tables}}}\n"
        f"events: {{e: {{on: insert, table: {watched}}}}}\n"
        "rules: {r: {on: e}}\n"
    )


MINE = "t: {path: /lake/t}, out: {path: /lake/out}, sold: {table: shop.sold}"


@pytest.fixture
def store(tmp_path: Path, empty_store: Path) -> Iterator[SqlStore]:
    file = shutil.copy(empty_store, tmp_path / "store.db")
    with open_store(f"sqlite:///{file}", create=False) as opened:
        yield opened


def unread(store: SqlStore, *others: str, mine: str = MINE) -> Unread:
    for number, text in enumerate(others):
        store.of(f"other{number}").versions.register(text, None)
    store.of("mine").versions.register("rulebook: [", None)  # an older text of the one that asks
    return Unread(store, rules.load(book("mine", mine, "t")))


@pytest.mark.parametrize(
    ("tables", "free"),
    [
        ("u: {path: /lake/other}", True),
        ("u: {path: /lake/out}", False),
        ("u: {path: /lake/out/.}", False),
        ("u: {path: 's3://lake/x/../out/.'}", False),
        ("u: {path: 's3://lake/other'}", True),
        ("u: {path: ../lake/OUT/}", False),  # one table may be written in several ways
        ("u: {table: bank.other}", False),  # it may be at any path
    ],
)
def test_g16_a_target_is_unread_if_no_rulebook_watches_a_table_like_it(
    store: SqlStore, tables: str, free: bool
) -> None:
    assert unread(store, book("other", tables, "u"))("out") is free


@pytest.mark.parametrize("written", ["{lake}/out", "{lake}/./in/../out/.", "file:{lake}/out/"])
def test_g16_a_target_is_known_by_whatever_path_leads_to_it(
    store: SqlStore, tmp_path: Path, written: str
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "out")
    mine = f"t: {{path: /t}}, out: {{path: {tmp_path}/link}}"
    other = book("other", f"u: {{path: '{written.format(lake=tmp_path)}'}}", "u")
    assert not unread(store, other, mine=mine)("out")


def test_g16_own_event_types_count_and_names_in_the_catalog_may_be_any_path(
    store: SqlStore,
) -> None:
    asked = unread(store)
    assert [asked(name) for name in ("out", "t", "sold", "undeclared")] == [
        True, False, False, False,
    ]  # fmt: skip


def test_g16_a_rulebook_that_cannot_be_read_may_watch_any_table(store: SqlStore) -> None:
    assert not unread(store, "rulebook: [")("out")


def test_g16_another_rulebook_may_come_and_change_at_any_time(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its text is read when it is new, and not each time that somebody asks."""
    read = list[str]()
    running = Versions.running

    def counted(self: Versions) -> KeptRulebook:
        read.append(self.rulebook)
        return running(self)

    monkeypatch.setattr(Versions, "running", counted)
    asked = unread(store)
    assert asked("out")
    for tables, free in (("u: {path: /lake/out}", False), ("u: {path: /lake/u}", True)):
        store.of("late").versions.register(book("late", tables, "u"), None)
        assert [asked("out"), asked("out")] == [free, free]
    assert read == ["late", "late"]
