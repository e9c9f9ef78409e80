"""What carrying on means: state, sharing, activation, labels."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.reference.examples import fewer
from tests.support.history import printed, through_ipc
from tests.support.rulebooks import loaded
from tidegate.engine.core.values import Batch, Carried, Detections
from tidegate.engine.detect.events.step.detector import ABSENT, Detector
from tidegate.rules.errors import EngineError, InputError
from tidegate.rules.model import Rulebook


def book(**expressions: str) -> Rulebook:
    return loaded("abc", "t", **{name: f"on: '{on}', per: k" for name, on in expressions.items()})


def batch(
    event: str, time: Sequence[int], depth: Sequence[int] | None = None, **columns: Any
) -> Batch:
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    ids = np.array([[t, 1] for t in time], dtype=np.uint64).reshape(-1, 2)
    depths = None if depth is None else np.array(depth, dtype=np.int32)
    return Batch(event, np.array(time), np.arange(len(time)), table, {"set": ids}, depths)


def steps(
    rulebook: Rulebook, *buckets: Mapping[str, Batch], activation: int = 0
) -> tuple[list[Detections], Carried]:
    detector = Detector(rulebook, dict.fromkeys(rulebook.rules, activation))
    carried, found = Carried(), []
    for bucket in buckets:
        watermark = max(int(b.time[-1]) for b in bucket.values())
        detections, carried, _ = detector.step(through_ipc(carried), bucket, watermark)
        found += detections
    return found, carried


def nodes(carried: Carried) -> set[str]:
    return {name for name in carried.tables if name.startswith("node:")}


@pytest.mark.parametrize(
    ("first", "then"),
    [(7, 7.0), (7.0, 7), (7, Decimal("7.00")), (Decimal("7.0"), 7.0), (Decimal("7.0"), 7)],
    ids=str,
)
def test_a_key_is_carried_to_a_bucket_where_it_has_another_type(first: Any, then: Any) -> None:
    """So are the parameters of what is carried."""
    other = type(first)(9)
    found, _ = steps(
        book(r="a ; b", s="any(2, a*)"),
        {"a": batch("a", [1, 2], k=[first, other], v=[first, other])},
        {"a": batch("a", [3], k=[then], v=[then]), "b": batch("b", [4, 5], k=[then, then])},
    )
    assert [(d.rule, d.keys.column("k").to_pylist()) for d in found] == [("r", [7, 7]), ("s", [7])]
    assert [len(d.event_row) for d in found] == [4, 2]


def test_keys_that_do_not_compare_with_those_carried_are_named() -> None:
    with pytest.raises(InputError, match=r"k of b \(string\)") as caught:
        steps(book(r="a ; b"), {"a": batch("a", [1], k=[7])}, {"b": batch("b", [4], k=["7"])})
    assert "int64 and string are never equal" in str(caught.value)


def test_a_parameter_that_does_not_go_with_what_is_carried_is_named() -> None:
    buckets = [{"a": batch("a", [n], k=[1], v=[v])} for n, v in ((1, 7), (2, "7"))]
    with pytest.raises(InputError, match="column v of a was int64 and is string now"):
        steps(book(r="any(3, a*)"), *buckets)


def test_occurrences_before_the_activation_are_not_seen() -> None:
    found, _ = steps(
        book(r="a ; b"),
        {"a": batch("a", [1], k=[1])},
        {"a": batch("a", [5], k=[1]), "b": batch("b", [3, 9], k=[1, 1])},
        activation=5,
    )
    assert [(d.start.tolist(), d.end.tolist()) for d in found] == [([5], [9])]


def test_carried_occurrences_keep_parameters_ids_and_depth() -> None:
    (found,), _ = steps(
        book(r="a ; b"),
        {"a": batch("a", [1, 2], depth=[0, 3], k=[1, 1], v=[10, 20])},
        {"b": batch("b", [9], k=[1], v=[30])},
    )
    a = found.batches["a"]
    at = found.event_row[0]
    assert a.ids["set"][at].tolist() == [2, 1]
    assert a.depth is not None
    assert a.depth[at] == 3
    assert [c["v"] for c in printed(found)[0]["constituents"]] == [20, 30]


def test_g12_columns_added_in_mid_stream_are_null_before() -> None:
    (found,), _ = steps(
        book(r="a ; a"),
        {"a": batch("a", [1], k=[1])},
        {"a": batch("a", [2], k=[1], v=[5])},
    )
    assert [c["v"] for c in printed(found)[0]["constituents"]] == [None, 5]


def test_s07_a_broadcast_counts_for_keys_first_seen_later() -> None:
    (found,), _ = steps(
        book(r="t ; a"),
        {"t": Batch("t", np.array([1]), np.array([0]), pa.table({"x": [0]}))},
        {"a": batch("a", [2, 3], k=[1, 2])},
    )
    assert found.keys.column("k").to_pylist() == [1, 2]
    assert found.start.tolist() == [1, 1]


def test_s07_a_broadcast_terminator_is_detected_for_every_key_that_waits() -> None:
    (found,), _ = steps(
        book(r="a ; t"),
        {"a": batch("a", [1, 2, 2], k=[2, 1, None])},
        {"t": Batch("t", np.array([5]), np.array([0]), pa.table({"x": [0]}))},
    )
    assert found.keys.column("k").to_pylist() == [None, 1, 2]  # ordered by key, null first


def test_s07_what_is_taken_from_one_key_stays_with_the_others() -> None:
    def opening(*time: int) -> Batch:
        return Batch("t", np.array(time), np.arange(len(time)), pa.table({"x": [0] * len(time)}))

    (found,), _ = steps(
        book(r="((t ; t) - a) ; b"),
        {"t": opening(1)},
        {"a": batch("a", [2], k=[1])},
        {"t": opening(3)},
        {"b": batch("b", [4, 5], k=[1, 2])},
    )
    assert found.keys.column("k").to_pylist() == [2]


def test_g09_equal_subexpressions_are_one_node() -> None:
    rulebook = book(r="(a and b) ; c", q="(a and b) ; a")
    _, both = steps(rulebook, {"a": batch("a", [1], k=[1]), "b": batch("b", [1], k=[1])})
    single = replace(rulebook, rules={"r": rulebook.rules["r"]})
    _, one = steps(single, {"a": batch("a", [1], k=[1]), "b": batch("b", [1], k=[1])})
    assert len(nodes(one)) == 2  # the conjunction, and the sequence that waits for c
    assert len(nodes(both)) == 3


def test_g09_however_they_are_written() -> None:
    rulebook = book(r="((b and a) ; c) within 9", q="((a and b) ; c) within 20 within 9")
    _, carried = steps(rulebook, {"a": batch("a", [1], k=[1]), "b": batch("b", [1], k=[1])})
    assert len(nodes(carried)) == 2


def test_labels_stay_where_a_law_would_drop_them() -> None:
    (found,) = steps(book(r="a or x: (b - b)"), {"a": batch("a", [1], k=[1])})[0]
    assert found.labels == ("x",)
    assert found.label_spans["x"][0].tolist() == [ABSENT]


def test_s09_what_s1_does_not_tell_apart_stays_in_the_order_written() -> None:
    for on, sizes in (("(b ; b) or A*(b, c, b)", [2]), ("A*(b, c, b) or (b ; b)", [0])):
        (found,) = steps(book(r=on), {"b": batch("b", [1, 2], k=[1, 1])})[0]
        assert np.diff(found.offsets).tolist() == sizes


def test_an_occurrence_in_two_roles_shows_the_label_written_first() -> None:
    (found,) = steps(book(r="y: (a) and x: (a)"), {"a": batch("a", [1], k=[1])})[0]
    assert found.label is not None
    assert [found.labels[i] for i in found.label] == ["y"]


def test_a_rule_that_goes_takes_only_its_own_nodes_along() -> None:
    rulebook = book(r="(a and b) ; c", q="(a and b) ; a")
    first = {"a": batch("a", [1], k=[1]), "b": batch("b", [1], k=[1])}
    _, before = steps(rulebook, first)
    left = replace(rulebook, rules={"r": rulebook.rules["r"]})
    found, after, _ = Detector(left, {"r": 0}).step(before, {"c": batch("c", [2], k=[1])}, 2)
    assert [len(d) for d in found] == [1]
    assert nodes(after) < nodes(before)
    assert nodes(before) - nodes(after) <= after.changed


def test_what_only_a_rule_that_is_gone_has_taken_goes_though_others_take_its_event() -> None:
    """Nothing happens to the other one in that step."""
    rulebook = loaded("abc", r="on: a ; b, context: chronicle", s="on: a ; c")
    _, before = steps(rulebook, {"a": batch("a", [1, 2])})
    assert before.tables["occ:a/0"]["time"].to_pylist() == [1, 2]
    left = replace(rulebook, rules={"s": rulebook.rules["s"]})
    _, after, _ = Detector(left, {"s": 0}).step(through_ipc(before), {}, 3)
    assert after.tables["occ:a/0"]["time"].to_pylist() == [2]


def test_s08_what_a_used_rule_has_detected_keeps_what_it_stands_for() -> None:
    """Nobody else needs the a after the x, which touches no rule that uses `pair`."""
    rulebook = loaded(
        "abcx",
        pair="on: a ; b, context: chronicle",
        both="on: pair ; c",
        other="on: a ; x, context: chronicle",
    )
    buckets = [{event: batch(event, [time])} for time, event in enumerate("abxc", start=1)]
    found, _ = steps(rulebook, *buckets)
    assert [d.rule for d in found] == ["pair", "other", "both"]
    times = [one["time"] for one in printed(found[-1])[0]["constituents"]]
    assert times == [1e-6, 2e-6, 4e-6]


def test_a_rule_whose_events_do_not_come_is_not_written_again() -> None:
    rulebook = book(r="a ; b", q="c ; b")
    detector = Detector(rulebook, {"r": 0, "q": 0})
    _, before, _ = detector.step(Carried(), {"a": batch("a", [1], k=[1])}, 1)
    _, after, _ = detector.step(through_ipc(before), {"c": batch("c", [2], k=[1])}, 2)
    assert {*before.tables} < {*after.tables}
    assert not after.changed & before.tables.keys()


def test_a_disabled_rule_detects_nothing() -> None:
    rulebook = book(r="a or b")
    disabled = {"r": replace(rulebook.rules["r"], enabled=False)}
    assert steps(replace(rulebook, rules=disabled), {"a": batch("a", [1], k=[1])})[0] == []


def test_labels_give_each_detection_their_span() -> None:
    (found,), _ = steps(
        book(r="x: (a ; b) or y: (c)"),
        {"a": batch("a", [1], k=[1]), "b": batch("b", [3], k=[1]), "c": batch("c", [4], k=[1])},
    )
    assert found.labels == ("x", "y")
    assert found.label is not None
    assert found.label.tolist() == [0, 0, 1]
    assert [s.tolist() for s in found.label_spans["x"]] == [[1, ABSENT], [3, ABSENT]]
    assert [s.tolist() for s in found.label_spans["y"]] == [[ABSENT, 4], [ABSENT, 4]]


@pytest.mark.parametrize(
    ("on", "bound"),
    [
        ("a", 0),
        ("a or b", 0),
        ("a - b", 0),
        ("a ; b", 1),
        ("a and b", 2),
        ("(a ; b) within 3 us - c", 2),
        ("a ; (b ; c)", 3),
        ("a ; (b and c)", 5),
        ("any(2, a, b, c)", 3),
    ],
)
def test_what_is_carried_per_key_is_bounded(on: str, bound: int) -> None:
    draw = random.Random(7)
    detector = Detector(book(r=on), {"r": 0})
    carried, most = Carried(), 0
    for time in range(fewer(400, least=50)):
        event = draw.choice("abc")
        found = {event: batch(event, [time], k=[1])}
        carried = detector.step(carried, found, time)[1]
        most = max(most, sum(carried.tables[name].num_rows for name in nodes(carried)))
    assert most <= bound
    assert (most > 0) == (bound > 0)


def test_within_lets_go_of_what_is_too_old() -> None:
    detector = Detector(book(r="a ; b within 5 us"), {"r": 0})
    _, carried, _ = detector.step(Carried(), {"a": batch("a", range(100), k=list(range(100)))}, 99)
    (name,) = nodes(carried)
    assert carried.tables[name].column("k0").to_pylist() == [95, 96, 97, 98, 99]


def test_carried_tables_of_another_version_are_refused() -> None:
    _, carried = steps(book(r="a ; b"), {"a": batch("a", [1], k=[1])})
    tables = {
        n: t.replace_schema_metadata({b"tidegate.carried": b"9"}) for n, t in carried.tables.items()
    }
    with pytest.raises(EngineError, match="schema version"):
        Detector(book(r="a ; b"), {"r": 0}).step(Carried(tables), {"a": batch("a", [2], k=[1])}, 2)


def test_s01_of_simultaneous_rows_the_greatest_parameters_are_taken() -> None:
    for order in ([1, 3, None, 2], [3, 2, 1, None]):
        (found,), _ = steps(
            book(r="a ; b"),
            {"a": batch("a", [1] * 4, k=[1] * 4, v=order)},
            {"b": batch("b", [2], k=[1], v=[0])},
        )
        assert [c["v"] for c in printed(found)[0]["constituents"]] == [3, 0]


@pytest.mark.parametrize("context", ["recent", "chronicle", "cumulative"])
def test_what_is_consumed_is_carried_alike_wherever_a_history_is_cut(context: str) -> None:
    """A c that began and ended pairs stands once among what is consumed, by its first role."""
    rulebook = loaded("bc", r=f"on: 'every(1, c ; (b or c))', context: {context}")
    early = {"c": batch("c", [1, 2], v=[0, 0])}
    late = {"b": batch("b", [3, 4], v=[0, 0])}
    _, whole = steps(rulebook, early | late)
    _, apart = steps(rulebook, early, late)
    assert [*map(str, whole.tables.values())] == [*map(str, apart.tables.values())]
    assert len(nodes(whole)) == 2
