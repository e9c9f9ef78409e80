"""What fired live fires in a backtest, under the same ids."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pytest

from tests.replay.backtest.live import Live, outcomes, tried_again
from tests.support.make import BEGIN, SECOND
from tidegate.engine.replay.memory.observation import moment
from tidegate.engine.store import SqlStore, open_store

DAY = 86_400 * SECOND
BOOK = """\
rulebook: past
timezone: Europe/Berlin
tables: {t: {path: /t, key: [id]}, u: {path: /u, key: [id]}, out: {path: /out}}
events:
  a: {on: insert, table: t, where: v > 3}
  b: {on: insert, table: u}
  s: {signal: {k: bigint}}
  hot: {signal: {k: bigint}}
rules:
  pair: {on: a ; b within 2 h, per: k, do: [{sql: INSERT INTO out SELECT k FROM event}]}
  none: {on: "not(b)[a, [1 h]]", per: k}
  sums: {on: a, per: k, if: max(v) > 5, cooldown: 1 h}
  tells: {on: a ; a, per: k, context: chronicle, do: [{signal: {hot: {k: k}}}]}
  heard: {on: hot ; b, per: k}
  ends: {on: end_of tells ; s, per: k}
  daily: {on: "P(s, [5 h], b)"}
  days: {on: {window: 1 d, of: [a, b]}, per: k}
  visit: {on: {session: 1 h, of: a}, per: k}
  held: {on: {holds: a, until: b, for: 1 h, keep: 10 min}, per: k}
  over: {on: resolved held, per: k}
  asked:
    on: a and b
    per: k
    context: continuous
    if: {sql: SELECT firing_id FROM event JOIN u ON true}
    coupling: immediate
"""


@pytest.fixture
def store(slow_store_url: str) -> Iterator[SqlStore]:
    with open_store(slow_store_url, create=True) as opened:
        yield opened


SWITCHED = """\
  calms: {on: s ; b, per: k, do: [{disable: counts}]}
  stirs: {on: a ; a, per: k, do: [{enable: counts}]}
  counts: {on: "every(2, b)", per: k}
  uses: {on: counts ; a, per: k}
  waits: {on: late ; b, per: k}
"""
LATE = "  late: {on: insert, table: t, time: at, lateness: 5 min, where: v > 3}\n"


def history(live: Live, seed: int, days: int = 8, *, switched: Sequence[str] = ()) -> int:
    """Random commits and signals, operators who switch some rules; when they end."""
    chosen = random.Random(seed)
    end, number = BEGIN + days * DAY, 0
    while live.clock.at < end:
        live.clock.at += int(chosen.expovariate(1) * chosen.choice([60, 3_600, 7_200]) * SECOND)
        for _ in range(chosen.choice([1, 1, 2, 5])):
            number += 1
            row: dict[str, Any] = {
                "id": number,
                "k": chosen.randrange(3),
                "v": chosen.randrange(10),
            }
            row["at"] = moment(live.clock.at - chosen.choice([0, 60, 290]) * SECOND)
            behind = chosen.choice([0, 0, 1_000, 700_000])
            match chosen.randrange(5):
                case 0 | 1:
                    live.commit("t", [row], behind)
                case 2 | 3:
                    live.commit("u", [row, row][: chosen.randrange(1, 3)], behind)
                case _:
                    live.signal("s", k=row["k"])
        for rule in switched:
            if chosen.random() < 0.2:
                live.switch(chosen.choice(["enable", "disable"]), rule)
                live.clock.at += chosen.choice([0, 300_000, 900 * SECOND])
        if chosen.random() < 0.7:
            live.take()
    live.settle()
    return live.clock.at


@pytest.mark.parametrize("days", [2, pytest.param(30, marks=pytest.mark.long)])
def test_a_backtest_over_what_ran_live_has_the_same_firings(store: SqlStore, days: int) -> None:
    live = Live(BOOK, store)
    end = history(live, seed=days, days=days)
    fired = live.fired()
    assert fired.keys() == live.loop.compiled.rulebook.rules.keys()
    assert sum(map(len, fired.values())) >= 40 * days, "so many firings were compared"
    assert outcomes(tried_again(live, BEGIN, end)) == fired


@pytest.mark.parametrize(
    ("seed", "days"), [(1, 2), *(pytest.param(n, 6, marks=pytest.mark.long) for n in (2, 3))]
)
def test_what_was_switched_live_is_switched_again(store: SqlStore, seed: int, days: int) -> None:
    text = BOOK.replace("rules:\n", LATE + "rules:\n") + SWITCHED
    live = Live(text, store)
    switched = ("none", "sums", "counts", "tells", "waits")
    end = history(live, seed, days=days, switched=switched)
    fired = live.fired()
    carried_out = store.of("past").placed.switches()
    assert len(carried_out) >= 12 * days, "so many switches were repeated"
    assert {one.control.subject for one in carried_out} == {*switched}
    assert len(store.of("past").placed.switched_by(0, 2**62)) >= 2 * days, (
        "so many of them were of actions"
    )
    assert all(fired[rule] for rule in (*switched, "uses"))
    assert outcomes(tried_again(live, BEGIN, end)) == fired
    half, forget = BEGIN + days * DAY // 2, ("none", "sums")
    later = outcomes(tried_again(live, half, end, warm_up=DAY // 4))
    seen = set[str]()
    for rule in forget:  # what others remember has no bound
        ends = store.of("past").firings.listed(rule=rule)
        after = {
            one["firing_id"] for one in ends if datetime.fromisoformat(one["end"]) >= moment(half)
        }
        assert len(after) < len(fired[rule])
        assert later.get(rule, {}).keys() == after
        seen |= after
    assert seen, "some of them fired in the second half"
