"""The HTML page of why-not: one file, inert, with the ladder and a time line."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.replay.why_not.stored import Stored
from tests.support.hostile_texts import HOSTILE
from tests.support.parsed_page import Page
from tidegate.engine.replay.why_not.answer import WhyNot
from tidegate.engine.replay.why_not.evidence import Rung
from tidegate.engine.replay.why_not.ladder import RUNGS
from tidegate.engine.replay.why_not.page import page
from tidegate.engine.replay.why_not.timeline import MARKS_MAX, Mark
from tidegate.engine.store import SqlStore, open_store

TEXT = """\
rulebook: shop
timezone: Europe/Berlin
tables: {items: {path: /items, key: [id]}, out: {path: /out}}
events:
  new: {on: insert, table: items, where: amount > 5}
  told: {signal: {k: bigint}}
rules:
  r: {per: {new: id, told: k}, on: new ; told within 1 min}
  alone: {per: k, on: told}
"""


@pytest.fixture(scope="module")
def store(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    file = shutil.copy(empty_store, tmp_path_factory.mktemp("page") / "why.db")
    with open_store(f"sqlite:///{file}", create=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def run(store: SqlStore) -> Stored:
    run = Stored(store, TEXT)
    run.insert(10, {"id": 7, "amount": 9}).insert(20, {"id": 7, "amount": 1})
    return run.signal(100, "told", k=7).signal(101, "told", k=8).at(110)


@pytest.fixture(scope="module")
def answer(run: Stored) -> WhyNot:
    return run.why_not("r", {"id": 7})


def test_a_page_shows_the_ladder_the_evidence_and_what_came(answer: WhyNot) -> None:
    text = page(answer)
    assert "Why it did not fire: r, id 7" in text
    assert "(Europe/Berlin)" in text
    rungs = re.findall(r'class="rung (\w+)"', text)
    assert rungs == ["yes"] * 5 + ["no"] + ["open"] * (len(RUNGS) - 6)
    assert "30 s longer than `within 1 min` allows" in text
    assert text.count('class="came ') == 2
    assert text.count('class="none ') == 1
    assert "a row for new was dropped by `where` or `of` at 10:00:20" in text
    assert [one["scope"] for one in Page(text).attributes("th")] == ["col"] * 4


def test_a_firing_shows_its_constituents_and_its_command(run: Stored) -> None:
    answer = run.why_not("alone", {"k": 7})
    text = page(answer)
    assert f"tidegate why {answer.fired}" in text
    assert "It fired: alone, k 7" in text
    assert text.count('class="came ') == 1
    assert text.count('class="end"') == 1
    assert 'class="rung open"' not in text


def test_without_anything_that_came_there_is_no_time_line(run: Stored) -> None:
    text = page(run.why_not("alone", {"k": 9}))
    assert Page(text).texts("h2") == ["The ladder", "Evidence"]
    assert text.count("<svg") == 1


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_values_are_inert(answer: WhyNot, hostile: str) -> None:
    bad = Rung("parts", False, hostile, {"values": {hostile: hostile}, hostile: [hostile]})
    line = answer.timeline
    marks = [*line.marks, Mark(hostile, answer.at, hostile)]
    made = replace(
        answer,
        rule=hostile,
        key={hostile: hostile},
        rungs=(*answer.rungs[:-1], bad),
        notes=(hostile,),
        timeline=replace(line, lanes=(*line.lanes, hostile), marks=marks),
    )
    known = {(tag, *sorted(own)) for tag, own in Page(page(answer)).tags} | {("p", "class")}
    assert {(tag, *sorted(own)) for tag, own in Page(page(made)).tags} <= known
    assert Page(page(made)).scripts == []


def test_a_page_is_one_file_without_handlers_or_network(answer: WhyNot) -> None:
    text = page(answer)
    assert re.findall(r"(?:src|href|url)\s*[=(]|https?:|style=", text) == []
    assert not any(name.startswith("on") for _, own in Page(text).tags for name in own)
    assert "default-src 'none'" in text
    assert "script-src" not in text


def test_what_is_left_out_is_said(store: SqlStore) -> None:
    run = Stored(store, TEXT.replace("rulebook: shop", "rulebook: many"))
    for n in range(MARKS_MAX + 7):
        run.signal(10 + n, "told", k=7)
    run.at(200).signal(201, "told", k=8).at(202)
    text = page(run.why_not("r", {"id": 7}))
    assert text.count('class="came ') == MARKS_MAX
    assert "7 more are not drawn" in text
