"""Detections -> firings: ids, depths, conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.support.analysts import ListedAnalyst
from tests.support.detections import batch, detections
from tests.support.memory import MemoryFeed
from tests.support.rulebooks import SCHEMAS, condition, rule, rulebook, signal, sql
from tidegate.engine.core.values import Answers, Detections, Failure, Firings, Plan, Question
from tidegate.engine.evaluate.requirements import Prepared, prepare
from tidegate.engine.evaluate.samples import AsOf
from tidegate.engine.evaluate.stage import evaluate, firings_of
from tidegate.rules.model import Damping, Hysteresis, Rule

PLAN = Plan("bank", 4, 0, 100, 100, pinned={"moves": 3})
AS_OF = AsOf({}, MemoryFeed(0), lambda *_: None)
MOVED = [{"id": n, "account": n % 2, "amount": Decimal(n), "kind": "w"} for n in range(4)]
SETS = [("amount",), ("account", "amount"), ("amount", "kind"), ()]


class Asked:
    """Holds the firings whose amounts sum to more than 2; remembers what it was asked. The rules in
    `failing` fail, as often as that says, those in `lasting` for good."""

    def __init__(self, *lasting: str, **failing: int) -> None:
        self.lasting, self.failing = lasting, failing
        self.calls: list[list[Question]] = []

    def hold(self, questions: Sequence[Question]) -> Answers:
        assert all(q.versions == PLAN.pinned for q in questions)
        self.calls.append(list(questions))
        held, failed = set(), {}
        for question in questions:
            if self.failing.get(question.rule, 0) > 0:
                self.failing[question.rule] -= 1
                lasting = question.rule in self.lasting
                failed[question.asked] = Failure("it failed", "on account 7", lasting=lasting)
                continue
            sums = question.relation.group_by("firing_id").aggregate([("amount", "sum")])
            held |= {r["firing_id"] for r in sums.to_pylist() if r["amount_sum"] > 2}
        return Answers(frozenset(held), failed)


def setup(*rules: Rule, depth: Sequence[int] | None = None) -> tuple[Prepared, list[Detections]]:
    book = rulebook(*rules)
    moved = batch(book, "moved", MOVED, [10, 20, 30, 40], depth=depth, sets=SETS)
    found = [
        detections(of, [moved], [[("moved", 0), ("moved", 1)], [("moved", 2), ("moved", 3)]])
        for of in rules
    ]
    return prepare(book, SCHEMAS, ListedAnalyst()), found


def firings(*rules: Rule, asked: Asked | None = None, **more: Any) -> tuple[Firings, ...]:
    prepared, found = setup(*rules, **more)
    return evaluate(prepared, found, PLAN, asked or Asked(), AS_OF).firings


def test_firings_are_stored_by_the_column() -> None:
    (found,) = firings(rule("moved and moved", actions=(sql("amount"),)))
    assert found.firings.schema.names == [
        "firing_id", "started_at", "detected_at", "depth", "condition", "constituents",
    ]  # fmt: skip
    assert found.firings.schema.field("firing_id").type == pa.binary(16)
    assert found.firings["condition"].to_pylist() == ["none", "none"]
    assert found.firings["constituents"].to_pylist() == [2, 2]
    assert found.relation["firing_id"].to_pylist() == [
        i for i in found.hex_ids().to_pylist() for _ in "xx"
    ]


def test_g06_an_id_is_the_same_where_days_and_instants_of_a_key_meet_and_where_they_do_not() -> (
    None
):
    """A step that has seen no instant has days as keys; so has a task beside another one."""
    by_day, by_instant = signal("a", k="date"), signal("c", k="timestamp")
    of = rule("a or c", per={"a": ["k"], "c": ["k"]})
    book = rulebook(of, events=(by_day, by_instant))
    prepared = prepare(book, SCHEMAS, ListedAnalyst()).rules["r"]
    instants = pa.table({"k": pa.array([0, None, 86_400_000_000], pa.timestamp("us", "UTC"))})
    days = pa.table({"k": pa.array([0, None, 1], pa.date32())})
    rows = batch(book, "a", [{"k": None}] * 3, [10, 20, 30], sets=[("k",)])
    found = [
        detections(of, [rows], [[("a", n)] for n in range(3)], keys=keys)
        for keys in (days, instants)
    ]
    one, other = (firings_of("bank", prepared, some) for some in found)
    assert one.firings == other.firings


def test_g06_ids_depend_on_the_rule_and_what_it_was_made_of_only() -> None:
    a, b = firings(rule("moved and moved", name="a"), rule("moved and moved", name="b"))
    (again,) = firings(rule("moved and moved", name="a"))
    assert a.hex_ids() == again.hex_ids()
    assert not set(a.hex_ids().to_pylist()) & set(b.hex_ids().to_pylist())
    assert len(set(a.hex_ids().to_pylist())) == 2


def test_g22_depth_is_one_more_than_the_deepest_constituents() -> None:
    (found,) = firings(rule("moved and moved"), depth=[0, 3, 0, 0])
    assert found.firings["depth"].to_pylist() == [4, 1]
    (outside,) = firings(rule("moved and moved"))
    assert outside.firings["depth"].to_pylist() == [1, 1]


def test_g22_depth_of_firings_without_constituents() -> None:
    of = rule("moved and moved")
    book = rulebook(of)
    moved = batch(book, "moved", MOVED, [10, 20, 30, 40], depth=[5, 0, 0, 0], sets=SETS)
    found = detections(
        of, [moved], [[], [("moved", 0)], [], []], times=[(1, 1), (0, 0), (3, 3), (4, 4)]
    )
    prepared = prepare(book, SCHEMAS, ListedAnalyst())
    (fired,) = evaluate(prepared, [found], PLAN, Asked(), AS_OF).firings
    assert fired.firings["depth"].to_pylist() == [1, 6, 1, 1]
    assert fired.firings["constituents"].to_pylist() == [0, 1, 0, 0]
    assert fired.relation.num_rows == 4


def test_g15_all_conditions_are_asked_together_and_only_of_rules_that_fired() -> None:
    asked = Asked()
    rules = [rule("moved and moved", name=n, condition=condition("amount")) for n in ("a", "b")]
    prepared, found = setup(*rules, rule("moved and moved", name="c"))
    quiet = rule("moved and moved", name="quiet", condition=condition("amount"))
    silent = detections(quiet, [], [])
    result = evaluate(prepared, [*found, silent], PLAN, asked, AS_OF).firings
    assert [q.rule for q in asked.calls[0]] == ["a", "b"]
    assert len(asked.calls) == 1
    assert [f.firings["condition"].to_pylist() for f in result] == [
        ["failed", "held"], ["failed", "held"], ["none", "none"],
    ]  # fmt: skip


def test_hysteresis_is_asked_together_with_the_condition_or_alone() -> None:
    asked = Asked()
    damping = Damping(Hysteresis(condition("amount kind"), condition("amount")))
    both = rule("moved and moved", name="both", condition=condition("amount"), damping=damping)
    prepared, found = setup(both, rule("moved and moved", name="alone", damping=damping))
    result = evaluate(prepared, found, PLAN, asked, AS_OF)
    (call,) = asked.calls
    assert [(q.rule, q.asks, q.condition.text) for q in call] == [
        ("both", "if", "amount"),
        ("both", "fire", "amount kind"),
        ("both", "rearm", "amount"),
        ("alone", "fire", "amount kind"),
        ("alone", "rearm", "amount"),
    ]
    conditions = {f.rule: f.firings["condition"].to_pylist() for f in result.firings}
    assert conditions == {"alone": ["none", "none"], "both": ["failed", "held"]}


def test_ids_are_not_made_texts_where_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be millions."""

    def hex_ids(_: Firings) -> pa.StringArray:
        raise AssertionError

    plain = rule("moved and moved", actions=(sql("amount"),))
    prepared, found = setup(plain)
    fired = tuple(firings_of("bank", prepared.rules[plain.name], one) for one in found)
    monkeypatch.setattr(Firings, "hex_ids", hex_ids)
    (decided,) = evaluate(prepared, fired, PLAN, Asked(), AS_OF).firings
    assert len(decided) == 2


