"""When a rule was active, from switches, activations and stops."""

from __future__ import annotations

from typing import Any

import pytest

from tests.replay.why_not.stored import Stored, told
from tests.support.make import SECOND
from tidegate import rules
from tidegate.engine.core.entries import Control
from tidegate.engine.replay.why_not.evidence import ActiveSpan
from tidegate.engine.replay.why_not.spans import active_spans
from tidegate.engine.replay.why_not.texts import remembered_micros, used_by
from tidegate.engine.store import SqlStore
from tidegate.engine.store.past import PastBucket, Standing, Stop

MINUTE = 60 * SECOND
BOOK = rules.load("rulebook: t\nevents: {a: {signal: {k: bigint}}}\nrules: {r: {on: a}}\n")


def bucket(number: int, *switches: str, activations: dict[str, int] | None = None) -> PastBucket:
    """Bucket n holds (10 (n - 1), 10 n]."""
    asked = tuple(Control(n, kind, "r", None, None, 10 * number) for n, kind in enumerate(switches))
    before, end = 10 * (number - 1), 10 * number
    return PastBucket(number, before, end, end, 1, 1, activations or {}, (), asked)


def spans(
    *buckets: PastBucket, standing: Standing | None = None, behind: int = 0
) -> tuple[list[tuple[int, int | None]], list[str]]:
    found, gone = active_spans("r", {"r"}, buckets, {1: BOOK}, standing or Standing(), behind)
    return [(span.begin, span.end) for span in found], gone


def test_what_was_disabled_before_the_kept_buckets_was_not_active_in_them() -> None:
    enabled = bucket(6, "enable", activations={"r": 55})
    assert spans(bucket(4), bucket(5), enabled, bucket(7)) == ([(55, None)], [])
    off = bucket(5, "disable")
    assert spans(bucket(4), off, enabled) == ([(31, 40), (55, None)], [])
    parked, gone = spans(bucket(4), bucket(5), bucket(6, "enable"))
    assert parked == [(31, None)]
    assert gone == ["`r` had been parked by a limit; since when is not kept"]


def test_an_activation_after_the_last_bucket_counts() -> None:
    later = Standing(seen=90, activations={"r": 75})
    assert spans(bucket(5), standing=later) == ([(41, 74), (75, None)], [])
    assert spans(standing=later) == ([(75, None)], [])
    within = Standing(seen=90, activations={"r": 45})
    assert spans(bucket(5), standing=within) == ([(41, None)], [])


def test_a_stop_ends_just_before_its_instant() -> None:
    now = Standing(seen=90, stops={"r": Stop(45, "parked: many")})
    found, _ = active_spans("r", {"r"}, [bucket(4), bucket(5)], {1: BOOK}, now, 0)
    assert found == [ActiveSpan(31, 44, "parked: many")]


def test_a_rule_that_runs_behind_is_switched_in_its_own_time() -> None:
    off = bucket(5, "disable")
    assert spans(bucket(4), off, bucket(6), behind=7)[0] == [(24, 33)]


@pytest.mark.parametrize(
    ("rule", "micros"),
    [("pair", 10 * MINUTE), ("both", 15 * MINUTE), ("ever", None), ("twice", 25 * MINUTE)],
)
def test_a_rule_remembers_with_the_rules_that_it_uses(rule: str, micros: int | None) -> None:
    text = """\
rulebook: t
events: {a: {signal: {k: bigint}}, b: {signal: {k: bigint}}}
rules:
  pair: {per: k, on: a ; b within 10 min}
  both: {per: k, on: pair ; b within 5 min}
  twice: {per: k, on: both ; pair within 10 min}
  ever: {per: k, on: pair ; a}
"""
    book = rules.load(text)
    assert remembered_micros(book, used_by(book, rule)) == micros


TEXT = """\
rulebook: shop
timezone: UTC
settings: {firings_per_rule_per_minute_max: 3}
tables: {items: {path: /items, key: [id]}, out: {path: /out}}
events:
  a: {signal: {k: bigint}}
  b: {signal: {k: bigint}}
rules:
  r: {per: k, on: a}
  pair: {per: k, on: a ; b}
"""


def test_a_parked_rule_says_so_without_an_instant(store: SqlStore) -> None:
    run = Stored(store, TEXT)
    for n in range(5):
        run.signal(10 + n / 10, "a", k=n)
    run.at(20).signal(30, "a", k=7).at(40)
    rung, said = told(run.why_not("r", {"k": 7}))
    assert rung == "active"
    assert "Rule r was not active after" in said
    assert "parked: " in said
    assert "Ask for the time before with `--at 2026-03-02T09:00:" in said


def test_a_disabled_rule_says_so_without_an_instant_but_what_fired_is_told(store: SqlStore) -> None:
    run = Stored(store, TEXT)
    run.signal(10, "a", k=7).at(15)
    run.ledger.controls.ask("disable", "r", asked_by="ada@box")
    run.at(20).signal(30, "a", k=8).at(40)
    rung, said = told(run.why_not("r", {"k": 8}))
    assert (rung, "it was disabled (asked for by ada@box)" in said) == ("active", True)
    assert run.why_not("r", {"k": 7}).fired is not None
    last = run.why_not("r", {"k": 8}, 12)
    assert told(last)[0] == "occurrences"


def test_a_pause_in_the_time_that_is_asked_for_is_said(store: SqlStore) -> None:
    run = Stored(store, TEXT).at(5)
    run.ledger.controls.ask("disable", "pair", asked_by="ada@box")
    run.at(20).signal(30, "a", k=7).at(40)
    run.ledger.controls.ask("enable", "pair")
    run.at(50).signal(55, "b", k=7).at(60)
    answer = run.why_not("pair", {"k": 7})
    assert answer.rungs[0].sentence.endswith(" Before that it was disabled.")
    assert told(answer)[1].startswith("No `a` came for k 7")
    assert "Before that" not in run.why_not("pair", {"k": 7}, 59, 58).rungs[0].sentence


def test_a_switch_that_was_refused_switches_nothing(store: SqlStore) -> None:
    run = Stored(store, TEXT)
    run.ledger.controls.ask("enable", "r")  # it is neither parked nor disabled
    run.signal(10, "a", k=7).at(20)
    (span,) = run.why_not("r", {"k": 8}).rungs[0].evidence["active"]
    assert span["end"] is None
    answer: Any = run.why_not("r", {"k": 8})
    assert answer.notes == ()
