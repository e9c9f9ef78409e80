"""Places inside SQL texts, in the YAML that they were written in."""

from __future__ import annotations

from dataclasses import replace

from tidegate import rules
from tidegate.connectors.delta.places import Texts
from tidegate.rules.errors import Place
from tidegate.rules.model import Rulebook, Sql

RULEBOOK = """\
rulebook: bank
tables: {t: {path: /lake/t, key: [id]}}
events: {e: {on: insert, table: t}}
rules:
  r:
    on: e
    if: count(*) > nope
    do:
      - sql: |
          INSERT INTO t
          SELECT nope FROM event
      - sql: "INSERT INTO t SELECT 1"
"""
YAML = """\
rulebook: bank
do:
  - sql: |
      INSERT INTO alerts
      SELECT nope FROM event
  - sql: "INSERT INTO alerts SELECT 1"
"""
BOOK = Rulebook("bank", "bank.yaml", YAML, "UTC", {}, {}, {})


def at(place: Place, offset: int) -> tuple[int, int]:
    found = Texts(BOOK).locate(place)(offset)
    return found.line, found.column


def test_in_a_block_and_in_quotes() -> None:
    text = "INSERT INTO alerts\nSELECT nope FROM event\n"
    assert at(Place("bank.yaml", 4, 7), text.index("nope")) == (5, 14)
    assert at(Place("bank.yaml", 6, 11), len("INSERT INTO ")) == (6, 23)


def test_where_nothing_is_known_the_texts_own_place_has_to_do() -> None:
    assert at(Place("bank.yaml", 99, 1), 5) == (99, 1)
    assert at(Place("bank.yaml", 4, 7), 5000) == (4, 7)
    made = Texts(replace(BOOK, text=""))
    assert made.locate(Place("x", 3, 10))(4) == Place("x", 3, 10)


def test_the_places_of_a_rulebook_that_was_read() -> None:
    book = rules.load(RULEBOOK)
    first, second = book.rules["r"].reaction.actions
    condition = book.rules["r"].condition
    assert isinstance(first, Sql)
    assert isinstance(second, Sql)
    assert condition is not None
    texts = Texts(book)
    for found, offset in ((first, first.text.index("nope")), (second, 7), (condition, 11)):
        place = texts.locate(found.place)(offset)
        line = RULEBOOK.splitlines()[place.line - 1]
        assert line[place.column - 1 :].startswith(found.text[offset : offset + 4])
