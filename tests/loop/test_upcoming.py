"""What `status` says of timers, and of what has not been seen yet."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.golden.load import micros
from tests.reference.strategies import SECOND
from tests.support.live import Live
from tidegate import rules
from tidegate.engine.cli.screens import status_lines
from tidegate.engine.control.status import whole_status
from tidegate.engine.store import SqlStore

NINE = micros("2026-03-02T09:00")
BOOK = """\
rulebook: timers
events:
  hourly: {cron: "0 * * * *"}
  asked: {signal: {who: string}}
  answered: {signal: {who: string}}
rules:
  report: {on: hourly}
  unanswered: {on: "not(answered)[asked, [30 min]]", per: who}
  reminder: {on: "P(asked, [20 min], answered)", per: who}
  window: {on: "A*(asked, answered, [25 min])", per: who, context: chronicle}
  once: {on: "asked + [2 days]"}
"""


def test_status_says_what_happens_next_by_itself(store: SqlStore) -> None:
    live = Live(store, rules.load(BOOK), "timers", NINE)
    asked = [("asked", NINE + n * 60 * SECOND, {"who": who}) for n, who in enumerate(("a", None))]
    live.signal(asked)
    live.drain(NINE + 10 * 60 * SECOND)
    status = whole_status(store, live.book)
    found = [(t["at"][11:16], t["rules"], t["key"], t["clock"]) for t in status["next_timers"]]
    assert found == [
        ("09:20", ["reminder"], {"who": "a"}, None),
        ("09:21", ["reminder"], {"who": None}, None),
        ("09:25", ["window"], {"who": "a"}, None),
        ("09:26", ["window"], {"who": None}, None),
        ("09:30", ["unanswered"], {"who": "a"}, None),
        ("09:31", ["unanswered"], {"who": None}, None),
        ("10:00", ["report"], {}, "hourly"),
        ("09:00", ["once"], {}, None),  # in two days
        ("09:01", ["once"], {}, None),
    ]
    assert status["timers_pending"] == 8
    lines = "\n".join(status_lines(status, 100))
    assert re.search("09:30:00  unanswered +who=a", lines)
    assert re.search("09:31:00  unanswered +who=null", lines)
    assert "8 timers of rules and scripts wait" in lines
    one = "\n".join(status_lines({**status, "timers_pending": 1}, 100))
    assert "1 timer of rules and scripts waits" in one


def test_status_says_what_is_not_seen_yet_and_why(store: SqlStore) -> None:
    book = rules.load(BOOK)
    full = replace(book, settings=replace(book.settings, outbox_entries_max=0))
    live = Live(store, book, "timers", NINE)
    live.signal([("asked", NINE + SECOND, {"who": "a"})])
    status = whole_status(store, replace(full, name="timers"))
    assert [row["source"] for row in status["held_back"]] == ["signals", "outbox"]
    lines = list(status_lines(status, 100))
    assert "  signals: 1 waits for a bucket" in lines
    assert any("0 rejected, 1 signal waiting" in line for line in lines)
    assert any(line.startswith("  outbox: so many entries are open") for line in lines)
