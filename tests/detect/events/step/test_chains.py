"""Chains of `;`, `-` and `within` are stepped in one scan: as the reference says, and as the event
graph does node by node."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.reference.cuts import cuts
from tests.reference.examples import example_count
from tests.reference.hits import compared, comparing, detecting, saw
from tests.reference.planted import planted
from tests.reference.strategies import answered
from tests.reference.values import Occurrence
from tests.support.history import (
    batches,
    buckets,
    node_by_node,
    printed,
    searched,
    stepping,
)
from tests.support.rulebooks import loaded
from tidegate import detect
from tidegate.engine.core.values import Carried
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.model import Context, Rulebook

NAMES = "abcd"
CHAINED = [c for c in Context if c is not Context.UNRESTRICTED]
SECOND = 1_000_000


Line = tuple[str, int, dict[str, Any]]


def book(lines: Sequence[tuple[str, str]], *, keyed: bool = True) -> Rulebook:
    """Rules, an expression and a context each, over the signals a, b, c, d and the broadcast t."""
    per = ", per: k" if keyed else ""
    own = {f"r{n}": f"on: '{on}', context: {context}{per}" for n, (on, context) in enumerate(lines)}
    return loaded(NAMES, "t", **own)


@st.composite
def chains(draw: st.DrawFn) -> list[str]:
    """Expressions that begin alike: `a ; b`, `(a ; b) - c within 3 s`, `((a ; b) - c within 3 s)
    ; d` and the like, some of them over an event type twice or over the broadcast t."""
    stages = draw(st.permutations(NAMES))[: draw(st.integers(2, 4))]
    if draw(st.integers(0, 7)) == 7:
        stages[-1] = "t"
    absent = st.sampled_from([n for n in NAMES if n not in stages] or [*NAMES])
    if draw(st.integers(0, 7)) == 7:
        absent = st.sampled_from([*NAMES, "t"])
    text, found = "", list[str]()
    for name in stages:
        text = f"({text} ; {name})" if text else name
        for filter_ in draw(st.lists(st.sampled_from(["-", "within"]), max_size=2)):
            found.append(text)
            operand = draw(absent) if filter_ == "-" else f"{draw(st.integers(0, 5))} s"
            text = f"({text} {filter_} {operand})"
        found.append(text)
    others = st.sampled_from([e for e in found if e not in NAMES])
    return [text, *draw(st.lists(others, max_size=2, unique=True))]


@st.composite
def plain_chains(draw: st.DrawFn) -> str:
    names = draw(st.permutations(NAMES))[: draw(st.integers(2, 4))]
    within = draw(st.sampled_from(["", " within 3 s", " within 4 s"]))
    return " ; ".join(names) + within


def table(lines: Sequence[Line]) -> pa.Table:
    return pa.table(
        {
            "event": pa.array([event for event, _, _ in lines], pa.string()),
            "time": pa.array([time for _, time, _ in lines], pa.int64()),
            **{n: pa.array([f.get(n) for _, _, f in lines], pa.int64()) for n in ("k", "v")},
        }
    )


def check(own: Rulebook, lines: list[Line]) -> None:
    """Detections in order, with their constituents, are those of the reference."""
    expected = saw(answered(own, lines))
    found = detect(own, table(lines))
    shown = [[lines[row] for row in rows] for rows in found.column("constituents").to_pylist()]
    assert shown == [
        [(c.event, c.end, dict(c.fields)) for c in d.constituents if isinstance(c, Occurrence)]
        for d in expected
    ]
    assert found.column("rule").to_pylist() == [d.rule for d in expected]
    assert found.column("start").cast(pa.int64()).to_pylist() == [d.start for d in expected]


@detecting
@given(data=st.data(), keyed=st.booleans())
@example_count(60)
def test_chains_find_what_the_reference_finds(data: st.DataObject, keyed: bool) -> None:
    own = book([(e, "restricted") for e in data.draw(chains())], keyed=keyed)
    check(own, data.draw(planted(own, 12)))


@comparing
@detecting
@given(data=st.data(), keyed=st.booleans())
@example_count(60, least=20)
def test_a_scan_gives_and_carries_what_the_nodes_do(data: st.DataObject, keyed: bool) -> None:
    """Bucket by bucket, also where rules come and go, or are parked, so that chains share other
    nodes; and from an activation on."""
    expressions = [
        e for drawn in data.draw(st.lists(chains(), min_size=1, max_size=2)) for e in drawn
    ]
    own = book([(e, "restricted") for e in expressions], keyed=keyed)
    lines = sorted(data.draw(planted(own, 14)), key=lambda line: line[1])
    assume(lines)
    ends = {*data.draw(cuts(own, lines)), lines[-1][1]}
    activation = lines[data.draw(st.sampled_from([0, 0, len(lines) // 3]))][1]
    carried, seen = [Carried(), Carried()], list[Any]()
    some = st.sets(st.sampled_from([*own.rules]), max_size=len(own.rules) - 1)
    for watermark, part in buckets(lines, ends):
        dropped, parked = data.draw(some), data.draw(some)
        rules = {name: rule for name, rule in own.rules.items() if name not in dropped}
        left = replace(own, rules=rules)
        scanned = Detector(left, dict.fromkeys(rules, activation))
        with node_by_node():
            stepped = Detector(left, dict.fromkeys(rules, activation))
        found, ran = [], []
        for detector, stored in zip((scanned, stepped), carried, strict=True):
            with stepping() as nodes:
                found.append(detector.step(stored, batches(left, part), watermark, parked=parked))
            ran.append(nodes["chain"])
        assert ran[1] == 0
        compared(ran[0] > 0)
        seen += found[1].detections
        assert [printed(d) for d in found[0].detections] == [
            printed(d) for d in found[1].detections
        ]
        carried = [step.carried for step in found]
        assert as_sets(carried[0]) == as_sets(carried[1])
    saw(seen)


def as_sets(carried: Carried) -> dict[str, list[str]]:
    """Carried tables, whose instances stand in any order where they end together."""
    return {
        name: sorted(map(str, table.to_pylist())) for name, table in sorted(carried.tables.items())
    }


@pytest.mark.parametrize("context", CHAINED)
@detecting
def test_chains_in_every_context_find_what_the_reference_finds(context: Context) -> None:
    @given(data=st.data(), keyed=st.booleans())
    @example_count(20)
    def some(data: st.DataObject, keyed: bool) -> None:
        own = book([(data.draw(plain_chains()), context.value)], keyed=keyed)
        check(own, data.draw(planted(own, 10)))

    some()


EXPRESSIONS = [
    "a ; b within 60 s",
    "a ; b ; c within 60 s",
    "(a ; b ; c within 60 s) - d",
    "(a ; c within 60 s) - b",
    "(a ; b - d) ; c",
    "d",
]


def large(count: int, keys: int, gap: int, *, ordered: bool = True) -> pa.Table:
    random = np.random.default_rng(count + keys)
    time = np.cumsum(random.integers(0, gap + 1, count))
    occurrences = pa.table(
        {
            "event": pa.array(np.array(list(NAMES))[random.integers(0, 4, count)]),
            "time": time * 1_000,
            "k": random.integers(-5, keys - 5, count),
            "v": random.integers(0, 3, count),
        }
    )
    return occurrences if ordered else occurrences.take(pa.array(random.permutation(count)))


LARGE = pytest.mark.parametrize(
    ("keys", "gap", "ordered"),
    [(50, 1_000, True), (2_000, 3, True), (2_000, 3, False), (40, 0, True), (2, 1, True)],
    ids=["few ties", "many ties", "in no order", "all simultaneous", "ties of a key"],
)


@LARGE
def test_a_scan_and_the_nodes_detect_the_same(keys: int, gap: int, ordered: bool) -> None:
    own = book([(e, "restricted") for e in EXPRESSIONS])
    occurrences = large(6_000, keys, gap, ordered=ordered)
    with stepping() as ran:
        scanned = detect(own, occurrences)
    assert ran["chain"] >= 8
    with node_by_node(), stepping() as ran:
        stepped = detect(own, occurrences)
    assert ran["chain"] == 0
    assert ran["Sequence"] + ran["Minus"] + ran["Within"] == 12  # four of them beside chains
    assert scanned.equals(stepped)
    assert len(scanned) > (0 if gap else -1)


@LARGE
@pytest.mark.parametrize("context", [c for c in CHAINED if c is not Context.RESTRICTED])
def test_a_scan_and_the_search_detect_the_same(
    context: Context, keys: int, gap: int, ordered: bool
) -> None:
    own = book([(e, context.value) for e in EXPRESSIONS[:4]])
    occurrences = large(300 if keys == 2 else 6_000, keys, gap, ordered=ordered)
    with stepping() as ran:
        scanned = detect(own, occurrences)
    assert ran["Flat"] == len(own.rules)
    assert not ran["Choice"]
    with searched(), stepping() as ran:
        exact = detect(own, occurrences)
    assert ran["Choice"] == len(own.rules)
    assert not ran["Flat"]
    assert scanned.equals(exact)
    assert len(scanned) > (0 if gap else -1)


def test_any_number_of_occurrences_may_be_simultaneous() -> None:
    count = 5_000
    occurrences = pa.table(
        {
            "event": ["b", "a"] * count + ["a", "b"] * count,
            "time": [1] * 2 * count + [2] * 2 * count,
            "k": [k for k in range(count) for _ in "ab"] * 2,
        }
    )
    found = detect(book([("a ; b", "restricted")]), occurrences)
    assert found.column("constituents").to_pylist() == [
        [2 * k + 1, 2 * count + 2 * k + 1] for k in range(count)
    ]


def test_keys_of_texts_and_of_far_apart_numbers() -> None:
    own = "rulebook: b\nevents: {{a: {{signal: {{k: {0}}}}}, b: {{signal: {{k: {0}}}}}}}\n"
    own += "rules: {{r0: {{on: a ; b, context: restricted, per: k}}}}\n"
    for kind, values in (
        ("string", ["y", "x", "y", "x"]),
        ("bigint", [10**15, -(10**15), 10**15, -(10**15)]),
    ):
        occurrences = pa.table({"event": list("aabb"), "time": [1, 1, 2, 2], "k": values})
        found = detect(own.format(kind), occurrences)
        assert found.column("k").to_pylist() == sorted(values[:2])
        assert found.column("constituents").to_pylist() == [[1, 3], [0, 2]]


def test_a_rule_whose_action_another_rule_waits_for_may_be_a_chain() -> None:
    own = """
