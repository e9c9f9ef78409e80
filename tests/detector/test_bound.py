"""The static bound is true: what the detector stores is counted, on random histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rules
from engine.detector.clocks import clock_batches
from engine.detector.detector import Detector
from engine.detector.operators.nth import COUNT
from engine.values import Carried
from rules.bound import Bound, of_rule
from rules.errors import EngineError, InputError
from rules.expression import Expression
from rules.formatter import format_expression
from rules.model import Context, Rulebook
from rules.unbuilt import all_features
from tests.detector.history import batches
from tests.reference.evaluate import Line
from tests.reference.strategies import EVERYTHING, NAMES, SECOND, UNTIMED, expressions

History = Sequence[tuple[str, int, int]]  # event type, second, key


def book(on: str, per: str = "", context: Context = Context.RESTRICTED) -> Rulebook:
    events = "".join(f"  {name}: {{signal: {{k: bigint}}}}\n" for name in NAMES)
    rule = f"  r: {{on: '{on}', context: {context}{per}}}\n"
    return rules.load(f"rulebook: r\nevents:\n{events}rules:\n{rule}", features=all_features())


def steps(rulebook: Rulebook, history: History) -> Iterable[tuple[int, Carried]]:
    """What is carried after each instant at which an event of the rule happens: until then the
    detector does not look at the rule, so it forgets nothing."""
    detector = Detector(rulebook, {"r": 0})
    carried, before = Carried(), -SECOND
    for second, lines in groupby(sorted(history, key=lambda line: line[1]), lambda line: line[1]):
        now = second * SECOND
        bucket: list[Line] = [(name, now, {"k": key}) for name, _, key in lines]
        arrivals = clock_batches(rulebook, before + 1, now) | batches(rulebook, bucket)
        carried, before = detector.step(carried, arrivals, now)[1], now
        if detector.timed or detector.events & {name for name, *_ in bucket}:
            yield now, carried


def stored(carried: Carried) -> Counter[object]:
    """Instances carried, by key; None: those made of broadcasts only."""
    counts: Counter[object] = Counter()
    for name, table in carried.tables.items():
        if name.startswith("node:"):
            table = table.filter(pc.not_equal(table.column("end"), COUNT))
            keyed = "k0" in table.column_names
            counts.update(table.column("k0").to_pylist() if keyed else [0] * len(table))
    return counts


def oldest(carried: Carried) -> int | None:
    starts = [
        start
        for name, table in carried.tables.items()
        if name.startswith("node:")
        for start, end in zip(*table.select(["start", "end"]).to_pydict().values(), strict=True)
        if end != COUNT
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


@given(
    rule=st.tuples(expressions(EVERYTHING, depth=3), st.just(Context.RESTRICTED))
    | st.tuples(expressions(UNTIMED, depth=2), st.sampled_from(Context)),
    history=st.lists(
        st.tuples(st.sampled_from(NAMES), st.integers(0, 15), st.integers(1, 2)), max_size=40
    ),
    keyed=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_never_more_is_stored_than_the_bound(
    rule: tuple[Expression, Context], history: History, keyed: bool
) -> None:
    on, context = rule
    try:
        rulebook = book(format_expression(on), ", per: k" if keyed else "", context)
        Detector(rulebook, {"r": 0})
    except (EngineError, InputError):  # not built in this context, or no key in every instance
        assume(False)
    found = of_rule(rulebook.rules["r"], rulebook.rules)
    for now, carried in steps(rulebook, history):
        check(found, now, carried, keys=2 if keyed else 1)


@pytest.mark.parametrize(
    "on",
    [
        "a ; b",
        "a and b",
        "(a ; b) - c",
        "a ; (b ; c)",
        "a ; (b and c)",
        "(a and b) ; (a and c)",
        "any(2, a, b, c)",
        "(a ; (b ; (c ; a))) - b",
    ],
)
def test_the_bound_is_reached(on: str) -> None:
    draw = np.random.default_rng(7)
    history = [(str(draw.choice(NAMES)), second, 1) for second in range(600)]
    rulebook = book(on)
    found = of_rule(rulebook.rules["r"], rulebook.rules)
    reached = max(stored(carried).total() for _, carried in steps(rulebook, history))
    assert reached == found.instances_max
