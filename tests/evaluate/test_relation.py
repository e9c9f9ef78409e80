"""Detections -> relation: a row a constituent (semantics 5)."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tests.support.detections import batch, detections
from tests.support.rulebooks import EVENTS, SCHEMAS, event, rule, rulebook
from tidegate.engine.core.values import Detections
from tidegate.engine.evaluate.relation import ABSENT, cast_to, parameter_relation
from tidegate.engine.evaluate.shape import shape_of
from tidegate.rules.model import Rule

MOVED = [
    {"id": 1, "account": 7, "amount": Decimal("5.00"), "kind": "w"},
    {"id": 2, "account": 8, "amount": Decimal("6.50"), "kind": None},
]
NOTICED = [{"account": 7, "note": "n"}, {"account": None, "note": "m"}]


def relation(of: Rule, found: Detections, *wanted: str, events: Any = EVENTS) -> pa.Table:
    shape = shape_of(rulebook(of, events=events), of, SCHEMAS)
    schema = shape.schema if not wanted else shape.narrowed(wanted)
    ids = pa.array([f"{n:032x}" for n in range(len(found))])
    made = parameter_relation(shape, found, ids, schema)
    made.validate(full=True)
    assert made.schema == schema
    return made


def values(made: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in made.select(names).to_pylist()]


def test_a_row_a_constituent_in_order_with_what_its_event_type_has() -> None:
    of = rule("moved and noticed")
    book = rulebook(of)
    batches = [batch(book, "moved", MOVED, [10, 30]), batch(book, "noticed", NOTICED, [20, 25])]
    found = detections(
        of, batches, [[("moved", 0), ("noticed", 0)], [("noticed", 1), ("moved", 1)]]
    )
    made = relation(of, found)
    assert values(made, "firing_id", "event_type", "id", "account", "amount", "note") == [
        (f"{0:032x}", "moved", 1, 7, Decimal("5.00"), None),
        (f"{0:032x}", "noticed", None, 7, None, "n"),
        (f"{1:032x}", "noticed", None, None, None, "m"),
        (f"{1:032x}", "moved", 2, 8, Decimal("6.50"), None),
    ]
    micros = made.select(["occurred_at", "started_at", "detected_at"]).to_pylist()
    assert [tuple(t.microsecond for t in row.values()) for row in micros] == [
        (10, 10, 20), (20, 10, 20), (25, 25, 30), (30, 25, 30),
    ]  # fmt: skip


def test_a_firing_without_constituents_has_one_row_of_nulls() -> None:
    of = rule("moved or noticed")
    batches = [batch(rulebook(of), "moved", MOVED, [10, 30])]
    found = detections(of, batches, [[], [("moved", 1)], []], times=[(1, 2), (0, 0), (40, 50)])
    made = relation(of, found)
    assert values(made, "firing_id", "event_type", "id", "occurred_at") [0] == (
        f"{0:032x}", None, None, None,
    )  # fmt: skip
    assert values(made, "event_type", "id") == [(None, None), ("moved", 2), (None, None)]
    assert [t.microsecond for t in made["detected_at"].to_pylist()] == [2, 30, 50]


def test_nothing_but_empty_firings() -> None:
    of = rule("moved")
    found = detections(of, [], [[], []], times=[(1, 2), (3, 4)])
    assert values(relation(of, found), "event_type", "id") == [(None, None)] * 2


def test_no_firings_at_all() -> None:
    of = rule("moved ; noticed")
    assert relation(of, detections(of, [], [])).num_rows == 0


def test_keys_and_labels_and_spans() -> None:
    of = rule("L:(moved) or noticed", per={"moved": ["account"], "noticed": ["account"]})
    book = rulebook(of)
    batches = [batch(book, "moved", MOVED, [10, 30]), batch(book, "noticed", NOTICED, [20, 25])]
    spans = {"L": (np.array([10, ABSENT]), np.array([10, ABSENT]))}
    found = detections(
        of,
        batches,
        [[("moved", 0)], [("noticed", 0)]],
        keys=pa.table({"account": pa.array([7, 9], pa.int32())}),
        labels=["L"],
        label=[0, -1],
        spans=spans,
    )
    made = relation(of, found)
    assert values(made, "account", "label") == [(7, "L"), (9, None)]  # the key wins
    assert [t and t.microsecond for t in made["L_start"].to_pylist()] == [10, None]
    assert made.schema.field("account").type == pa.int64()


def test_values_are_widened_to_the_common_type() -> None:
    of = rule("moved ; changed")
    book = rulebook(of)
    old = {"account": 3, "amount": 1, "owner": "o"}
    rows = [{"account": 3, "amount": 2, "owner": "o", "old": old}]
    batches = [batch(book, "moved", MOVED, [10, 30]), batch(book, "changed", rows, [40])]
    found = detections(of, batches, [[("moved", 1), ("changed", 0)]])
    made = relation(of, found)
    assert values(made, "account", "amount") == [(8, Decimal("6.50")), (3, Decimal("2.00"))]
    assert made["old"].to_pylist() == [None, old]


def test_only_what_is_wanted_is_made_and_of_old_only_single_fields() -> None:
    of = rule("changed")
    old = {"account": 3, "amount": 1, "owner": "o"}
    rows = [{"account": 3, "amount": 2, "owner": "o", "old": old}]
    found = detections(of, [batch(rulebook(of), "changed", rows, [40])], [[("changed", 0)]])
    made = relation(of, found, "amount", "old.owner")
    assert values(made, "amount", "old") == [(2, {"owner": "o"})]
    assert "account" not in made.column_names


def test_a_column_that_the_table_has_not_yet_is_null() -> None:
    of = rule("moved")
    narrow = batch(rulebook(of), "moved", MOVED, [10, 30])
    found = detections(of, [narrow], [[("moved", 0)]])
    batches = {"moved": replace(narrow, table=narrow.table.drop_columns(["kind"]))}
    made = relation(of, replace(found, batches=batches))
    assert values(made, "id", "kind") == [(1, None)]


def test_renamed_parameters_stand_under_their_own_names() -> None:
    renamed = event("renamed", "moves", columns={"total": "amount"})
    of = rule("renamed ; moved")
    book = rulebook(of, events=(*EVENTS, renamed))
    batches = [
        batch(book, "renamed", [{"total": Decimal("1.00")}], [5]),
        batch(book, "moved", MOVED, [10, 30]),
    ]
    found = detections(of, batches, [[("renamed", 0), ("moved", 0)]])
    made = relation(of, found, events=(*EVENTS, renamed))
    assert values(made, "total", "amount") == [
        (Decimal("1.00"), None), (None, Decimal("5.00")),
    ]  # fmt: skip


@given(st.integers(1, 38).flatmap(lambda n: st.tuples(
    st.integers(-(10**n) + 1, 10**n - 1), st.just(n), st.integers(0, n)
)))  # fmt: skip
@example((2**53 + 1, 16, 1))
@example_count(300, least=25)
def test_a_decimal_beside_doubles_is_the_nearest_double(drawn: tuple[int, int, int]) -> None:
    """As in SQL. Arrow's own cast often gives the one next to it."""
    digits, precision, scale = drawn
    value = Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))
    kinds = [pa.decimal128(precision, scale), pa.decimal256(76, scale)]
    for kind in kinds:
        made = cast_to(pa.chunked_array([pa.array([value, None], kind)]), pa.float64())
        assert made.to_pylist() == [float(value), None]
