"""The HTML page of a story: one file, inert, with a picture."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.replay.why.books import day, story
from tests.support.hostile_texts import HOSTILE
from tests.support.parsed_page import Page
from tidegate.engine.replay.why.model import Constituent, Link, Story
from tidegate.engine.replay.why.page import ROWS_MAX, page
from tidegate.engine.replay.why.picture import DOTS_MAX, ENDS_MAX
from tidegate.engine.store import open_store


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("shop")
    with open_store(f"sqlite:///{folder / 'shop.db'}", create=True) as store:
        return story(store, day(folder, store)["settled"][0])


def test_a_page_shows_occurrences_what_is_consumed_and_what_came_of_it(told: Story) -> None:
    text = page(told)
    assert text.count("<circle") == 2
    assert text.count('class="dot c0 used"') == 1
    assert "What is crossed out is consumed: context chronicle." in text
    assert "signal: done" in text
    (said,) = re.findall(r"<li>#\d+ raises noticed: (.*)</li>", text)
    assert re.fullmatch(r"done; begun at .*[^.]\. It raised 1 signal for this firing\.", said)
    assert f"then noted {told.effects[0].firing_id[:8]}" in text
    assert f"<code>tidegate why {told.firing_id}</code>" in text
    assert "https://" not in text
    assert "prefers-color-scheme: dark" in text


def test_a_context_that_keeps_crosses_nothing_out(told: Story) -> None:
    text = page(replace(told, context="restricted"))
    assert "Nothing is consumed: context restricted." in text
    assert 'class="dot c0"' in text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_values_are_inert(told: Story, hostile: str) -> None:
    bad = Constituent(hostile, told.start, row={"a": hostile}, signal=hostile, namespace="client")
    entry = replace(told.entries[0], error=hostile, does=hostile)
    made = replace(
        told,
        key={hostile: hostile},
        constituents=(bad, *told.constituents),
        entries=(entry,),
        sentence=hostile,
        effects=(Link("0" * 32, hostile, hostile),),
        condition=replace(told.condition, text=hostile, values={hostile: hostile}),
    )
    known = {(tag, *sorted(attributes)) for tag, attributes in Page(page(told)).tags}
    assert {(tag, *sorted(attributes)) for tag, attributes in Page(page(made)).tags} <= known
    assert Page(page(made)).scripts == []


def test_a_picture_of_many_says_what_it_leaves_out(told: Story) -> None:
    one = told.constituents[0]
    many = tuple(replace(one, time=told.start + n) for n in range(DOTS_MAX + 5))
    links = tuple(Link(f"{n:032}", "r", "s") for n in range(ENDS_MAX + 4))
    text = page(replace(told, constituents=many, end=told.start + 10_000, effects=links))
    assert text.count("<circle") == DOTS_MAX
    assert f"The first {DOTS_MAX} of {DOTS_MAX + 5} occurrences are drawn" in text
    assert len(re.findall('class="box"', text)) == ENDS_MAX + 1
    assert ".. and 6 more" in text


def test_a_page_of_ten_thousand_says_how_many_it_shows(told: Story) -> None:
    one = told.constituents[0]
    many = tuple(replace(one, time=told.start + n, row={"id": n}) for n in range(10_000))
    links = tuple(Link(f"{n:032}", "r", "s") for n in range(ROWS_MAX + 1))
    text = page(replace(told, constituents=many, end=told.start + 10_000, causes=links))
    assert text.count("<tr>") == 1 + ROWS_MAX
    assert f"<td>id={ROWS_MAX - 1}</td>" in text
    assert text.count("The first 1,000 of 10,000: --format json has all.") == 1
    assert text.count("The first 1,000 of 1,001: --format json has all.") == 1
    whole = page(replace(told, constituents=many[:ROWS_MAX], causes=links[:ROWS_MAX]))
    assert "--format json has all" not in whole


def test_a_page_is_one_file(told: Story, tmp_path: Path) -> None:
    file = tmp_path / "why.html"
    file.write_text(page(told), encoding="utf-8")
    assert re.findall(r"(?:src|href|url)\s*[=(]", file.read_text(encoding="utf-8")) == []
