"""The shape of `event`: whose columns, which types, what is refused (semantics 5)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.rulebooks import EVENTS, HERE, SCHEMAS, event, rule, rulebook, signal
from tidegate.engine.evaluate.shape import Shape, shape_of
from tidegate.rules.errors import InputError
from tidegate.rules.model import EventType, Rule

ENGINE = ["firing_id", "event_type", "label", "occurred_at", "started_at", "detected_at"]


def shape(of: Rule, *events: EventType) -> Shape:
    return shape_of(rulebook(of, events=(*EVENTS, *events)), of, SCHEMAS)


def refusal(of: Rule, *events: EventType) -> str:
    with pytest.raises(InputError) as refused:
        shape(of, *events)
    return str(refused.value)


def test_the_engines_columns_the_keys_the_union_the_spans() -> None:
    of = rule("L:(moved ; noticed)", per={"moved": ["account"], "noticed": ["account"]})
    found = shape(of)
    assert found.schema.names == [
        *ENGINE, "account", "id", "amount", "kind", "note", "L_start", "L_end",
    ]  # fmt: skip
    assert found.per_firing == (
        "firing_id", "started_at", "detected_at", "account", "L_start", "L_end",
    )  # fmt: skip


def test_a_key_of_another_name_stays_a_parameter_and_the_key_wins_over_one_of_its_name() -> None:
    of = rule("moved ; noticed", per={"moved": ["id"], "noticed": ["account"]})
    found = shape(of)
    assert found.schema.names == [*ENGINE, "id", "account", "amount", "kind", "note"]
    assert found.columns["moved"]["id"] == "id"
    assert found.key == pa.schema([("id", pa.int64())])


def test_columns_of_one_name_take_their_common_type() -> None:
    found = shape(rule("moved and changed"))
    assert found.schema.field("account").type == pa.int64()
    assert found.schema.field("amount").type == pa.decimal128(12, 2)


def test_letter_case_makes_no_second_column() -> None:
    shouted = event("shouted", "moves", columns={"AMOUNT": "amount", "Id": "id"})
    found = shape(rule("moved ; shouted"), shouted)
    assert found.schema.names == [*ENGINE, "id", "account", "amount", "kind"]
    assert found.columns["shouted"] == {"AMOUNT": "amount", "Id": "id"}


def test_a_key_without_a_common_type_is_said_once() -> None:
    texts = event("texts", "moves", columns={"account": "kind"})
    said = refusal(rule("moved ; texts", per={"moved": ["account"], "texts": ["account"]}), texts)
    assert said.count("account of moved is bigint") == 1
    assert "in event type" not in said


def test_a_decimal_and_a_double_are_no_key_together() -> None:
    """In whichever order they come, and with a whole number between them."""
    sent = signal("sent", d="double")
    said = refusal(rule("moved ; sent", per={"moved": ["amount"], "sent": ["d"]}), sent)
    assert said == (
        "bank.yaml:3:5: per: the columns of the key amount do not compare: amount of moved is "
        "decimal(12,2), d of sent is double\n"
        "    a decimal equals a double only as SQL rounds it: give these columns one type"
    )
    per = {"sent": ["d"], "noticed": ["account"], "moved": ["amount"]}
    assert "as SQL rounds it" in refusal(rule("sent ; noticed ; moved", per=per), sent)


def test_columns_without_a_common_type_are_refused_with_the_way_out() -> None:
    texts = event("texts", "moves", columns={"id": "kind"})
    said = refusal(rule("moved ; texts"), texts)
    assert said.startswith(
        "bank.yaml:3:5: column id is string in event type texts and bigint in another of the rule's"
    )
    assert "columns: [a, b as c]" in said


@pytest.mark.parametrize("taken", ["firing_id", "Event_Type", "detected_at", "old", "new"])
def test_columns_called_like_the_engines_are_refused(taken: str) -> None:
    clash = event("clash", "moves", columns={taken: "kind"})
    said = refusal(rule("clash"), clash)
    assert f"event type clash has a column {taken}, which is a name of the engine's" in said
    assert "columns: [a, b as c]" in said


def test_old_is_there_where_updates_have_their_pre_images() -> None:
    assert shape(rule("changed")).schema.field("old").type == pa.struct(list(SCHEMAS["accounts"]))
    assert "old" not in shape(rule("moved")).schema.names


def test_old_of_two_tables_has_the_columns_of_both() -> None:
    corrected = event("corrected", "moves", "update")
    old = shape(rule("changed ; corrected"), corrected).schema.field("old").type
    assert old.names == ["account", "amount", "owner", "id", "kind"]
    assert old.field("account").type == pa.int64()


def test_only_event_types_in_parameter_roles_have_columns() -> None:
    assert "note" not in shape(rule("moved - noticed")).schema.names


def test_every_problem_is_told_at_once() -> None:
    missing = event("missing", "moves", columns={"a": "nope"})
    clash = event("clash", "moves", columns={"label": "kind"})
    of = rule("missing ; clash", per={"clash": ["nowhere"]})
    with pytest.raises(InputError) as refused:
        shape(of, missing, clash)
    assert [p.code for p in refused.value.problems] == [
        "unknown-column", "reserved-column", "unknown-column",
    ]  # fmt: skip
    assert "table moves has no column nope" in str(refused.value)
    assert "per: event type clash has no column nowhere" in str(refused.value)


def test_how_an_event_without_the_key_is_for_every_key_is_said() -> None:
    other = event("other", "moves", columns={"kind": "kind"})
    every = "it has kind; what per: {event: column} does not name is for every key"
    both = {"moved": ["account"], "other": ["account"]}
    for per, hint in ((both, every), ({"other": ["account"]}, "it has kind")):
        with pytest.raises(InputError) as refused:
            shape(rule("moved ; other", per=per), other)
        (problem,) = refused.value.problems
        assert problem.hint == hint


def test_a_star_takes_all_columns_but_those_that_have_another_name() -> None:
    starred = event("starred", "moves", columns={"total": "amount", "kind": "kind"}, rest=True)
    names = shape(rule("starred", per={"starred": ["total"]}), starred).schema.names
    assert {"id", "account", "kind", "total"} <= {*names}
    assert "amount" not in names
    twice = event("twice", "moves", columns={"kind": "amount"}, rest=True)
    with pytest.raises(InputError, match="the table moves has a column kind already"):
        shape(rule("twice"), twice)


def test_a_rule_used_as_an_event_gives_its_own_constituents() -> None:
    inner, outer = rule("moved", name="inner"), rule("inner ; noticed", name="outer")
    book = rulebook(inner, outer)
    assert set(shape_of(book, outer, SCHEMAS).columns) == {"moved", "noticed"}


def test_a_label_does_not_hide_a_column() -> None:
    clash = event("clash", "moves", columns={"L_start": "kind"})
    assert "also the span of a label" in refusal(rule("L:(clash) ; moved"), clash)


def test_places_name_the_event_type() -> None:
    clash = event("clash", "moves", columns={"label": "kind"})
    with pytest.raises(InputError) as refused:
        shape(rule("clash"), clash)
    assert refused.value.problems[0].place == HERE


@pytest.mark.parametrize("taken", ["depth", "condition", "constituents"])
def test_a_key_called_like_what_a_firing_is_stored_with_is_refused(taken: str) -> None:
    clash = event("clash", "moves", columns={taken: "kind"})
    assert f"per: {taken} is a name of the engine's" in refusal(
        rule("clash", per={"clash": [taken]}), clash
    )
