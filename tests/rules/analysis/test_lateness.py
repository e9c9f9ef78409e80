"""How far behind each rule of a rulebook runs (G5)."""

from __future__ import annotations

from tidegate import rules
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.checks.gaps import SIMULATED

BOOK = """\
rulebook: late
tables: {t: {path: /t, key: [id]}}
events:
  placed: {on: insert, table: t, time: at, lateness: 10 min}
  moved: {on: update, table: t, time: at, lateness: 1500 us}
  seen: {on: insert, table: t, time: at}
  paid: {on: insert, table: t}
rules:
  both: {on: moved ; placed}
  fine: {on: begin_of moved or paid}
  none: {on: paid}
  now: {on: seen}
  by_rule: {on: none ; fine}
  acting: {on: placed, do: [{sql: INSERT INTO t BY NAME SELECT id FROM event}]}
  acted: {on: end_of acting or failed acting}
"""


def test_g05_a_rule_runs_its_largest_lateness_behind_in_whole_milliseconds() -> None:
    book = rules.load(BOOK, features=SIMULATED)
    found = {"both": 600_000_000, "fine": 2_000, "now": 0, "by_rule": 2_000}
    found["acting"] = 600_000_000
    assert lateness_micros(book) == found
