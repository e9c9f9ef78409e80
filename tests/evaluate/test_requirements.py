"""What capture must carry, what ids are made of, what statements there are."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tests.support.analysts import ListedAnalyst
from tests.support.rulebooks import EVENTS, HERE, SCHEMAS, condition, event, rule, rulebook, sql
from tidegate import load
from tidegate.engine.core.event_names import beginning, with_edges
from tidegate.engine.core.statement import decode, encode
from tidegate.engine.core.values import Reading
from tidegate.engine.evaluate.requirements import Prepared, prepare
from tidegate.rules.errors import InputError, Problem
from tidegate.rules.model import (
    About,
    Damping,
    Dedupe,
    Hysteresis,
    Rule,
    Severity,
    SignalAction,
    Webhook,
)


def prepared(*rules: Rule, events: Any = EVENTS) -> Prepared:
    return prepare(rulebook(*rules, events=events), SCHEMAS, ListedAnalyst())


def test_g06_parameters_are_what_if_do_and_per_read() -> None:
    of = rule(
        "moved", per={"moved": ["account"]}, condition=condition("kind"), actions=(sql("amount"),)
    )
    found = prepared(of)
    assert found.needs.ids == {("r", "moved"): ("account", "amount", "kind")}
    assert found.needs.carry == {"moved": ("account", "amount", "id", "kind")}  # id: the key


def test_the_relation_holds_what_is_read_and_the_tables_key() -> None:
    of = rule("moved", actions=(sql("amount"),))
    assert prepared(of).rules["r"].wanted.names[6:] == ["id", "amount"]


def test_what_is_negated_is_carried_for_its_key_only() -> None:
    of = rule(
        "moved - noticed",
        per={"moved": ["account"], "noticed": ["account"]},
        actions=(sql("amount note"),),
    )
    found = prepared(of)
    assert found.needs.carry["noticed"] == ("account",)
    assert ("r", "noticed") not in found.needs.ids


def test_single_fields_of_the_pre_image() -> None:
    fields = prepared(rule("changed", actions=(sql("old.owner amount"),)))
    assert fields.needs.ids["r", "changed"] == ("amount", "old.owner")
    assert fields.rules["r"].wanted.field("old").type.names == ["owner"]
    whole = prepared(rule("changed", actions=(sql("old old.owner"),)))
    assert whole.needs.ids["r", "changed"] == ("old",)
    assert whole.rules["r"].wanted.field("old").type.names == ["account", "amount", "owner"]


def test_renamed_columns_are_asked_for_by_their_parameters_names() -> None:
    renamed = event("renamed", "moves", columns={"total": "amount", "which": "id"})
    found = prepared(rule("renamed", actions=(sql("total"),)), events=(*EVENTS, renamed))
    assert found.needs.ids["r", "renamed"] == ("total",)
    assert found.needs.carry["renamed"] == ("total", "which")


def test_rules_share_what_is_carried_but_not_their_ids() -> None:
    found = prepared(
        rule("moved", name="a", actions=(sql("kind"),)),
        rule("moved", name="b", actions=(sql("amount"),)),
    )
    assert found.needs.carry == {"moved": ("amount", "id", "kind")}
    assert found.needs.ids == {("a", "moved"): ("kind",), ("b", "moved"): ("amount",)}


def test_a_disabled_rule_is_checked_but_needs_nothing() -> None:
    found = prepared(rule("moved", enabled=False, actions=(sql("kind"),)))
    assert found.needs.carry == {}
    assert "r" in found.rules


def test_statements_say_all_that_an_entry_has_to_keep() -> None:
    signal = SignalAction("noticed", {"account": "account", "note": "kind"}, HERE)
    of = rule("moved", per={"moved": ["account"]}, actions=(sql("amount"), signal))
    first, second = prepared(of).statements["r"]
    assert (first.kind, encode(first), first.target) == ("sql", "amount", "alerts")
    assert json.loads(encode(second)) == {
        "action": 1,
        "event": "noticed",
        "fields": {"account": "account", "note": "kind"},
        "types": {"account": "bigint", "note": "string"},
        "group": ["account"],
    }


def test_g29_a_webhook_keeps_the_names_of_its_secrets_and_what_its_body_reads() -> None:
    headers = {"X-A": "${TIDEGATE_SECRET_A}"}
    hook = Webhook("https://x.org", "TIDEGATE_SECRET_B", headers, {"who": "account"}, HERE)
    found = prepared(rule("moved", per={"moved": ["account"]}, actions=(sql("kind"), hook)))
    assert json.loads(encode(found.statements["r"][1])) == {
        "url": "https://x.org",
        "secret": "TIDEGATE_SECRET_B",
        "headers": headers,
        "fields": {"who": "account"},
        "types": {},
        "group": ["account"],
    }
    assert (found.statements["r"][1].kind, found.statements["r"][1].action) == ("webhook", 1)
    about = About("two cities", {"team": "fraud"}, Severity.CRITICAL)
    [said] = prepared(rule("moved", actions=(hook,), about=about)).statements["r"]
    assert decode("webhook", encode(said), 0) == said
    assert json.loads(encode(said))["about"] == {
        "description": "two cities",
        "severity": "critical",
        "labels": {"team": "fraud"},
    }
    assert found.needs.ids["r", "moved"] == ("account", "kind")


WINDOWS = """\
rulebook: bank
tables: {moves: {path: /moves, key: [id]}, notes: {path: /notes, key: [id]}}
events:
  moved: {on: insert, table: moves}
  noted: {on: insert, table: notes}
