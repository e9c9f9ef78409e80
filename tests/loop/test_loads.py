"""What each rule carries is counted: instances, and the keys that have any."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tests.support.live import Live, RowsFeed
from tests.support.make import BEGIN, SECOND
from tidegate import rules
from tidegate.connectors.http.metrics import Metrics
from tidegate.connectors.http.rulebooks import Source
from tidegate.engine.cli.screens import status_lines
from tidegate.engine.control.status import status_of
from tidegate.engine.detect.events.state import partitions
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.store import SqlStore

BOOK = """\
rulebook: m
events:
  a: {signal: {k: bigint, d: string}}
  b: {signal: {k: bigint, d: string}}
  c: {signal: {k: bigint, d: string}}
rules:
  pair: {on: a ; b, per: k, context: chronicle}
  three: {on: (a ; b) ; c, per: k, context: chronicle}
  apart: {on: a ; b, per: [k, d], context: recent}
  keyless: {on: a ; b, context: chronicle}
  alone: {on: c}
scripts:
  s: {text: "in {long k; string d;} a group(a.k) out {} e (a() a())*"}
"""
TWO_NODES = "  both: {on: (a ; b) and c, per: k, context: chronicle}\n"
RULES = ("pair", "three", "apart", "keyless", "both", "alone")


def loads(live: Live) -> dict[str, tuple[int, int]]:
    status = status_of(live.store, live.book)
    return {
        row.get("rule") or row["script"]: (row["carried_instances"], row["carried_keys"])
        for row in (*status["rules"], *status["scripts"])
    }


def event(name: str, second: int, k: int | None, d: str = "x") -> tuple[str, int, dict[str, Any]]:
    return name, BEGIN + second * SECOND, {"k": k, "d": d}


def test_instances_and_keys_are_shown_by_rule(store: SqlStore) -> None:
    live = Live(store, rules.load(BOOK), "m", BEGIN)
    assert set(loads(live).values()) == {(0, 0)}
    live.signal([event("a", 1, 7), event("a", 2, 7, "y"), event("a", 3, 8)])
    live.drain(BEGIN + 4 * SECOND)
    found = {
        "pair": (3, 2),
        "three": (3, 2),
        "apart": (3, 3),
        "keyless": (3, 0),
        "alone": (0, 0),
        "s": (2, 2),
    }
    assert loads(live) == found
    status = {**status_of(store, live.book), "next_timers": [], "held_back": []}
    lines = list(status_lines(status, 100))
    at = lines.index("what is carried  instances  of keys")
    assert [line.split() for line in lines[at + 1 : at + 6]] == [
        [name, str(instances), str(keys)]
        for name, (instances, keys) in sorted(found.items(), key=lambda one: (one[0] == "s", one))
        if instances
    ]
    store.of("m").versions.register(BOOK, None)
    source = Source(store)
    text = Metrics(source).text(source._status()).decode()
    assert 'tidegate_rule_carried_instances{rule="pair",rulebook="m"} 3.0' in text
    assert 'tidegate_rule_carried_keys{rule="pair",rulebook="m"} 2.0' in text
    assert 'tidegate_script_carried_keys{rulebook="m",script="s"} 2.0' in text
    del live.book.rules["pair"]
    live.restart()
    live.signal([event("c", 5, 1)])
    live.drain(BEGIN + 6 * SECOND)
    assert loads(live) == {name: count for name, count in found.items() if name != "pair"}


TIMES = """\
rulebook: times
tables: {a: {path: /a}}
events:
  row: {on: insert, table: a, time: at, lateness: 3 s}
  asked: {signal: {}}
rules:
  pair: {on: asked ; asked, context: chronicle}
  late: {on: row ; pair, context: chronicle}
"""


def test_what_is_there_once_more_for_a_rule_that_runs_behind_counts_as_written(
    store: SqlStore,
) -> None:
    live = Live(store, rules.load(TIMES), "times", BEGIN, RowsFeed())
    live.signal([("asked", BEGIN + SECOND, {})])
    live.drain(BEGIN + 9 * SECOND)
    assert loads(live) == {"pair": (2, 0), "late": (0, 0)}


def recounted(live: Live) -> dict[str, tuple[int, int]]:
    """What the rules carry, from all that the store has."""
    book, state = live.book, live.store.of("m").buckets.load()
    graph = Detector(book, state.activations).graph
    found = {}
    for rule in RULES:
        nodes = {f"node:{node.digest}" for node in graph.roots[rule].walk()}
        own = [t for name, t in state.carried.tables.items() if name.rpartition("/")[0] in nodes]
        rows = [row for table in own for row in table.to_pylist()]
        keys = {(row["k0"], row.get("k1")) for row in rows if "k0" in row and not row["every"]}
        found[rule] = (len(rows), len(keys))
    return found


@pytest.mark.parametrize("rows_max", [pytest.param(0, marks=pytest.mark.long), 4_000])
def test_what_is_counted_is_what_the_store_has(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, rows_max: int
) -> None:
    """However it is cut, over restarts, and where keys come and go."""
    monkeypatch.setattr(partitions, "ROWS_MAX", rows_max)
    drawn, seen = random.Random(rows_max), Counter[str]()
    text = BOOK.replace("scripts:", f"{TWO_NODES}scripts:")
    live = Live(store, rules.load(text), "m", BEGIN)
    before = loads(live)
    for second in range(1, 45):
        k = drawn.choice([*range(8), None])
        live.signal([event(drawn.choice("aabc"), second, k, drawn.choice("xy"))])
        live.drain(BEGIN + second * SECOND + SECOND // 2)
        if drawn.random() < 0.1:
            live.restart()
        after = loads(live)
        assert {rule: after[rule] for rule in RULES} == recounted(live)
        seen["less"] += sum(after[rule] < before[rule] for rule in RULES)
        seen["more"] += sum(after[rule] > before[rule] for rule in RULES)
        before = after
    assert min(seen["less"], seen["more"]) > 10
