"""Places inside SQL texts, in the YAML that they were written in."""

from __future__ import annotations

from dataclasses import replace

from connectors.delta.texts import Texts
from rules.errors import Place
from rules.model import Rulebook

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
    assert at(Place("bank.yaml", 3, 10), text.index("nope")) == (5, 14)
    assert at(Place("bank.yaml", 6, 10), len("INSERT INTO ")) == (6, 23)


def test_where_nothing_is_known_the_texts_own_place_has_to_do() -> None:
    assert at(Place("bank.yaml", 99, 1), 5) == (99, 1)
    made = Texts(replace(BOOK, text=""))
    assert made.locate(Place("x", 3, 10))(4) == Place("x", 3, 10)
