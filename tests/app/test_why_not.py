"""Why-not over real tables: a few planted misses, and what is gone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from tests.support.lake import Shop
from tidegate.engine.app.why_not import why_not
from tidegate.engine.cli.main import main
from tidegate.engine.replay.why_not.answer import WhyNot
from tidegate.engine.replay.why_not.asking import Question

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOOK = """\
rulebook: shop
timezone: UTC
tables:
  orders: {path: ./orders, key: [id]}
  log: {path: ./log}
events:
  large: {on: insert, table: orders, where: amount > 100}
  odd: {on: insert, table: orders, where: "substring(note, 2, 1) = 'x'"}
  moved: {on: update, table: orders, of: [note]}
  closed: {signal: {id: bigint}}
rules:
  late: {per: id, on: large ; closed}
  odd_one: {per: {odd: id, closed: id}, on: odd ; closed}
  changed: {per: id, on: moved}
  fast: {per: id, on: large ; closed within 1 ms}
  asking: {per: id, on: large, if: sum(amount) > 1000}
"""


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Order 1 is large and closed, 2 is small, 3 is never closed, 4 is another's."""
    shop = Shop(spark, tmp_path_factory.mktemp("why_not"))
    shop.book.write_text(BOOK)
    shop.create("orders", "id BIGINT, amount BIGINT, note STRING")
    shop.create("log", "id BIGINT")
    with shop.engine() as engine:
        engine.run_once()
        for order in ((1, 500, "ax"), (2, 50, "b"), (3, 500, "c")):
            shop.order(order)
        engine.run_once()
        shop.sql("UPDATE {orders} SET amount = 51 WHERE id = 2")
        for id in (1, 2):
            engine.signal("closed", {"id": id})
        engine.run_once()
    return shop


def asked(shop: Shop, rule: str, id: object) -> WhyNot:
    return why_not(shop.store, None, Question(rule, {"id": id}))


def test_an_open_engine_answers(shop: Shop) -> None:
    with shop.engine() as engine:
        assert engine.why_not("late", {"id": 1}).fired is not None
        said = str(engine.why_not("late", {"id": 2}, since="2026-01-01"))
    assert "(amount is 50)" in said


@pytest.mark.parametrize(
    ("rule", "id", "rung", "says"),
    [
        ("late", 1, "fired", "It fired for id 1"),
        pytest.param("late", "1", "fired", "It fired for id 1", marks=pytest.mark.long),
        ("late", 2, "where", "`where: amount > 100` is not true of it (amount is 50)"),
        pytest.param("late", 3, "occurrences", "No `closed` came for id 3", marks=pytest.mark.long),
        pytest.param(
            "late", 9, "occurrences", "No `large` or `closed` came for id 9", marks=pytest.mark.long
        ),
        pytest.param("odd_one", 2, "where", "(note is b)", marks=pytest.mark.long),
        ("changed", 2, "where", "it changes none of note (note is b)"),
        pytest.param(
            "fast", 1, "parts", "longer than `within 1 ms` allows", marks=pytest.mark.long
        ),
        ("asking", 1, "if", "`sum(amount)` is 500"),
    ],
)
def test_planted_misses_are_named(shop: Shop, rule: str, id: object, rung: str, says: str) -> None:
    answer = asked(shop, rule, id)
    last = answer.rungs[-1]
    assert (last.name, last.ok) == (rung, rung == "fired"), str(answer)
    assert says in last.sentence, str(answer)
    assert answer.notes == ()


def test_the_command_prints_rungs_as_text_and_as_json(shop: Shop) -> None:
    words = ["why-not", "late", "--key", "id=2", "--store", shop.store]
    text = CliRunner().invoke(main, words)
    assert text.exit_code == 0, text.output
    lines = text.stdout.splitlines()
    assert lines[1].split()[:2] == ["✓", "active"]
    assert lines[-1].split()[:2] == ["✗", "where"]
    said = CliRunner().invoke(main, [*words, "--format", "json"])
    found = json.loads(said.stdout)
    assert (found["rule"], found["key"], found["fired"]) == ("late", {"id": 2}, None)
    assert [rung["ok"] for rung in found["rungs"]] == [True, True, True, True, False]
    assert found["rungs"][-1]["evidence"]["values"] == {"amount": 50}


def test_versions_that_are_gone_are_said(shop: Shop) -> None:
    log = shop.folder / "orders" / "_delta_log"
    kept = shop.folder / "kept"
    shutil.copytree(shop.folder / "orders", kept)
    try:
        for version in (0, 1, 2):
            (log / f"{version:020d}.json").unlink()
        for crc in log.glob("*.crc"):
            crc.unlink()
        for crc in log.glob(".*.crc"):
            crc.unlink()
        question = ["why-not", "late", "--key", "id=2", "--store", shop.store]
        found = CliRunner().invoke(main, question)
        assert found.exit_code == 0, found.output
        assert "cannot be told" in found.stdout or "note: " in found.stdout
    finally:
        shutil.rmtree(shop.folder / "orders")
        shutil.move(kept, shop.folder / "orders")


def test_a_table_that_was_replaced_is_said(shop: Shop, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    shutil.move(shop.folder / "orders", kept)
    try:
        shop.create("orders", "id BIGINT, amount BIGINT, note STRING")
        for n in range(6):
            shop.order((n, 500, "a"))
        question = ["why-not", "late", "--key", "id=2", "--store", shop.store]
        found = CliRunner().invoke(main, question)
        assert found.exit_code == 0, found.output
        assert "cannot be told" in found.stdout, found.stdout
    finally:
        shutil.rmtree(shop.folder / "orders")
        shutil.move(kept, shop.folder / "orders")