rulebook: b
events: {a: {signal: {}}, b: {signal: {}}}
rules: {r: {on: a ; b, do: [{signal: a}]}, s: {on: end_of r or (a and b)}}
"""
    found = detect(own, pa.table({"event": ["a", "b"], "time": [1, 2]}))
    assert found.select(["rule", "constituents"]).to_pylist() == [
        {"rule": "r", "constituents": [0, 1]},
        {"rule": "s", "constituents": [0, 1]},
    ]


def test_what_is_absent_at_the_instant_of_the_first_event_keeps_it_out() -> None:
    occurrences = pa.table({"event": ["a", "b", "c"], "time": [1, 1, 2], "k": [7, 7, 7]})
    assert len(detect(book([("(a - b) ; c", "restricted")]), occurrences)) == 0
    assert len(detect(book([("(a - d) ; c", "restricted")]), occurrences)) == 1


def test_named_clock_events_happen_though_no_row_says_so() -> None:
    own = """
rulebook: b
events: {a: {signal: {}}, minute: {cron: "* * * * *"}}
rules: {r: {on: a ; minute}, s: {on: minute, context: restricted}, t: {on: a - minute}}
"""
    found = detect(own, pa.table({"event": ["a", "a"], "time": [1_000_000, 60_000_000]}))
    assert found.select(["rule", "constituents"]).to_pylist() == [
        {"rule": "t", "constituents": [0]},
        {"rule": "r", "constituents": [0]},
        {"rule": "s", "constituents": []},
    ]


def test_g13_what_is_absent_is_of_each_node_that_looks_at_it() -> None:
    """A parked rule has not seen a c that the node which it shares has seen."""
    own = book([("(a ; b) - c", "restricted"), ("(((a ; b) - c) ; d) - c", "restricted")])
    fields = {"k": 1, "v": 1}
    for way in (nullcontext, node_by_node):
        with way():
            detector = Detector(own, {"r0": 0, "r1": 0})
        carried, seen = Carried(), list[str]()
        for time, event, parked in ((1, "a", ()), (2, "b", ()), (3, "c", ["r1"]), (4, "d", ())):
            given = batches(own, [(event, time, fields)])
            found, carried, _ = detector.step(carried, given, time, parked=parked)
            seen += [d.rule for d in found]
        assert seen == ["r0", "r1"]
