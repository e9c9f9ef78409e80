"""What semantics 3 says can be relied on, checked on the reference itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.golden.load import read
from tests.golden.write import fixture
from tests.reference.evaluate import Detection, Line, canonical, evaluate
from tests.reference.keys import needs_keyed
from tests.reference.meaning import Meaning, TooLargeError, World, is_composite
from tests.reference.strategies import EVERYTHING, NAMES, SECOND, cases, expressions
from tests.reference.values import Occurrence
from tidegate.rules.expression import AnyRepeat, AperiodicStar, Clock, Expression, PeriodicStar
from tidegate.rules.model import Context, Rulebook

ALL = settings(max_examples=100, deadline=None)
CONTEXTS = tuple(Context)


def run(rulebook: Rulebook, history: list[Line], **options: Any) -> list[Detection]:
    try:
        return evaluate(rulebook, history, instances_max=1_000, **options)
    except TooLargeError:
        assume(False)
        raise


def held(found: list[Detection]) -> Counter[Any]:
    """Detections with their constituents by what is printed."""
    return Counter(canonical(d.printed() for d in found))


def root(rulebook: Rulebook) -> Expression:
    return rulebook.rules["r0"].on


def chooses_inside(expression: Expression) -> bool:
    """Operators whose instances depend on what is used up."""
    return any(
        isinstance(e, AperiodicStar | PeriodicStar)
        or (isinstance(e, AnyRepeat) and is_composite(e.part))
        for e in expression.walk()
    )


@ALL
@given(cases(operators=EVERYTHING), st.sampled_from(CONTEXTS))
def test_every_context_but_cumulative_detects_members_of_unrestricted(
    case: tuple[Rulebook, list[Line]], context: Context
) -> None:
    rulebook, history = case
    assume(context is not Context.CUMULATIVE and not chooses_inside(root(rulebook)))
    everything = held(run(rulebook, history, context=Context.UNRESTRICTED))
    assert held(run(rulebook, history, context=context)) <= everything


@ALL
@given(cases(operators=EVERYTHING))
def test_restricted_detects_once_whenever_unrestricted_does_with_the_latest_start(
    case: tuple[Rulebook, list[Line]],
) -> None:
    latest: dict[Any, int] = {}
    for d in run(*case, context=Context.UNRESTRICTED):
        where = (str(d.key), d.end)
        latest[where] = max(latest.get(where, d.start), d.start)
    chosen = run(*case, context=Context.RESTRICTED)
    assert sorted((str(d.key), d.end, d.start) for d in chosen) == sorted(
        (*where, start) for where, start in latest.items()
    )


@ALL
@given(cases(operators=EVERYTHING), st.sampled_from(CONTEXTS))
def test_restricted_detects_wherever_any_context_does(
    case: tuple[Rulebook, list[Line]], context: Context
) -> None:
    """Semantics 4: the exact, cheap pre-filter; not for `A*`, `P*`."""
    assume(not any(isinstance(e, AperiodicStar | PeriodicStar) for e in root(case[0]).walk()))
    at_all = {(str(d.key), d.end) for d in run(*case, context=Context.RESTRICTED)}
    assert {(str(d.key), d.end) for d in run(*case, context=context)} <= at_all


@ALL
@given(cases(operators=EVERYTHING))
def test_in_chronicle_an_occurrence_is_in_at_most_one_detection(
    case: tuple[Rulebook, list[Line]],
) -> None:
    by_key: dict[str, list[Detection]] = {}
    for d in run(*case, context=Context.CHRONICLE):
        by_key.setdefault(str(d.key), []).append(d)
    for found in by_key.values():
        numbers = [c.number for d in found for c in d.constituents if hasattr(c, "number")]
        assert len(numbers) == len(set(numbers))


@ALL
@given(cases(operators=EVERYTHING), st.sampled_from(CONTEXTS), st.randoms(use_true_random=False))
def test_s01_nothing_depends_on_the_order_of_lines(
    case: tuple[Rulebook, list[Line]], context: Context, random: Any
) -> None:
    rulebook, history = case
    shuffled = random.sample(history, len(history))
    assert held(run(rulebook, history, context=context)) == held(
        run(rulebook, shuffled, context=context)
    )


@ALL
@given(cases(operators=EVERYTHING), st.sampled_from(CONTEXTS), st.integers(0, 7))
def test_nothing_is_detected_in_the_past(
    case: tuple[Rulebook, list[Line]], context: Context, second: int
) -> None:
    """Cutting the history off changes no detection up to the cut."""
    rulebook, history = case
    assume(history and min(time for _, time, _ in history) <= second * 1_000_000)
    cut = run(rulebook, history, context=context, until=second * 1_000_000)
    whole = run(rulebook, history, context=context, until=10_000_000)
    assert held(cut) == held([d for d in whole if d.end <= second * 1_000_000])


@ALL
@given(cases(operators=EVERYTHING, contexts=CONTEXTS, rules_max=2))
def test_rules_never_use_up_each_others_occurrences(case: tuple[Rulebook, list[Line]]) -> None:
    rulebook, history = case
    together = run(rulebook, history)
    alone = Rulebook(
        "generated", None, "", "UTC", {}, rulebook.events, {"r0": rulebook.rules["r0"]}
    )
    first = [d for d in together if d.rule == "r0"]
    assert held(first) == held(run(alone, history))


@ALL
@given(cases(operators=EVERYTHING, contexts=CONTEXTS, rules_max=2))
def test_a_case_survives_being_kept_as_a_fixture(case: tuple[Rulebook, list[Line]]) -> None:
    rulebook, history = case
    assume(history)
    printed = [d.printed() for d in run(rulebook, history)]
    again = read(_joined(fixture("kept", rulebook, history, printed)), "kept.txt")
    assert canonical(d.printed() for d in run(again.rulebook, list(again.history))) == canonical(
        again.expected[None]
    )
    assert canonical(again.expected[None]) == canonical(printed)


def _joined(block: str) -> str:
    return block.replace("\n  ", " ").strip()


@ALL
@given(
    expressions(EVERYTHING),
    st.sets(st.sampled_from(NAMES), min_size=1),
    st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 6)), max_size=8),
)
def test_s07_what_needs_a_keyed_occurrence_has_no_instance_without_one(
    on: Expression, keyed: set[str], history: list[tuple[str, int]]
) -> None:
    assume(needs_keyed(on, keyed))
    seen: dict[Any, list[Occurrence]] = {}
    for name, second in history:
        if name not in keyed:
            time = second * SECOND
            seen.setdefault(name, []).append(Occurrence(name, name, time, time))
    for node in on.walk():
        if isinstance(node, Clock):
            seen[node] = [Occurrence(node, node.text, SECOND, SECOND)]
    assert not Meaning(World(seen, 6 * SECOND)).of(on)
