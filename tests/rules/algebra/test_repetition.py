"""Which rules fire again for one initiator, and what makes them fire once: what the text shows,
against the slow reference."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from tests.reference.alone import History, seconds, world
from tests.reference.contexts import detections, initiator
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw, small
from tests.reference.strategies import EVERYTHING, expressions
from tests.reference.values import Instance, Occurrence
from tidegate.rules.algebra.repetition import fires_again, looked_at, shared, timers
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.nodes import AperiodicStar, Expression, Name
from tidegate.rules.expressions.parser import parse, replaced, unlabelled
from tidegate.rules.model import Context

ONCE = [
    "fa(a, b, c)",
    "faAbs(a or b, (b ; c), c) within 5 min",
    "times(3, b, a, c)",
    "relative(a, b[2])",
    "a",
    "a or b",
    "a within 5 s",
    "a ; a",
    "a ; a ; a",
    "(a or b) ; a",
    "any(3, a*)",
    "any(3, a*) within 5 min",
    "every(3, a)",
    "every(2, not(b)[a, [5 s]])",
    "any(2, not(b)[a, [5 s]]*)",
    "a[2]",
    "a[2] and b[3]",
    "a ; b[2]",
    "a + [5 s]",
    "a ; [5 s]",
    "not(b)[a, [5 s]]",
    "not(b)[a, a]",
    "A(a, b, c)",
    "A(a, any(4, b*), c)",
    "A*(a, b, c)",
    "A*(a, b, [5 s])",
    "P(a, [1 s], c)",
    "P*(a, [1 s], c)",
    "(a ; b) - (b ; b)",
    "not(b)[a, [5 s]] or (c ; c)",
]
AGAIN = {
    "prior(a, b)": "b",
    "fa((a ; b), c, b)": "c",
    "a ; b": "b",
    "a ; b ; b": "b",
    "(a ; b ; b ; b) - c": "b",
    "a ; b within 5 min": "b",
    "a and b": "a b",
    "any(2, a, b, c)": "a b c",
    "not(b)[a, c]": "c",
    "(a ; b) ; [5 s]": "b",
    "A*(a ; b, c, [5 s])": "b",
    "((a ; a) within 5 s) ; a": "a",
    "a ; b ; a": "a",
    "a or (a ; b)": "a b",
    "(a ; [5 s]) or (a ; [9 s])": "a",
    "every(2, a ; b)": "b",
    "A(c, a ; b, c)": "b",
    "a ; (b or c)": "b c",
    "a ; not(b)[c, [5 s]]": "c",
    "L:(a) ; M:(b)": "b",
    "any(2, a*) ; a": "a",  # two a at once, then others: what starts later is not certain
}


@pytest.mark.parametrize("on", ONCE)
def test_fires_once(on: str) -> None:
    assert fires_again(parse(on), {}) == ()


@pytest.mark.parametrize(("on", "events"), AGAIN.items())
def test_fires_again_at_every_later_event(on: str, events: str) -> None:
    assert fires_again(parse(on), {}) == tuple(events.split())


SHARED = {
    "a ; a": "a",
    "(a or b) ; a": "a",
    "(a ; a) - c": "a",
    "not(b)[a, a]": "a",
    "any(3, a*) within 5 min": "a",
    "any(2, (a or b)*)": "a b",
    "A(c, any(4, a*), c)": "a",
    "A*(a ; a, b, c)": "a",
    "any(2, not(b)[a, [5 s]]*)": "a",
}


@pytest.mark.parametrize(("on", "events"), SHARED.items())
def test_one_occurrence_counts_in_several_detections(on: str, events: str) -> None:
    assert shared(parse(on), {}) == tuple(events.split())


@pytest.mark.parametrize(
    "on", ["a and a", "every(3, a)", "a ; a[3]", "(a ; b) - (b ; b)", "not(a)[a, [5 s]]"]
)
def test_each_occurrence_counts_in_one_detection(on: str) -> None:
    assert shared(parse(on), {}) == ()


TIMERS = {
    "a + [5 s] ; c": ["a + [5 s]"],
    "(a + [5 s]) and c": ["a + [5 s]"],
    "not(b)[a + [5 s], c]": ["a + [5 s]"],
    "P(a, [5 s], b) ; c": ["P(a, [5 s], b)"],
    "(a + [5 s]) or (b ; c)": [],
    "(a ; c) and c": [],
}


@pytest.mark.parametrize(("on", "found"), TIMERS.items())
def test_timers_are_not_used_up(on: str, found: list[str]) -> None:
    assert [format_expression(timer) for timer in timers(parse(on), {})] == found


@pytest.mark.parametrize(
    ("on", "begun"),
    {
        "(a and b) + [1 h]": ["a and b"],
        "P(a ; b, [1 h], c)": ["a ; b"],
        "A(a ; b, c, d)": ["a ; b"],
        "not(a + [5 s])[b, c + [5 s]]": ["c"],
        "A*(a, b, c + [5 s]) - (a + [5 s])": [],
        "(a + [5 s])[2]": [],
    }.items(),
)
def test_what_is_looked_at_begins_timers_and_windows(on: str, begun: list[str]) -> None:
    assert [format_expression(part) for _, part in looked_at(parse(on))] == begun


def found(
    on: Expression, history: History, context: Context = Context.RESTRICTED, *named: Expression
) -> list[Instance]:
    """What a context detects; equal occurrences, of which none is told from another, are one.
    `named`: parts that rules of their own detect, in `restricted`."""
    seeing = world(sorted({*history}, key=lambda line: line[1]), on)
    with small():
        rules = {}
        for number, part in enumerate(named):
            name = f"r{number}"
            on = replaced(on, part, Name(name))
            instances = detections(part, seeing, Context.RESTRICTED)
            rules[name] = [Occurrence(name, name, i.start, i.end) for i in instances]
        return detections(on, replace(seeing, occurrences=seeing.occurrences | rules), context)


def shares(instances: list[Instance]) -> list[Instance]:
    """The detections with an occurrence that an earlier one had, in a role that is shown."""
    known, again = set(), []
    for instance in instances:
        held = {o for _, o in instance.parameters}
        again += [instance] if held & known else []
        known |= held
    return again


def repeated(instances: list[Instance]) -> list[Instance]:
    """The detections whose initiator an earlier one had."""
    known, again = set(), []
    for instance in instances:
        first = initiator(instance)
        again += [instance] if first in known else []
        known.add(first)
    return again


def later(history: History, events: tuple[str, ...]) -> list[History]:
    """The history, and after it these events twice, in several orders."""
    last = max((second for _, second in history), default=0)
    orders = [[*events * 2], [*reversed(events * 2)]]
    more = [[(event, last + n) for n, event in enumerate(order, 1)] for order in orders]
    more.append([(event, last + n) for n in (1, 2) for event in events])
    return [[*history, *ends] for ends in more]


def twice(history: History) -> History:
    length = max((second for _, second in history), default=0) + 1
    return [*history, *((event, second + length) for event, second in history)]


@detecting
@given(expressions(EVERYTHING, depth=3), st.data())
@example_count(400, least=33, suppress_health_check=list(HealthCheck))
def test_what_fires_once_never_shares_an_initiator(on: Expression, data: st.DataObject) -> None:
    assume(not fires_again(on, {}))
    history = data.draw(seconds(on, lines_max=5))
    instances = found(on, twice(history))
    assert not repeated(instances), format_expression(on)
    saw(instances[1:])


FIRST = ("fa({}, {}, {})", "faAbs({}, {}, {}) within 5 s", "times(2, {1}, {0}, {2})")


@detecting
@given(st.sampled_from(FIRST), st.data())
@example_count(200, least=16, suppress_health_check=list(HealthCheck))
def test_the_first_after_fires_once(form: str, data: st.DataObject) -> None:
    names = ("a", "b", "c")
    some = [expressions(EVERYTHING, (name,), 1).map(format_expression) for name in names]
    parts = [
        data.draw(st.just(n) | st.just(n) | st.just(n) | e.map("({})".format))
        for n, e in zip(names, some, strict=True)
    ]
    on = parse(form.format(*parts))
    assume(not fires_again(on, {}))
    instances = found(on, twice(data.draw(seconds(on, lines_max=6))))
    assume(instances)
    assert not repeated(instances), format_expression(on)
    saw(instances[1:])


@detecting
@given(expressions(EVERYTHING, depth=2), st.data())
@example_count(150, least=37, suppress_health_check=list(HealthCheck))
def test_what_is_warned_of_does_fire_again_at_these_events(
    on: Expression, data: st.DataObject
) -> None:
    """Mostly, where they happen again; nothing that ends by another event shares an initiator."""
    events = fires_again(on, {})
    assume(events and not any(event.startswith("<") for event in events))
    history = data.draw(seconds(on, lines_max=4))
    assume(history and found(on, history))
    again = [each for more in later(history, events) for each in repeated(found(on, more))]
    for instance in again:
        ended = {o.event for o in instance.occurrences() if o.end == instance.end}
        assert not ended or ended & {*events}, format_expression(on)
    saw(again)


@detecting
@given(expressions(EVERYTHING, depth=2), st.data())
@example_count(300, least=25, suppress_health_check=list(HealthCheck))
def test_what_counts_each_once_never_shares_an_occurrence(
    on: Expression, data: st.DataObject
) -> None:
    """Windows of `A*` aside: what lies in two of them is in two detections, each begun anew."""
    assume(not fires_again(on, {}) and not shared(on, {}))
    assume(not any(isinstance(node, AperiodicStar) for node in on.walk()))
    instances = found(on, twice(data.draw(seconds(on, lines_max=5))))
    assert not shares(instances), format_expression(on)
    saw(instances[1:])


@detecting
@given(expressions(EVERYTHING, depth=2), st.data())
@example_count(150, least=12, suppress_health_check=list(HealthCheck))
def test_what_is_said_to_count_in_several_detections_does(
    on: Expression, data: st.DataObject
) -> None:
    """Mostly, where they happen again; context `recent` counts each once."""
    events = shared(on, {})
    assume(events and not fires_again(on, {}))
    assume(not any(event.startswith("<") for event in events))
    history = data.draw(seconds(on, lines_max=4))
    last = max((second for _, second in history), default=0)
    more = [(event, last + n) for n in range(1, 4) for event in events]
    again = shares(found(on, [*history, *more]))
    recent = found(on, [*history, *more], Context.RECENT)
    assert not shares(recent), format_expression(on)
    assert not repeated(recent), format_expression(on)
    saw(again)


@detecting
@given(expressions(EVERYTHING, depth=2), st.data())
@example_count(300, least=100, suppress_health_check=list(HealthCheck))
def test_recent_fires_once_where_it_is_advised(on: Expression, data: st.DataObject) -> None:
    """Where timers begin it, once they are rules of their own. Counted is what fires again in
    `restricted`."""
    events = fires_again(on, {})
    assume(events and not any(event.startswith("<") for event in events))
    history = data.draw(seconds(on, lines_max=4))
    again = []
    for more in later(history, events):
        recent = found(unlabelled(on), more, Context.RECENT, *timers(on, {}))
        assert not repeated(recent), format_expression(on)
        again += repeated(found(on, more))
    saw(again)
