"""Why something fired that holds, and why it was resolved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.replay.why.books import listed, story
from tests.replay.why.stored import run_case
from tidegate.engine.replay.why.page import page
from tidegate.engine.replay.why.text import lines
from tidegate.engine.store import SqlStore, open_store

BOOK = """\
rulebook: plant
tables: {readings: {path: ./readings}}
events:
  over: {on: insert, table: readings, where: celsius > 80}
  under: {on: insert, table: readings, where: celsius <= 80}
rules:
  hot: {on: {holds: over, until: under, for: 10 min, keep: 5 min}, per: sensor}
  cooled: {on: resolved hot, per: sensor}
"""
CASES = """\
rulebook: plant.yaml
schemas: {readings: "sensor STRING, celsius DOUBLE"}
tests:
- name: day
  steps:
  - {at: 2026-03-02T08:00:00}
  - {at: 2026-03-02T08:01:00, insert: {readings: [{sensor: a, celsius: 90}]}}
  - {at: 2026-03-02T08:02:00, insert: {readings: [{sensor: b, celsius: 90}]}}
  - {at: 2026-03-02T08:05:00, insert: {readings: [{sensor: a, celsius: 85}]}}
  - {at: 2026-03-02T08:20:00, insert: {readings: [{sensor: a, celsius: 70}]}}
  - {until: 2026-03-02T09:00:00}
- name: again
  steps:
  - {at: 2026-03-02T08:00:00}
  - {at: 2026-03-02T08:01:00, insert: {readings: [{sensor: a, celsius: 90}]}}
  - {at: 2026-03-02T08:20:00, insert: {readings: [{sensor: a, celsius: 70}]}}
  - {at: 2026-03-02T08:30:00, insert: {readings: [{sensor: a, celsius: 90}]}}
  - {at: 2026-03-02T08:50:00, insert: {readings: [{sensor: a, celsius: 70}]}}
  - {until: 2026-03-02T09:00:00}
"""


def ran(folder: Path, case: str, store: SqlStore) -> None:
    (folder / "plant.yaml").write_text(BOOK)
    file = folder / "plant.test.yaml"
    file.write_text(CASES)
    run_case(file, case, store)


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    folder = tmp_path_factory.mktemp("plant")
    with open_store(f"sqlite:///{folder / 'plant.db'}", create=True) as store:
        ran(folder, "day", store)
        yield store


def test_the_rows_of_what_fired_and_of_its_end(day: SqlStore) -> None:
    found = listed(day, "plant")
    hot = story(day, found["hot"][0])
    assert (hot.start, hot.end) == (at("08:01:00"), at("08:11:00"))
    assert [(one.event, one.version) for one in hot.constituents] == [("over", 1), ("over", 3)]
    (cooled,) = found["cooled"]
    told = story(day, cooled)
    assert (told.start, told.end) == (at("08:25:00"), at("08:25:00"))
    assert [(one.event, one.version) for one in told.constituents] == [("under", 4)]
    assert "it waited 5 min" in "\n".join(lines(told, 100))


def test_a_window_has_no_context_and_consumes_nothing(day: SqlStore) -> None:
    told = story(day, listed(day, "plant")["hot"][0])
    assert (told.window, told.context) == (True, None)
    text = page(told)
    assert "It takes all its rows, and consumes none." in text
    assert "context cumulative" not in text
    assert text.count("<circle") == 2
    assert not re.search(r'class="dot c\d+ used"', text)


def test_an_end_comes_of_the_firing_that_it_ends(day: SqlStore) -> None:
    """And not of that of another key."""
    found = listed(day, "plant")
    other, hot = sorted(found["hot"], key=lambda firing: firing["key"]["sensor"], reverse=True)
    (cooled,) = found["cooled"]
    causes = [(link.firing_id, link.via) for link in story(day, cooled).causes]
    assert causes == [(hot["firing_id"], "resolved hot")]
    effects = [(link.firing_id, link.via) for link in story(day, hot).effects]
    assert effects == [(cooled["firing_id"], "resolved hot")]
    assert story(day, other).effects == ()


def test_each_end_comes_of_the_last_firing_before_it(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'plant.db'}", create=True) as store:
        ran(tmp_path, "again", store)
        found = listed(store, "plant")
        hot, cooled = (
            sorted(found[rule], key=lambda one: one["end"]) for rule in ("hot", "cooled")
        )
        assert [one["end"][11:16] for one in (*hot, *cooled)] == [
            "08:11",
            "08:40",
            "08:25",
            "08:55",
        ]
        for held, resolved in zip(hot, cooled, strict=True):
            (cause,) = story(store, resolved).causes
            (effect,) = story(store, held).effects
            assert (cause.firing_id, effect.firing_id) == (
                held["firing_id"],
                resolved["firing_id"],
            )


def at(time: str) -> int:
    moment = datetime.fromisoformat(f"2026-03-02T{time}+00:00")
    return int(moment.timestamp()) * 1_000_000
