"""Which targets no rulebook of a store watches (G16)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tidegate import rules
from tidegate.engine.app.unread import Unread
from tidegate.engine.store import KeptRulebook
from tidegate.rules.model import Rulebook


def book(name: str, tables: str, watched: str) -> str:
    return (
        f"rulebook: {name}\ntables: {{{tables}}}\n"
        f"events: {{e: {{on: insert, table: {watched}}}}}\n"
        "rules: {r: {on: e}}\n"
    )


MINE = "t: {path: /lake/t}, out: {path: /lake/out}, sold: {table: shop.sold}"


class Store:
    """The rulebooks of a store, beside the one that asks."""

    def __init__(self, *texts: str) -> None:
        kept = [KeptRulebook(text, None, version=1) for text in texts]
        self.kept = {f"other{number}": one for number, one in enumerate(kept)}
        self.kept["mine"] = KeptRulebook("rulebook: [", None)  # an older text of the one that asks

    def rulebooks(self) -> Mapping[str, KeptRulebook]:
        return self.kept


def unread(*others: str, mine: str = MINE) -> Unread:
    found: Rulebook = rules.load(book("mine", mine, "t"))
    store: Any = Store(*others)
    return Unread(store, found)


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
    tables: str, free: bool
) -> None:
    assert unread(book("other", tables, "u"))("out") is free


@pytest.mark.parametrize("written", ["{lake}/out", "{lake}/./in/../out/.", "file:{lake}/out/"])
def test_g16_a_target_is_known_by_whatever_path_leads_to_it(tmp_path: Path, written: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "out")
    mine = f"t: {{path: /t}}, out: {{path: {tmp_path}/link}}"
    other = book("other", f"u: {{path: '{written.format(lake=tmp_path)}'}}", "u")
    assert not unread(other, mine=mine)("out")


def test_g16_own_event_types_count_and_names_in_the_catalog_may_be_any_path() -> None:
    asked = unread()
    assert [asked(name) for name in ("out", "t", "sold", "undeclared")] == [
        True, False, False, False,
    ]  # fmt: skip


def test_g16_a_rulebook_that_cannot_be_read_may_watch_any_table() -> None:
    assert not unread("rulebook: [")("out")


def test_g16_another_rulebook_may_come_and_change_at_any_time() -> None:
    asked = unread()
    assert asked("out")
    kept: Any = asked.store.rulebooks()
    kept["late"] = KeptRulebook(book("late", "u: {path: /lake/out}", "u"), None, version=1)
    assert not asked("out")
    kept["late"] = KeptRulebook(book("late", "u: {path: /lake/u}", "u"), None, version=2)
    assert asked("out")
