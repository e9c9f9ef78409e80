"""Of random questions over random runs, "it fired: here" and `firings` never disagree; and what the
sources hold is never detected without a firing, or a reason."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.replay.why_not.stored import Stored
from tests.support.make import BEGIN, SECOND
from tidegate.engine.core.text.times import of_text
from tidegate.engine.replay.why_not.ladder import RUNGS
from tidegate.engine.store import SqlStore, open_store

LASTS = 1_800
KEYS = 5
TEXT = """\
rulebook: mixed
timezone: UTC
tables: {items: {path: /items, key: [id]}, out: {path: /out}}
events:
  a: {signal: {k: bigint, v: bigint}}
  b: {signal: {k: bigint, v: bigint}, where: v > 2}
  c: {signal: {k: bigint, v: bigint}}
  new: {on: insert, table: items, where: amount > 2}
rules:
  seq: {per: k, on: a ; b within 3 min}
  chronicle: {per: k, on: a ; b within 10 min, context: chronicle}
  recent: {per: k, on: a and b, context: recent}
  continuous: {per: k, on: a ; c, context: continuous}
  cumulative: {per: k, on: "any(3, a*) within 20 min", context: cumulative}
  absent: {per: k, on: "not(b)[a, c]"}
  quiet: {per: k, on: "not(b)[a, [2 min]]"}
  window: {per: k, on: "A(a, b, c)"}
  second: {per: k, on: "every(2, a)"}
  asking: {per: k, on: a ; c within 10 min, if: sum(v) > 6}
  cool: {per: k, on: a, cooldown: 4 min}
  throttled: {per: k, on: a or b, throttle: 2 per 5 min}
  silent: {per: k, on: a or c, disabled_for: [1, 2]}
  using: {per: k, on: seq ; c within 10 min}
  rows: {per: {new: id, a: k}, on: new ; a}
  acting:
    per: k
    on: c ; a
    retry: {attempts: 1}
    do: [{sql: INSERT INTO out SELECT k AS id FROM event}]
  alone: {on: b ; b within 30 s}
"""


@pytest.fixture
def store(empty_store: Path, tmp_path: Path) -> Iterator[SqlStore]:
    file = shutil.copy(empty_store, tmp_path / "why.db")
    with open_store(f"sqlite:///{file}", create=False) as opened:
        yield opened


def ran(store: SqlStore, draw: Random) -> Stored:
    """A run of half an hour: signals, rows, switches, failing actions, cut anywhere."""
    run = Stored(store, TEXT)
    run.actions.failing["acting"] = draw.randint(1, 5)
    times = sorted(draw.sample(range(1, LASTS), 220))
    off = draw.choice(["seq", "recent", "cool"])
    switches = dict(zip(sorted(draw.sample(range(40, 200), 2)), ("disable", "enable"), strict=True))
    for n, seconds in enumerate(times):
        if draw.random() < 0.2:
            run.insert(seconds, {"id": draw.randint(1, KEYS), "amount": draw.randint(1, 6)})
        else:
            fields = {"k": draw.randint(1, KEYS), "v": draw.randint(1, 6)}
            run.signal(seconds, draw.choice("aabbc"), **fields)
        if n in switches:
            run.at(seconds + 0.2)
            run.ledger.controls.ask(switches[n], off)
        if draw.random() < 0.3:
            run.at(seconds + 0.5)
    return run.at(LASTS + 60)


def acted_on(firing: Mapping[str, Any]) -> bool:
    """Whether a firing, as `firings` lists it, fired and is not stuck."""
    stuck = any(entry["state"] in ("held", "dead", "skipped") for entry in firing["entries"])
    return firing["condition"] in ("none", "held") and not firing.get("damped") and not stuck


LONG = [pytest.param(n, 200, marks=pytest.mark.long) for n in range(1, 6)]


@pytest.mark.parametrize(("seed", "asked"), [(0, 60), *LONG])
def test_fired_is_what_firings_list(seed: int, asked: int, store: SqlStore) -> None:
    draw = Random(seed)
    run = ran(store, draw)
    rules = [*run.book.rules]
    firings = {rule: run.fired(rule) for rule in rules}
    ends = Counter[str]()
    for _ in range(asked):
        rule = draw.choice(rules)
        names = run.book.rules[rule].pattern.key_names
        key = dict.fromkeys(names, draw.randint(1, KEYS))
        at = BEGIN + draw.randint(1, (LASTS + 30) * SECOND)
        mine = [f for f in firings[rule] if f["key"] == key]
        if mine and draw.random() < 0.3:
            at = of_text(draw.choice(mine)["end"])
        since = draw.choice([None, at, at - 60 * SECOND])
        answer = run.asked(rule, key, at, since)
        listed = [f for f in mine if answer.since <= of_text(f["end"]) <= at and acted_on(f)]
        told = answer.rungs[-1]
        assert (answer.fired is not None) == bool(listed), (rule, key, at, told, listed)
        if listed:
            assert answer.fired in {f["firing_id"] for f in listed}
        assert told.ok or told.name != "fired", (rule, key, at, told)
        assert all(rung.ok for rung in answer.rungs[:-1])
        ends[told.name] += 1
    assert ends["fired"] > asked / 6
    assert len(ends) >= 7, ends
    assert ends.keys() <= {*RUNGS}
