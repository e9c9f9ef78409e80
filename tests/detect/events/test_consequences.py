"""What semantics 3 says can be relied on, of the detector alone: no reference takes part."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.reference.alone import alone
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.meaning import is_composite
from tests.reference.planted import cases, planted
from tests.reference.strategies import EVERYTHING
from tests.support.history import run
from tests.support.rulebooks import altered
from tidegate.rules.errors import EngineError
from tidegate.rules.expressions.nodes import AnyRepeat, AperiodicStar, Expression, PeriodicStar
from tidegate.rules.expressions.parser import parse
from tidegate.rules.model import Context, Rulebook, in_context

Case = tuple[Rulebook, list[Line]]
CASES = cases(operators=EVERYTHING)
SOME = example_count(25)
USING_UP = [Context.RECENT, Context.CHRONICLE, Context.CONTINUOUS, Context.CUMULATIVE]


def told_apart(history: list[Line]) -> list[Line]:
    """The same lines, no two of them equal."""
    return [(event, time, {**f, "v": n}) for n, (event, time, f) in enumerate(history)]


def found(case: Case, context: Context | None) -> list[dict[str, Any]]:
    """What is detected in a context (None: each rule's own), of lines that are told apart."""
    rulebook, history = case
    if context is not None:
        changed = {n: in_context(rule, context) for n, rule in rulebook.rules.items()}
        rulebook = replace(rulebook, rules=changed)
    settings = replace(rulebook.settings, search_steps_max=20_000)
    try:
        lines = run(replace(rulebook, settings=settings), told_apart(history))
    except EngineError as error:
        assume(error.code != "search-steps")
        raise
    return [json.loads(line) for line in lines]


def counted(detections: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(d, sort_keys=True) for d in detections)


def instants(detections: list[dict[str, Any]]) -> set[tuple[str, float]]:
    return {(str(d["key"]), d["end"]) for d in detections}


def windows(on: Expression) -> bool:
    """Operators with windows that hold what is still unused."""
    return any(isinstance(e, AperiodicStar | PeriodicStar) for e in on.walk())


def repeats(on: Expression) -> bool:
    return any(isinstance(e, AnyRepeat) and is_composite(e.part) for e in on.walk())


@detecting
@SOME
@given(CASES, st.sampled_from([c for c in Context if c is not Context.CUMULATIVE]))
def test_every_context_but_cumulative_detects_members_of_unrestricted(
    case: Case, context: Context
) -> None:
    on = case[0].rules["r0"].pattern.on
    assume(not windows(on) and not repeats(on))
    assert counted(saw(found(case, context))) <= counted(found(case, Context.UNRESTRICTED))


@detecting
@SOME
@given(CASES)
def test_restricted_detects_once_whenever_there_is_an_instance_with_the_latest_start(
    case: Case,
) -> None:
    latest: dict[tuple[str, float], float] = {}
    for d in found(case, Context.UNRESTRICTED):
        where = str(d["key"]), d["end"]
        latest[where] = max(latest.get(where, d["start"]), d["start"])
    chosen = saw(found(case, Context.RESTRICTED))
    assert sorted((str(d["key"]), d["end"], d["start"]) for d in chosen) == sorted(
        (*where, start) for where, start in latest.items()
    )


@detecting
@SOME
@given(CASES, st.sampled_from(USING_UP))
def test_restricted_detects_wherever_any_context_does(case: Case, context: Context) -> None:
    assume(not windows(case[0].rules["r0"].pattern.on))
    assert instants(saw(found(case, context))) <= instants(found(case, Context.RESTRICTED))


@detecting
@SOME
@given(CASES)
def test_in_chronicle_an_occurrence_is_in_at_most_one_detection(case: Case) -> None:
    seen: Counter[tuple[str, int]] = Counter()
    for d in saw(found(case, Context.CHRONICLE)):
        held = {c["v"] for c in d["constituents"] if "v" in c}
        seen.update((str(d["key"]), v) for v in held)
    assert all(count == 1 for count in seen.values())


@detecting
@SOME
@given(cases(operators=EVERYTHING, contexts=USING_UP), st.data())
def test_rules_never_use_up_each_others_occurrences(case: Case, data: st.DataObject) -> None:
    rulebook, history = case
    first = rulebook.rules["r0"]
    other = altered(first, name="r1", context=data.draw(st.sampled_from(list(Context))))
    together = replace(rulebook, rules={"r0": first, "r1": other})
    mine = saw([d for d in found((together, history), None) if d["rule"] == "r0"])
    assert counted(mine) == counted(found(case, None))


@detecting
@SOME
@given(CASES, st.sampled_from(list(Context)), st.randoms(use_true_random=False))
def test_s01_nothing_depends_on_the_order_of_lines(
    case: Case, context: Context, random: Any
) -> None:
    rulebook, history = case
    rules = {n: in_context(r, context) for n, r in rulebook.rules.items()}
    rulebook = replace(rulebook, rules=rules)
    shuffled = random.sample(history, len(history))
    assert run(rulebook, shuffled) == saw(run(rulebook, history))


@pytest.mark.parametrize("context", [c for c in USING_UP if c is not Context.CUMULATIVE])
@pytest.mark.parametrize("on", ["A(a, b, c)", "A(a, b, [3 s])", "P(a, [1 s], c)"])
@detecting
@given(data=st.data())
@example_count(10)
def test_a_and_p_ignore_used_up_windows(on: str, context: Context, data: st.DataObject) -> None:
    """Each b in a window is detected, whatever windows there were (in `recent` one an instant): so
    are ticks."""
    rulebook = alone(parse(on))
    case = rulebook, data.draw(planted(rulebook, 12))
    everything, chosen = found(case, Context.UNRESTRICTED), found(case, context)
    assert instants(chosen) == instants(saw(everything))
    assert context is Context.RECENT or counted(chosen) == counted(everything)
