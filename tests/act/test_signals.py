"""Signals raised by actions: one a firing, once (G22)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.acting import FakeLedger, FakeSink, Unasked, executors
from tests.support.make import SECOND, firings, hex_ids, numbered
from tests.support.rulebooks import rule, rulebook
from tidegate.engine.act.kinds.signal import signals_of
from tidegate.engine.act.run import Runner
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.ports import SinkError
from tidegate.engine.replay.memory.executors import Alone

FIRED = firings("a", condition=["held", "held"], depth=[1, 3])
IDS = hex_ids(FIRED)


def signal(fields: dict[str, str], types: dict[str, str], action: int = 0, **more: Any) -> Entry:
    text = {
        "action": action,
        "event": "noticed",
        "fields": fields,
        "types": types,
        "group": ["firing_id", "account_id", "detected_at"],
    }
    of = {"text": json.dumps(text), "action": action, "target": None}
    return numbered(1, "a", kind="signal", **{**of, **more})


class NoSink(FakeSink):
    def fields(self, *_: Any) -> Any:
        raise AssertionError("a job for bare columns")


def test_bare_columns_need_no_job() -> None:
    fields = {"account": "account_id", "firing": "firing_id"}
    types = {"account": "bigint", "firing": "string"}
    found = signals_of(signal(fields, types), FIRED, NoSink(), 77)
    assert [s.fields for s in found] == [
        {"account": 7, "firing": IDS[0]},
        {"account": 8, "firing": IDS[1]},
    ]
    assert [(s.event, s.received_at, s.depth, s.instant) for s in found] == [
        ("noticed", 77, 1, None),
        ("noticed", 77, 3, None),
    ]


def test_g30_expressions_of_the_list_need_no_job() -> None:
    fields = {"n": "count(*)", "total": "sum(amount) * 2", "small": "account_id", "word": "'a'"}
    types = {"n": "bigint", "total": "double", "small": "int", "word": "string"}
    found = signals_of(signal(fields, types), FIRED, NoSink(), 77)
    assert [s.fields for s in found] == [
        {"n": 2, "total": 101.0, "small": 7, "word": "a"},
        {"n": 2, "total": 103.0, "small": 8, "word": "a"},
    ]


def test_rows_on_which_spark_may_raise_are_for_the_sink() -> None:
    found = signals_of(signal({"total": "1 / (count(*) - 2)"}, {}), FIRED, FakeSink(), 77)
    assert [s.fields for s in found] == [{"total": 50.5}, {"total": 51.5}]


def test_no_fields() -> None:
    assert [s.fields for s in signals_of(signal({}, {}), FIRED, NoSink(), 77)] == [{}, {}]


@pytest.mark.parametrize(
    ("expression", "kind"),
    [("sum(amount)", "bigint"), ("account_id", "date"), ("amount", "double"), ("1 / 0", "double")],
)
def test_everything_else_is_evaluated_by_the_sink(expression: str, kind: str) -> None:
    found = signals_of(signal({"total": expression}, {"total": kind}), FIRED, FakeSink(), 77)
    assert [s.fields for s in found] == [{"total": 50.5}, {"total": 51.5}]  # rows in any order


def test_g22_an_id_says_which_firing_and_which_action() -> None:
    first = signals_of(signal({}, {}), FIRED, NoSink(), 77)
    again = signals_of(signal({}, {}, order=50, bucket=3), FIRED, NoSink(), 99)
    other = signals_of(signal({}, {}, action=1), FIRED, NoSink(), 77)
    assert [s.id for s in first] == [s.id for s in again] == [f"{one}-0" for one in IDS]
    assert not {s.id for s in first} & {s.id for s in other}


def test_g22_signals_are_settled_with_their_entry() -> None:
    outbox, sink = FakeLedger(FIRED), FakeSink(failing={1: 1})
    times = iter(range(0, 99 * SECOND, SECOND))
    runner = Runner(
        rulebook(rule(name="a")),
        executors(sink, lambda: next(times)),
        outbox,
        lambda: None,
        lambda: next(times),
        Alone(),
    )
    runner.add([signal({"total": "sum(amount)"}, {"total": "bigint"})], [])
    while runner.queues:
        runner.work(Unasked())
    failed, outcome = outbox.outcomes
    assert (failed.state, failed.signals) == ("pending", ())
    assert (outcome.state, outcome.progress.attempts, len(outcome.signals)) == (
        "done",
        2,
        2,
    )
    assert sink.asked == []


def test_a_field_that_cannot_be_evaluated_raises() -> None:
    with pytest.raises(SinkError, match="CAST_INVALID_INPUT"):
        signals_of(signal({"t": "x"}, {"t": "int"}), FIRED, FakeSink(failing={1: 1}), 77)