def test_no_condition_no_question() -> None:
    asked = Asked()
    firings(rule("moved and moved"), asked=asked)
    assert asked.calls == []


def test_a_condition_sees_the_columns_that_it_reads() -> None:
    asked = Asked()
    of = rule("moved and moved", condition=condition("amount"), actions=(sql("kind"),))
    firings(of, asked=asked)
    assert asked.calls[0][0].relation.column_names == ["firing_id", "amount"]


def test_g13_a_condition_that_fails_is_asked_three_times_and_fails_alone() -> None:
    rules = [rule("moved and moved", name=n, condition=condition("amount")) for n in ("a", "b")]
    prepared, found = setup(*rules)
    asked = Asked(a=2)
    passing = evaluate(prepared, found, PLAN, asked, AS_OF)
    assert [[q.rule for q in call] for call in asked.calls] == [["a", "b"], ["a"], ["a"]]
    assert not passing.unasked
    result = evaluate(prepared, found, PLAN, Asked(a=3), AS_OF)
    [[dead]] = result.unasked.values()
    assert dead.why == Failure("it failed", "on account 7", attempts=3)
    assert dead.firing_ids == tuple(result.firings[0].hex_ids().to_pylist())
    for_good = Asked("a", a=1, b=1)  # while b is asked again, it is not forgotten
    unasked = evaluate(prepared, found, PLAN, for_good, AS_OF).unasked
    [dead] = unasked["a"]
    assert [*unasked] == ["a"]
    assert dead.why == Failure("it failed", "on account 7", attempts=1, lasting=True)
    assert [[q.rule for q in call] for call in for_good.calls] == [["a", "b"], ["b"]]
    assert [f.firings["condition"].to_pylist() for f in result.firings] == [
        ["dead", "dead"], ["failed", "held"],
    ]  # fmt: skip


def test_hex_ids_of_slices_and_of_nothing() -> None:
    (found,) = firings(rule("moved and moved"))
    both = [one.hex() for one in found.firings["firing_id"].to_pylist()]
    assert found.hex_ids().to_pylist() == both
    assert replace(found, firings=found.firings[1:]).hex_ids().to_pylist() == both[1:]
    assert replace(found, firings=found.firings[:0]).hex_ids().to_pylist() == []
