"""A history that is detected in parts, by key, is the history that is detected whole."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.detect.events.step.test_component_detector import of_two_keys
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, noted, noting, saw
from tests.support.rulebooks import loaded
from tidegate import detect
from tidegate.engine.detect import keyed_history
from tidegate.engine.detect.keyed_history import Facts, KeyedHistory
from tidegate.rules import load
from tidegate.rules.checks.gaps import SIMULATED
from tidegate.rules.errors import InputError
from tidegate.rules.model import Rulebook, SignalEvent

SCRIPTED = """
rulebook: bank
events:
  paid: {signal: {account: bigint, amount: double}}
  alarm: {signal: {account: bigint}}
scripts:
  large:
    text: |
      in {long account; double amount;} paid group(paid.account)
      out double sum
      (paid(x) {s = s + x.amount; !> sum(s);} elapse[5 seconds]()? {s = s;})*
rules:
  sums: {on: sum, per: account}
  twice: {on: paid ; alarm, per: account}
"""
KEYED = """
rulebook: b
events: {a: {signal: {k: int}}, b: {signal: {j: double}}}
rules: {r: {on: a ; b, per: {a: k, b: j}}}
"""


LOADS = """
rulebook: loads
tables: {t: {path: /t}}
events:
  row: {signal: {k: bigint}}
  load: {on: transaction, table: t}
rules:
  row_then: {on: row ; begin_of load, per: {row: k}}
  begun: {on: begin_of load}
"""


def table_of(book: Rulebook, history: Sequence[Line]) -> pa.Table:
    """Lines as occurrences, with a column `n` that numbers them."""
    signals = [e for e in book.events.values() if isinstance(e, SignalEvent)]
    names = sorted({field for event in signals for field in event.fields})
    return pa.table(
        {
            "event": pa.array([event for event, _, _ in history], pa.string()),
            "time": pa.array([time for _, time, _ in history], pa.int64()),
            **{n: pa.array([f.get(n) for _, _, f in history], pa.int64()) for n in names},
            "n": pa.array([*range(len(history))], pa.int64()),
        }
    )


def keyed(book: Rulebook, table: pa.Table, cores: int) -> KeyedHistory:
    counts = table.group_by("event").aggregate([("time", "count"), ("time", "min")])
    events, rows, first = (
        counts.column(name).to_pylist() for name in ("event", "time_count", "time_min")
    )
    last = max(table.column("time").to_pylist(), default=0)
    facts = Facts(dict(zip(events, rows, strict=True)), dict(zip(events, first, strict=True)), last)
    return KeyedHistory(book, facts, table.schema, "n", cores)


def in_parts(history: KeyedHistory, table: pa.Table) -> pa.Table:
    """As executors do it, all functions pickled; rows come in any order."""
    table = table.take(pa.array(np.random.default_rng(1).permutation(len(table))))
    sent = frozenset[str]().union(*history.sent)
    places = pickle.loads(pickle.dumps(history.places()))
    part = pickle.loads(pickle.dumps(history.part(_of(table, sent))))
    keys = {name: table.column(name).combine_chunks() for name in history.keys}
    of = places(table.column("event").combine_chunks(), keys)
    row, place = pc.list_parent_indices(of), of.flatten()
    found = [
        part(number, table.take(row.filter(pc.equal(place, number))))
        for number in sorted({*place.to_pylist()})
    ]
    if history.reasons:
        found.append(history.detected_here(_of(table, history.here)))
    return pa.concat_tables([history.schema.empty_table(), *found])


def _of(table: pa.Table, events: frozenset[str]) -> pa.Table:
    return table.filter(pc.is_in(table.column("event"), pa.array([*events], pa.string())))


def lines(found: pa.Table) -> list[str]:
    return sorted(map(str, found.to_pylist()))


@noting(in_parts=4, sent=4, here=10)
@detecting
def test_a_history_in_parts_is_the_history_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_history, "PART_ROWS_MIN", 1)

    @given(data=st.data())
    @example_count(80, 10)
    def some(data: st.DataObject) -> None:
        book, history = data.draw(of_two_keys())
        table = table_of(book, history)
        own = keyed(book, table, data.draw(st.integers(1, 5)))
        noted("in parts", own.parts > 1 and bool(own.sent))
        noted("sent", any(own.sent))
        noted("here", bool(own.reasons) and bool(own.sent))
        assert lines(in_parts(own, table)) == saw(lines(detect(book, table, "n")))

    some()


def test_g26_keys_of_several_types_are_of_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_history, "PART_ROWS_MIN", 1)
    count = 200
    table = pa.table(
        {
            "event": ["a"] * count + ["b"] * count,
            "time": [*range(2 * count)],
            "k": pa.array([*range(count), *[None] * count], pa.int32()),
            "j": pa.array([*[None] * count, *map(float, range(count))], pa.float64()),
            "n": [str(n) for n in range(2 * count)],
        }
    )
    own = keyed(load(KEYED), table, 4)
    assert own.parts == 4
    found = in_parts(own, table)
    assert len(found) == count
    assert lines(found) == lines(detect(KEYED, table, "n"))


def test_rules_over_what_scripts_emit_are_detected_in_one_place() -> None:
    book = load(SCRIPTED, features=SIMULATED)
    table = pa.table(
        {
            "event": ["paid", "paid", "alarm"],
            "time": [1, 2, 3],
            "account": [7, 8, 7],
            "amount": [1.5, 2.5, None],
            "n": [0, 1, 2],
        }
    )
    own = keyed(book, table, 1)
    assert own.reasons == {"sums": "script large emits sum"}
    found = in_parts(own, table)
    assert len(found) == 3
    assert lines(found) == lines(detect(book, table, "n"))


STRATA = """
rulebook: strata
events: {a: {signal: {k: bigint}}, b: {signal: {k: bigint}}}
scripts:
  s: {text: "in {long k;} r out {long k;} up (r(x) {!> up({k: x.k});})*"}
