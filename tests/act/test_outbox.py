"""Firings -> entries: order, sets, depths (G15, G16, G22)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.make import firings, hex_ids
from tests.support.rulebooks import HERE, rule
from tidegate.engine.act.outbox import Stamp, entries_for
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.statement import (
    SignalStatement,
    SqlStatement,
    Statement,
    WebhookStatement,
    encode,
)
from tidegate.engine.core.values import Firings
from tidegate.rules.analysis.graph import later_ones
from tidegate.rules.model import Coupling, Rule, Sql

S1 = SqlStatement("first", "alerts")
S2 = SignalStatement({}, {}, (), "second", action=1)


def said(entry: Entry) -> str:
    return (
        entry.statement.event
        if isinstance(entry.statement, SignalStatement)
        else encode(entry.statement)
    )


IDS = hex_ids(firings("r", 3))
ACTIONS = (Sql("first", HERE), Sql("second", HERE))


def entries(
    *pairs: tuple[Rule, Firings], depth_max: int = 16, of: Sequence[Statement] = (S1, S2)
) -> tuple[Entry, ...]:
    rules = {r.name: r for r, _ in pairs}
    statements = dict.fromkeys(rules, of)
    stamp = Stamp("store", "bank", {"alerts": 7})
    return entries_for(
        [f for _, f in pairs], {}, rules, statements, depth_max, stamp, later_ones(rules)
    )


def test_g16_one_entry_a_statement_for_all_firings_that_held() -> None:
    found = entries((rule(), firings("r", condition=["held", "failed", "none"])))
    assert [(said(e), e.kind, e.target, e.firing_ids, e.turn.order, e.state) for e in found] == [
        ("first", "sql", "alerts", None, 0, "pending"),
        ("second", "signal", None, None, 1, "pending"),
    ]


def test_no_firing_held_no_entry() -> None:
    assert entries((rule(), firings("r", condition=["failed", "failed"]))) == ()


def test_g15_by_priority_descending_then_rule() -> None:
    rules = [rule(name="b", priority=1), rule(name="c", priority=5), rule(name="a", priority=1)]
    found = entries(*((r, firings(r.name, condition=["held"])) for r in rules))
    assert [e.rule for e in found] == ["c", "c", "a", "a", "b", "b"]
    assert [e.turn.order for e in found] == list(range(6))


def test_for_each_firing_in_detection_order_statement_after_statement() -> None:
    each = rule(for_each="firing", actions=ACTIONS)
    found = entries((each, firings("r", condition=["held", "failed", "held"], depth=[2, 1, 3])))
    assert [(said(e), e.firing_ids, e.depth) for e in found] == [
        ("first", (IDS[0],), 2),
        ("second", (IDS[0],), 2),
        ("first", (IDS[2],), 3),
        ("second", (IDS[2],), 3),
    ]


@pytest.mark.parametrize("more", [{}, {"for_each": "firing"}, {"coupling": Coupling.IMMEDIATE}])
def test_g15_webhooks_of_all_firings_are_one_entry_that_waits_for_nobody(more: Any) -> None:
    hook = WebhookStatement({}, {}, (), "http://x", None, {}, action=1)
    fired = firings("r", condition=["held", "failed", "held"])
    found = entries((rule(**more), fired), (rule(name="s"), firings("s")), of=(S1, hook))
    hooks = [(e.rule, e.statement.action, e.firing_ids, e.turn.stage) for e in found[-2:]]
    assert hooks == [("r", 1, None, None), ("s", 1, None, None)]
    assert {e.kind for e in found[:-2]} == {"sql"}
    assert [e.queue for e in found[-3:]] == ["s", "r/webhook", "s/webhook"]


def test_g16_many_commits_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    each = rule(for_each="firing", actions=ACTIONS)
    with caplog.at_level(logging.WARNING):
        entries((each, firings("r", condition=["held"] * 50)))
        assert not caplog.records
        entries((each, firings("r", condition=["held"] * 51)))
    assert "rule r: `for_each: firing` makes 102 entries in one bucket" in caplog.text


def test_g22_an_entry_is_as_deep_as_its_deepest_firing() -> None:
    found = entries((rule(), firings("r", condition=["held", "held", "failed"], depth=[2, 4, 9])))
    assert {e.depth for e in found} == {4}


def test_g22_firings_past_the_depth_are_dead_and_only_they() -> None:
    found = entries((rule(), firings("r", condition=["held"] * 3, depth=[1, 4, 3])), depth_max=3)
    assert [(said(e), e.state, e.firing_ids) for e in found] == [
        ("first", "pending", (IDS[0], IDS[2])),
        ("second", "pending", (IDS[0], IDS[2])),
        ("first", "dead", (IDS[1],)),
        ("second", "dead", (IDS[1],)),
    ]
    assert found[2].progress.error == "depth 4 is past max_cascade_depth = 3"


def test_g22_all_past_the_depth() -> None:
    found = entries((rule(), firings("r", condition=["held"], depth=[4])), depth_max=3)
    assert [(e.state, e.firing_ids) for e in found] == [("dead", None), ("dead", None)]
