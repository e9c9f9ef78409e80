"""`ignore_own: true`: a rule does not see what its own actions wrote, the others do (G22)."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from tests.support.bench import Bench
from tests.support.make import BEGIN, SECOND
from tidegate.engine.control.status import whole_status
from tidegate.engine.store import SqlStore

BOOK = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events:
  row: {on: insert, table: t}
  load: {on: transaction, table: t}
  told: {signal: {id: bigint}, from_table: t}
rules:
  plain: {on: row, ignore_own: true}
  pair: {on: row ; row, per: id, ignore_own: true}
  twice: {on: row ; row, ignore_own: true}
  begun: {on: begin_of load, ignore_own: true}
  heard: {on: told, ignore_own: true}
  other: {on: row}
  above: {on: plain}
"""


def test_g22_what_a_rules_own_actions_wrote_is_no_event_of_it(store: SqlStore) -> None:
    rules = ("plain", "twice", "begun", "heard", "other", "above")
    seen = {}
    for number, writer in enumerate(rules):
        bench = Bench(store, 4, BOOK.replace("loop", f"loop{number}"))
        bench.feed.writers = {1: (f"loop{number}", writer), 2: ("loop", writer)}
        bench.drain()
        shown = [*store.of(f"loop{number}").firings.listed()]
        seen[writer] = {
            rule: [version(row["time"]) for f in found for row in f["constituents"]]
            for rule in rules
            if (found := [f for f in shown if f["rule"] == rule])
        }
        names = Counter(row["event"] for f in shown for row in f["constituents"])
        assert names.keys() == {"row", "load", "told"}
    every, but_one = [0, 1, 2, 3], [0, 2, 3]
    whole = dict.fromkeys(rules, every) | {"twice": [0, 1, 1, 2, 2, 3]}
    assert seen == {
        "plain": whole | {"plain": but_one, "above": but_one},
        "twice": whole | {"twice": [0, 2, 2, 3]},
        "begun": whole | {"begun": but_one},
        "heard": whole | {"heard": but_one},
        "other": whole,
        "above": whole,
    }


def version(time: str) -> int:
    """Commits are a second apart; one begins a little before its time."""
    return round(datetime.fromisoformat(time).timestamp() - BEGIN / SECOND)


def test_status_knows_the_timers_of_a_rule_that_ignores_its_own_writing(store: SqlStore) -> None:
    text = f"{BOOK}  quiet: {{on: 'row + [2 days]', ignore_own: true}}\n"
    bench = Bench(store, 2, text)
    bench.feed.writers = {1: ("loop", "quiet")}
    bench.drain()
    timers = whole_status(store, bench.book)["next_timers"]
    assert [timer["rules"] for timer in timers] == [["quiet"]]