rules:
  r: {on: a, per: k}
  q: {on: up, per: k}
  p: {on: a ; b, per: k}
  n: {on: b, per: k}
"""


def test_rules_before_and_after_a_script_are_detected_once() -> None:
    book = load(STRATA, features=SIMULATED)
    table = pa.table({"event": ["a", "b"], "time": [1, 2], "k": [7, 7], "n": [0, 1]})
    own = keyed(book, table, 1)
    assert {*own.reasons} == {"r", "q"}
    found = in_parts(own, table)
    assert sorted(found.column("rule").to_pylist()) == ["n", "p", "q", "r"]
    assert lines(found) == lines(detect(book, table, "n"))


def test_a_script_whose_emissions_no_enabled_rule_looks_at_keeps_no_rule_in_one_place() -> None:
    text = STRATA.replace("q: {on: up, per: k}", "q: {on: up, per: k, enabled: false}")
    book = load(text, features=SIMULATED)
    table = pa.table({"event": ["a", "b"], "time": [1, 2], "k": [7, 7], "n": [0, 1]})
    own = keyed(book, table, 1)
    assert (own.reasons, own.here) == ({}, frozenset())


def test_s10_the_beginning_of_a_transaction_is_sent_to_all_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keyed_history, "PART_ROWS_MIN", 1)
    book = load(LOADS, features=SIMULATED)
    rows = [("row", 10, 1), ("load", 20, None), ("row", 20, 1), ("row", 30, 2), ("load", 40, None)]
    event, time, k = (list(column) for column in zip(*rows, strict=True))
    table = pa.table({"event": event, "time": time, "k": pa.array(k, pa.int64()), "n": [*range(5)]})
    own = keyed(book, table, 3)
    assert (own.sent, {*own.reasons}) == ([{"load"}], {"begun"})
    found = in_parts(own, table)
    assert lines(found) == lines(detect(book, table, "n"))
    assert sorted(found.column("rule").to_pylist()) == ["begun"] * 2 + ["row_then"] * 3


def test_parts_are_as_many_as_a_worker_can_hold() -> None:
    book = loaded("ab", r="on: a ; b, per: k")
    counts = {"a": 7_000_000, "b": 500_000}
    schema = pa.schema([("event", pa.string()), ("time", pa.int64()), ("k", pa.int64()),
                        ("v", pa.int64()), ("n", pa.int64())])  # fmt: skip
    facts = Facts(counts, dict.fromkeys(counts, 0), 9)
    assert KeyedHistory(book, facts, schema, "n", 2).parts == 8
    assert KeyedHistory(book, facts, schema, "n", 64).parts == 64
    alone = Facts({"a": 1}, {"a": 0}, 9)
    assert KeyedHistory(load(KEYED), alone, schema, "n", 2).keys == ["k"]  # there is no j
    few = Facts({"a": 120_000}, {"a": 0}, 9)
    assert KeyedHistory(book, few, schema, "n", 64).parts == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n": pa.list_(pa.int64())}, "column n is list<.*>, which has no order"),
        ({"n": None}, "occurrences lack the column n"),
        ({"k": None}, "occurrences of a lack the column k, a key of r"),
        ({"k": pa.list_(pa.int64())}, "list<.*> is no type of a key"),
    ],
)
def test_columns_that_are_wrong_are_named(change: dict[str, pa.DataType | None], said: str) -> None:
    book = loaded("ab", r="on: a ; b, per: k")
    kinds = {"event": pa.string(), "time": pa.int64(), "k": pa.int64(), "n": pa.int64()} | change
    schema = pa.schema([(name, kind) for name, kind in kinds.items() if kind is not None])
    with pytest.raises(InputError, match=said):
        KeyedHistory(book, Facts({"a": 1}, {"a": 0}, 0), schema, "n", 1)
