"""What was edited of a rule since it fired, and what people read of long values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.replay.why.books import listed, story
from tests.replay.why.stored import run_case
from tidegate.engine.replay.why.model import Story, as_json
from tidegate.engine.replay.why.page import page
from tidegate.engine.replay.why.text import lines
from tidegate.engine.store import SqlStore, open_store

NEAR = """\
rulebook: near
tables: {t: {path: ./t, key: [id]}}
events:
  a: {on: insert, table: t, where: x > 3}
  z: {signal: {id: string, x: bigint}}
rules:
  r:
    on: a ; z within 1 h
    where: z.x > a.x
    per: id
    do: [{webhook: {url: "https://a.example/one", body: {id: id}}}]
  other: {on: a}
"""
LONG = "w" * 5_000
NEAR_CASES = f"""\
rulebook: near.yaml
schemas: {{t: "id STRING, x BIGINT"}}
tests:
- name: one
  steps:
  - {{at: 2026-03-02T09:00:00, insert: {{t: [{{id: {LONG}, x: 5}}]}}}}
  - {{after: 1 min, signal: {{z: {{id: {LONG}, x: 9}}}}}}
"""


def text_of(told: Story) -> str:
    return "\n".join(lines(told, 200))


@pytest.fixture
def near(tmp_path: Path) -> Iterator[tuple[SqlStore, Mapping[str, Any]]]:
    """A firing whose key is long, of a rule with a `where`."""
    (tmp_path / "near.yaml").write_text(NEAR)
    (file := tmp_path / "near.test.yaml").write_text(NEAR_CASES)
    with open_store(f"sqlite:///{tmp_path / 'near.db'}", create=True) as store:
        run_case(file, "one", store)
        yield store, listed(store, "near")["r"][0]


def test_whatever_was_edited_of_a_rule_is_an_edit(
    near: tuple[SqlStore, Mapping[str, Any]], tmp_path: Path
) -> None:
    store, firing = near
    assert "where `z.x > a.x`" in (story(store, firing).sentence or "")
    edits = {
        "z.x > a.x": "z.x > a.x + 1",
        "where: x > 3": "where: x > 4",
        "a.example/one": "a.example/two",
        "per: id\n    do": "per: id\n    coupling: detached\n    do",
    }
    for then, since in edits.items():
        store.of("near").versions.register(NEAR.replace(then, since), str(tmp_path / "near.yaml"))
        told = story(store, firing)
        assert told.edited is not None, since
        same = told.edited.sentence == told.sentence
        assert ("differs in what this sentence leaves out" in text_of(told)) is same
    for alike in (f"# moved\n{NEAR}", NEAR.replace("  other: {on: a}", "  other: {on: z}")):
        store.of("near").versions.register(alike, str(tmp_path / "near.yaml"))
        assert (story(store, firing).edited, story(store, firing).notes) == (None, ())
    store.of("near").versions.register(NEAR.replace("rules:", "rules: ["), None)
    (note,) = story(store, firing).notes
    assert note.startswith("Whether the rule was edited since is not known: version ")


def test_long_values_are_shortened_where_people_read(
    near: tuple[SqlStore, Mapping[str, Any]],
) -> None:
    store, firing = near
    told = story(store, firing)
    assert "w.. (5,000 characters)" in text_of(told)
    assert max(len(text_of(told)), len(page(told))) < 2 * len(LONG)
    assert as_json(told)["key"] == {"id": LONG}
