"""The static bound is true: what the detector stores is counted, on random histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.reference.evaluate import Line
from tests.reference.examples import example_count, fewer
from tests.reference.hits import detecting, saw
from tests.reference.planted import planted
from tests.reference.strategies import EVERYTHING, NAMES, SECOND, expressions
from tests.support.history import batches
from tests.support.rulebooks import loaded
from tidegate.engine.core.clocks import clock_batches
from tidegate.engine.core.values import Carried
from tidegate.engine.detect.events.kernels.columns import LAST
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.algebra.bound import Bound, Bounds
from tidegate.rules.errors import EngineError, InputError
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.nodes import Expression, Instant, Seq, Within
from tidegate.rules.model import Context, Rulebook

History = Sequence[tuple[str, int, int]]  # event type, second, key
LINES = fewer(100, least=30)  # the last of the bounds below is reached with 24


def book(on: str, per: str = "", context: Context = Context.RESTRICTED) -> Rulebook:
    return loaded("abct", r=f"on: '{on}', context: {context}{per}")


def steps(rulebook: Rulebook, history: History) -> Iterable[tuple[int, Carried]]:
    """What is carried after each instant at which an event of the rule happens: until then the
    detector does not look at the rule, so it forgets nothing."""
    detector = Detector(rulebook, dict.fromkeys(rulebook.rules, 0))
    carried, before = Carried(), -SECOND
    for second, lines in groupby(sorted(history, key=lambda line: line[1]), lambda line: line[1]):
        now = second * SECOND
        bucket: list[Line] = [(name, now, {"k": key, "v": 0}) for name, _, key in lines]
        arrivals = clock_batches(rulebook, before + 1, now) | batches(rulebook, bucket)
        carried, before = detector.step(carried, arrivals, now)[1], now
        if detector.timed or detector.events & {name for name, *_ in bucket}:
            yield now, carried


def stored(carried: Carried) -> Counter[object]:
    """Instances carried, by key; None: those made of broadcasts only."""
    counts: Counter[object] = Counter()
    for name, table in carried.tables.items():
        if name.startswith("node:"):
            table = table.filter(pc.not_equal(table.column("end"), LAST))
            keyed = "k0" in table.column_names
            counts.update(table.column("k0").to_pylist() if keyed else [0] * len(table))
    return counts


def oldest(carried: Carried) -> int | None:
    starts = [
        start
        for name, table in carried.tables.items()
        if name.startswith("node:")
        for start, end in zip(*table.select(["start", "end"]).to_pydict().values(), strict=True)
        if end != LAST
    ]
    return min(starts, default=None)


def check(found: Bound, now: int, carried: Carried, keys: int) -> None:
    counts = stored(carried)
    if found.instances_max is not None:
        assert counts.total() <= found.instances_max * (keys + 1)
        assert all(n <= found.instances_max for key, n in counts.items() if key is not None)
    if found.occurrences_max is not None:
        rows = sum(t.num_rows for n, t in carried.tables.items() if n.startswith("occ:"))
        assert rows <= found.occurrences_max * (keys + 1)
    first = oldest(carried)
    if found.forgets_micros is not None and first is not None:
        assert now - first <= found.forgets_micros


@detecting
@given(
    rule=st.tuples(expressions(EVERYTHING, depth=3), st.just(Context.RESTRICTED))
    | st.tuples(expressions((*EVERYTHING, Instant), depth=2), st.sampled_from(Context))
    | st.tuples(expressions((Seq, Within, Instant), depth=3), st.sampled_from(Context)),
    data=st.data(),
    keyed=st.booleans(),
)
@example_count(40)
def test_never_more_is_stored_than_the_bound(
    rule: tuple[Expression, Context], data: st.DataObject, keyed: bool
) -> None:
    on, context = rule
    try:
        rulebook = book(format_expression(on), ", per: k" if keyed else "", context)
        Detector(rulebook, {"r": 0})
    except (EngineError, InputError):  # not built in this context, or no key in every instance
        assume(False)
    found = Bounds(rulebook.rules).of_rule(rulebook.rules["r"])
    assume(found.instances_max != 0)
    lines = data.draw(planted(rulebook, 30))
    history = [(name, time // SECOND, fields["k"]) for name, time, fields in lines]
    keys = len({key for _, _, key in history}) if keyed else 1
    kept = 0
    for now, carried in steps(rulebook, history):
        check(found, now, carried, keys)
        kept = max(kept, stored(carried).total())
    saw(range(kept))


@pytest.mark.parametrize(
    ("on", "context"),
    [
        ("a ; b", "restricted"),
        ("a and b", "restricted"),
        ("(a ; b) - c", "restricted"),
        ("a ; (b ; c)", "restricted"),
        ("a ; (b and c)", "restricted"),
        ("(a and b) ; (a and c)", "restricted"),
        ("any(2, a, b, c)", "restricted"),
        ("(a ; (b ; (c ; a))) - b", "restricted"),
        ("a ; b ; c", "recent"),
        ("(a and b) ; c", "recent"),
        ("(a and b) ; c within 20", "recent"),
        ("a ; (b and c)", "recent"),
        ("any(2, a, b, c)", "recent"),
        ("any(3, a*)", "recent"),
        ("any(3, a*)", "chronicle"),
        ("any(3, a*)", "continuous"),
        ("any(3, a*)", "cumulative"),
        ("a and b", "recent"),
        ("a and b and c", "recent"),
        ("a ; (b and c) within 20", "recent"),
        ("(a or b) ; c", "recent"),
        ("a or (b ; c)", "recent"),
        ("(a or b) and c", "recent"),
        ("any(2, a, b ; c)", "recent"),
        ("a ; any(1, b, c)", "recent"),
    ],
)
def test_the_bound_is_reached_and_no_more(on: str, context: str) -> None:
    draw = np.random.default_rng(7)
    history = [(str(draw.choice(NAMES)), second, 1) for second in range(LINES)]
    rulebook = book(on, context=Context(context))
    found = Bounds(rulebook.rules).of_rule(rulebook.rules["r"])
    reached = max(stored(carried).total() for _, carried in steps(rulebook, history))
    assert reached == found.instances_max


@pytest.mark.parametrize(
    ("on", "history", "instances_max"),
    [
        ("not(t)[a or (b ; c), t]", "b1 a2 c3", 2),
        ("P*(a and b, [1], c)", "b1 a2 a3 a4 a5", 3),
        ("P*(a or (b ; c), [1], t)", "b1 a2 c3", 2),
    ],
)
def test_of_openers_only_the_greatest_is_stored(on: str, history: str, instances_max: int) -> None:
    """One that is neither the greatest of those that are open nor becomes it is of no use."""
    rulebook = book(on)
    found = Bounds(rulebook.rules).of_rule(rulebook.rules["r"])
    assert found.instances_max == instances_max
    lines = [(line[0], int(line[1:]), 1) for line in history.split()]
    for now, carried in steps(rulebook, lines):
        check(found, now, carried, keys=1)


def test_what_waits_after_its_end_was_old_then() -> None:
    rulebook = book("P*(a, [1 s], [2 s]) ; [2 s]")
    found = Bounds(rulebook.rules).of_rule(rulebook.rules["r"])
    assert found.forgets_micros == 4_000_000
    for now, carried in steps(rulebook, [("a", 1, 1), ("b", 4, 1)]):
        check(found, now, carried, keys=1)


def test_recent_may_keep_an_instance_that_ended_with_a_greater_one() -> None:
    rulebook = book("(a and b) or (c and t)", context=Context.RECENT)
    found = Bounds(rulebook.rules).of_rule(rulebook.rules["r"])
    history = [(name, 0, 1) for name in "abct"] + [("a", 1, 1)]
    for now, carried in steps(rulebook, history):
        check(found, now, carried, keys=1)


@pytest.mark.parametrize(
    ("on", "context"),
    [
        ("A*(a, b, c)", "restricted"),
        ("P*(a, [1], b) ; c", "restricted"),
        ("a and b - (c ; c)", "restricted"),
        ("a ; b", "chronicle"),
        ("any(2, a, b, a)", "recent"),
        ("not(b)[a, c]", "continuous"),
        ("(a or b) ; c", "cumulative"),
        ("a and b", "unrestricted"),
        ("A*(a, b, c)", "chronicle"),
    ],
)
def test_the_within_that_is_advised_gives_a_bound(on: str, context: str) -> None:
    loose = book(on, context=Context(context))
    advice = Bounds(loose.rules).of_rule(loose.rules["r"]).advice
    ((named, within),) = [text.split("`")[1::2] for text in advice]
    assert within == "within"
    tight = book(f"({named}) within 5", context=Context(context))
    found = Bounds(tight.rules).of_rule(tight.rules["r"])
    assert found.exists
    assert found.forgets
    draw = np.random.default_rng(7)
    history = [(str(draw.choice(NAMES)), second, 1) for second in range(LINES)]
    for now, carried in steps(tight, history):
        check(found, now, carried, keys=1)


def test_a_window_closed_by_a_length_of_time_has_the_bound_that_is_advised() -> None:
    loose = book("P(a, [1], c)")
    (advice,) = Bounds(loose.rules).of_rule(loose.rules["r"]).advice
    advised = advice.split("`")[1]
    assert advised == "P(a, [1 s], c or a + [1 day])"
    tight = book(advised.replace("1 day", "5 s"))
    found = Bounds(tight.rules).of_rule(tight.rules["r"])
    assert found.exists
    assert found.forgets_micros == 5_000_000
    for now, carried in steps(tight, [("a", second, 1) for second in range(50)]):
        check(found, now, carried, keys=1)
        assert stored(carried).total() <= 10
    for now, carried in steps(tight, [("a", 0, 1), ("c", 2, 1), ("b", 3, 1), ("b", 9, 1)]):
        check(found, now, carried, keys=1)


@pytest.mark.parametrize(
    "on", ["A(a, b, c or a + [5])", "A(a ; c, b, a or (a ; c) + [5])", "P(a, [2], b or a + [5])"]
)
def test_a_window_with_a_length_in_an_or_forgets_what_it_says(on: str) -> None:
    rulebook = book(on)
    found = Bounds(rulebook.rules).of_rule(rulebook.rules["r"])
    draw = np.random.default_rng(7)
    times = draw.integers(0, 3 * LINES, LINES)
    history = [(str(draw.choice(NAMES)), int(second), 1) for second in times]
    for now, carried in steps(rulebook, history):
        check(found, now, carried, keys=1)


@pytest.mark.parametrize("used", ["b ; (a and c)", "not(a)[b, c]"])
@pytest.mark.parametrize("on", ["a ; q", "a and q", "not(q)[a, b]", "q - a", "A(a, q, b)"])
def test_s08_what_is_half_matched_in_a_rule_used_as_event_is_counted(on: str, used: str) -> None:
    rulebook = loaded("abc", q=f"on: '{used}', context: restricted", r=f"on: '{on}'")
    most = [Bounds(rulebook.rules).of_rule(r).instances_max for r in rulebook.rules.values()]
    draw = np.random.default_rng(7)
    history = [(str(draw.choice(NAMES)), second, 1) for second in range(LINES)]
    for _, carried in steps(rulebook, history):
        assert stored(carried).total() <= sum(number or 0 for number in most)


@pytest.mark.parametrize(
    ("on", "pause"),
    [
        ("{session: 5 s, of: a}", 5),
        ("{over: {window: 5 s, of: a, fire: max(v) >= 0}}", 5),
        ("{over: {window: 5 s, of: a, fire: max(v) >= 0, rearm: count(v) < 1}}", 5),
        ("{over: {window: 5 s, of: a, fire: max(v) >= 0, rearm: max(v) < 0}}", None),
        ("{over: {window: 5 s, of: a, fire: count(*) < 9}}", None),
        ("{holds: a, until: b, for: 5 s}", None),
    ],
)
def test_a_window_forgets_a_key_that_pauses_as_is_said(on: str, pause: int | None) -> None:
    rulebook = loaded("abct", r=f"on: {on}, per: k")
    found = Bounds(rulebook.rules).of_rule(rulebook.rules["r"])
    assert found.pause_micros == (pause and pause * SECOND)
    assert found.forgets == (pause is not None)
    history = [*(("a", second, 1) for second in range(0, 40, 4)), ("a", 42, 2), ("a", 60, 2)]
    left = [now for now, carried in steps(rulebook, history) if stored(carried)[1]]
    assert (max(left) < 42 * SECOND) == found.forgets


def test_what_was_consumed_is_forgotten_though_nothing_is_detected_any_more() -> None:
    """Ticks at 2, 3 and 4 make a detection of the c at 2. Nothing comes to the rule after the one
    at 5 that could meet it, but for time."""
    on = "not(b)[c, P(<(00:*:01)*/*/*>, [1 s], <(00:*:05)*/*/*>)][3]"
    rulebook = book(on, context=Context.CHRONICLE)
    detector = Detector(rulebook, {"r": 0})
    carried, found, begun = Carried(), 0, -1
    for half in range(120):
        now = half * SECOND // 2
        lines: list[Line] = [("c", now, {"k": 0, "v": 0})] if half in (2, 4, 10) else []
        arrivals = batches(rulebook, lines) | clock_batches(rulebook, begun + 1, now)
        made, carried, _ = detector.step(carried, arrivals, now)
        found, begun = found + sum(map(len, made)), now
    assert found == 1
    assert carried.tables["occ:c/0"].column("time").to_pylist() == [5 * SECOND]


def test_what_a_key_has_consumed_is_forgotten_though_another_key_has_it() -> None:
    """An a is of every key. `not` itself keeps it, for both keys; of what may be consumed only the
    second key carries it on."""
    rulebook = book("not(b)[a, c]", ", per: {b: k, c: k}", Context.CHRONICLE)
    detector, carried, found = Detector(rulebook, {"r": 0}), Carried(), 0
    for second, (name, key) in enumerate([("b", 1), ("b", 2), ("a", 0), ("c", 1)]):
        lines: list[Line] = [(name, second * SECOND, {"k": key, "v": 0})]
        made, carried, _ = detector.step(carried, batches(rulebook, lines), second * SECOND)
        found += sum(map(len, made))
    assert found == 1
    assert (stored(carried)[1], stored(carried)[2]) == (1, 2)
