"""What semantics 3 says can be relied on, checked on the reference itself."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.golden.load import read
from tests.golden.write import fixture
from tests.reference.alone import seconds, world
from tests.reference.evaluate import Detection, Line, canonical, evaluate
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw, small
from tests.reference.keys import needs_keyed
from tests.reference.meaning import Meaning, is_composite
from tests.reference.planted import cases
from tests.reference.strategies import EVERYTHING, NAMES, SECOND, expressions
from tidegate.rules.expressions.nodes import AnyRepeat, AperiodicStar, Expression, PeriodicStar
from tidegate.rules.model import Context, Rulebook

ALL = example_count(40)
CONTEXTS = tuple(Context)
MEMBERS = [context for context in Context if context is not Context.CUMULATIVE]


def run(rulebook: Rulebook, history: list[Line], **options: Any) -> list[Detection]:
    with small():
        return evaluate(rulebook, history, instances_max=1_000, **options)


def held(found: list[Detection]) -> Counter[Any]:
    """Detections with their constituents by what is printed."""
    return Counter(canonical(d.printed() for d in found))


def root(rulebook: Rulebook) -> Expression:
    return rulebook.rules["r0"].pattern.on


def chooses_inside(expression: Expression) -> bool:
    """Operators whose instances depend on what is used up."""
    return any(
        isinstance(e, AperiodicStar | PeriodicStar)
        or (isinstance(e, AnyRepeat) and is_composite(e.part))
        for e in expression.walk()
    )


@detecting
@ALL
@given(cases(operators=EVERYTHING), st.sampled_from(MEMBERS))
def test_every_context_but_cumulative_detects_members_of_unrestricted(
    case: tuple[Rulebook, list[Line]], context: Context
) -> None:
    rulebook, history = case
    assume(not chooses_inside(root(rulebook)))
    everything = held(run(rulebook, history, context=Context.UNRESTRICTED))
    assert held(saw(run(rulebook, history, context=context))) <= everything


@detecting
@ALL
@given(cases(operators=EVERYTHING))
def test_restricted_detects_once_whenever_unrestricted_does_with_the_latest_start(
    case: tuple[Rulebook, list[Line]],
) -> None:
    latest: dict[Any, int] = {}
    for d in run(*case, context=Context.UNRESTRICTED):
        where = (str(d.key), d.end)
        latest[where] = max(latest.get(where, d.start), d.start)
    chosen = saw(run(*case, context=Context.RESTRICTED))
    assert sorted((str(d.key), d.end, d.start) for d in chosen) == sorted(
        (*where, start) for where, start in latest.items()
    )


@detecting
@ALL
@given(cases(operators=EVERYTHING), st.sampled_from(CONTEXTS))
def test_restricted_detects_wherever_any_context_does(
    case: tuple[Rulebook, list[Line]], context: Context
) -> None:
    """Semantics 4: the exact, cheap pre-filter; not for `A*`, `P*`."""
    assume(not any(isinstance(e, AperiodicStar | PeriodicStar) for e in root(case[0]).walk()))
    at_all = {(str(d.key), d.end) for d in run(*case, context=Context.RESTRICTED)}
    assert {(str(d.key), d.end) for d in saw(run(*case, context=context))} <= at_all


@detecting
@ALL
@given(cases(operators=EVERYTHING))
def test_in_chronicle_an_occurrence_is_in_at_most_one_detection(
    case: tuple[Rulebook, list[Line]],
) -> None:
    by_key: dict[str, list[Detection]] = {}
    for d in saw(run(*case, context=Context.CHRONICLE)):
        by_key.setdefault(str(d.key), []).append(d)
    for found in by_key.values():
        numbers = [c.number for d in found for c in d.constituents if hasattr(c, "number")]
        assert len(numbers) == len(set(numbers))


@detecting
@ALL
@given(cases(operators=EVERYTHING), st.sampled_from(CONTEXTS), st.randoms(use_true_random=False))
def test_s01_nothing_depends_on_the_order_of_lines(
    case: tuple[Rulebook, list[Line]], context: Context, random: Any
) -> None:
    rulebook, history = case
    shuffled = random.sample(history, len(history))
    assert held(saw(run(rulebook, history, context=context))) == held(
        run(rulebook, shuffled, context=context)
    )


@detecting
@ALL
@given(cases(operators=EVERYTHING), st.sampled_from(CONTEXTS), st.data())
def test_nothing_is_detected_in_the_past(
    case: tuple[Rulebook, list[Line]], context: Context, data: st.DataObject
) -> None:
    """Cutting the history off changes no detection up to the cut."""
    rulebook, history = case
    last = max((time for _, time, _ in history), default=0)
    whole = run(rulebook, history, context=context, until=last + 5 * SECOND)
    instants = sorted({d.end for d in whole}) or [last]
    until = data.draw(st.sampled_from(instants)) + data.draw(st.integers(0, 1)) * SECOND
    cut = saw(run(rulebook, history, context=context, until=until))
    assert held(cut) == held([d for d in whole if d.end <= until])


@detecting
@ALL
@given(cases(operators=EVERYTHING, contexts=CONTEXTS, rules_max=2))
def test_rules_never_use_up_each_others_occurrences(case: tuple[Rulebook, list[Line]]) -> None:
    rulebook, history = case
    together = run(rulebook, history)
    alone = Rulebook(
        "generated", None, "", "UTC", {}, rulebook.events, {"r0": rulebook.rules["r0"]}
    )
    first = saw([d for d in together if d.rule == "r0"])
    assert held(first) == held(run(alone, history))


@detecting
@ALL
@given(cases(operators=EVERYTHING, contexts=CONTEXTS, rules_max=2))
def test_a_case_survives_being_kept_as_a_fixture(case: tuple[Rulebook, list[Line]]) -> None:
    rulebook, history = case
    assume(history)
    printed = saw([d.printed() for d in run(rulebook, history)])
    again = read(fixture("kept", rulebook, history, printed))
    assert canonical(d.printed() for d in run(again.rulebook, list(again.history))) == canonical(
        again.expected[None]
    )
    assert canonical(again.expected[None]) == canonical(printed)


@detecting
@ALL
@given(expressions(EVERYTHING), st.data())
def test_s07_what_needs_a_keyed_occurrence_has_no_instance_without_one(
    on: Expression, data: st.DataObject
) -> None:
    choices = [set(names) for n in (1, 2) for names in combinations(NAMES, n)]
    needed = [keyed for keyed in choices if needs_keyed(on, keyed)]
    assume(needed)
    keyed = data.draw(st.sampled_from(needed))
    history = data.draw(seconds(on))
    without = [(name, second) for name, second in history if name not in keyed]
    with small():
        saw(Meaning(world(history, on)).of(on))
        assert not Meaning(world(without, on)).of(on)