rules:
  many: {on: {over: {window: 1 min, of: [moved, noted], fire: count(v) > 3}}}
  used: {on: many}
"""
APART = {
    "moves": pa.schema({"id": pa.int64(), "v": pa.int64()}),
    "notes": pa.schema({"id": pa.int64(), "v": pa.string()}),
}


@pytest.mark.parametrize("fire", ["count(v) > 3", "count(V) > 3 and count(*) > 4"])
def test_what_is_only_counted_needs_no_common_type(fire: str) -> None:
    book = load(WINDOWS.replace("count(v) > 3", fire))
    found = prepare(book, APART, ListedAnalyst())
    for name in ("many", "used"):
        assert {*found.rules[name].shape.schema.names} & {"id", "v", "V"} == {"id"}
        assert found.rules[name].shape.columns == {"moved": {"id": "id"}, "noted": {"id": "id"}}
    assert {*found.needs.carry["moved"]} == {*found.needs.carry["noted"]} == {"id", "v"}
    assert found.needs.ids["many", "noted"] == ("v",)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ("sum(v) > 3", "column v is string in event type noted and bigint in another"),
        ("count(v) > 3 and max(v) > 1", "column v is string in event type noted"),
        ("count(*) > 3", "column v is string in event type noted"),
        ("count(w) > 3", "column v is string in event type noted"),
    ],
)
def test_a_start_refuses_columns_of_no_common_type_over_its_tables(now: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        prepare(load(WINDOWS.replace("count(v) > 3", now)), APART, ListedAnalyst())


@pytest.mark.parametrize(
    ("schemas", "fire", "said"),
    [
        ({"v": pa.string()}, "sum(v) > 3", "sum is of numbers, and v is string"),
        ({"v": pa.float64()}, "sum(v) > 3", "sum.v. is of several types"),
        ({"w": pa.int64()}, "sum(u) > 3", "the rows of the window have no column u"),
    ],
)
def test_a_start_refuses_what_a_window_asks_of_its_tables_in_vain(
    schemas: dict[str, pa.DataType], fire: str, said: str
) -> None:
    book = load(WINDOWS.replace("count(v) > 3", fire))
    moves = {"v": pa.string()} if schemas == {"v": pa.string()} else {"v": pa.int64()}
    tables = {
        name: pa.schema({"id": pa.int64(), **kinds})
        for name, kinds in (("moves", moves), ("notes", schemas))
    }
    with pytest.raises(InputError, match=said):
        prepare(book, tables, ListedAnalyst())


def test_the_problems_of_all_rules_and_texts_are_told_at_once() -> None:
    class Refusing(ListedAnalyst):
        def action(self, rule: Rule, action: Any, *_: Any, **__: Any) -> Any:
            raise InputError([Problem("sql-kind", f"{rule.name}: {action.text}", HERE)])

    rules = [rule("moved", name=name, actions=(sql("x"), sql("y"))) for name in ("a", "b")]
    with pytest.raises(InputError) as refused:
        prepare(rulebook(*rules), SCHEMAS, Refusing())
    assert [p.message for p in refused.value.problems] == ["a: x", "a: y", "b: x", "b: y"]


@pytest.mark.parametrize(
    ("code", "proven", "kept"),
    [
        ("sql-analysis", ["r"], True),
        ("sql-analysis", ["other"], False),
        ("sql-kind", ["r"], False),  # what is not let in does not run because it ran before
    ],
)
def test_a_text_that_ran_before_and_fits_no_more_is_kept(
    code: str, proven: list[str], kept: bool
) -> None:
    class Misfit(ListedAnalyst):
        def action(self, _: Rule, __: Any, event: Any, *___: Any, resolve: bool = True) -> Any:
            if resolve:
                raise InputError([Problem(code, "too many columns", HERE)])
            return Reading(frozenset(event.names), "alerts")

    book = rulebook(rule("moved", actions=(sql("amount"),)))
    if not kept:
        with pytest.raises(InputError, match="too many columns"):
            prepare(book, SCHEMAS, Misfit(), proven)
        return
    found = prepare(book, SCHEMAS, Misfit(), proven).rules["r"]
    assert [(encode(s), s.target) for s in found.statements] == [("amount", "alerts")]
    assert found.wanted == found.shape.schema  # it reads all there is


@pytest.mark.parametrize("name", ["Event", "p_r"])
def test_a_table_may_not_be_called_like_a_relation(name: str) -> None:
    book = rulebook(rule("moved"))
    table = {name: type(book.tables["moves"])(name, HERE, path="/x")}
    with pytest.raises(InputError, match=f"table {name} is called like a rule's parameter rel"):
        prepare(replace(book, tables={**book.tables, **table}), SCHEMAS, ListedAnalyst())


def test_s10_the_beginning_of_an_update_has_its_columns_and_no_old() -> None:
    of = rule(
        "begin_of changed ; changed",
        per={"changed": ["account"]},
        actions=(sql("amount old.owner"),),
    )
    book = rulebook(of)
    found = prepare(with_edges(book, book.events), SCHEMAS, ListedAnalyst())
    assert found.needs.ids == {
        ("r", beginning("changed")): ("account", "amount"),
        ("r", "changed"): ("account", "amount", "old.owner"),
    }
    assert found.needs.carry[beginning("changed")] == ("account", "amount")
    wrong = rulebook(rule("begin_of changed", per={"changed": ["nope"]}))
    with pytest.raises(InputError, match="event type begin_of changed has no column nope"):
        prepare(with_edges(wrong, wrong.events), SCHEMAS, ListedAnalyst())
    alone = with_edges(rulebook(rule("begin_of changed")), book.events)
    assert "old" not in prepare(alone, SCHEMAS, ListedAnalyst()).rules["r"].shape.schema.names


def test_what_damps_a_rule_is_read_as_its_condition_is() -> None:
    levels = Hysteresis(condition("kind"), condition("amount"))
    of = rule("moved", damping=Damping(levels, Dedupe(("account",), 1)))
    found = prepared(of)
    assert found.needs.ids == {("r", "moved"): ("account", "amount", "kind")}
    read = [reading.columns for _, reading in found.rules["r"].conditions.values()]
    assert read == [{"kind"}, {"amount"}]


def test_dedupe_by_what_only_the_table_shows_not_to_be_a_column() -> None:
    with pytest.raises(InputError) as caught:
        prepared(rule("changed", damping=Damping(dedupe=Dedupe(("amuont", "old", "owner"), 1))))
    said = [(p.code, p.message.rpartition(" ")[2], p.hint) for p in caught.value.problems]
    assert said[0] == ("unknown-column", "amuont", "did you mean 'amount'?")
    assert said[1][:2] == ("unknown-column", "old")
