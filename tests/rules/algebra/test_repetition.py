"""Which rules fire again for one initiator: what the text shows, against the slow reference."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.reference.alone import History, seconds, world
from tests.reference.contexts import detections, initiator
from tests.reference.hits import detecting, saw, small
from tests.reference.strategies import EVERYTHING, expressions
from tests.reference.values import Instance
from tidegate.rules.algebra.repetition import fires_again
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.nodes import Expression
from tidegate.rules.expressions.parser import parse
from tidegate.rules.model import Context

ONCE = [
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


def found(on: Expression, history: History) -> list[Instance]:
    """What `restricted` detects; equal occurrences, of which none is told from another, are one."""
    seeing = world(sorted({*history}, key=lambda line: line[1]), on)
    with small():
        return detections(on, seeing, Context.RESTRICTED)


def shared(instances: list[Instance]) -> list[Instance]:
    """The detections whose initiator an earlier one had."""
    known, again = set(), []
    for instance in instances:
        first = initiator(instance)
        again += [instance] if first in known else []
        known.add(first)
    return again


@detecting
@given(expressions(EVERYTHING, depth=3), st.data())
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_fires_once_never_shares_an_initiator(on: Expression, data: st.DataObject) -> None:
    assume(not fires_again(on, {}))
    history = data.draw(seconds(on, lines_max=5))
    length = max((second for _, second in history), default=0) + 1
    twice = [*history, *((event, second + length) for event, second in history)]
    instances = found(on, twice)
    assert not shared(instances), format_expression(on)
    saw(instances[1:])


@detecting
@given(expressions(EVERYTHING, depth=2), st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_warned_of_does_fire_again_at_these_events(
    on: Expression, data: st.DataObject
) -> None:
    """Mostly, where they happen again; nothing that ends by another event shares an initiator."""
    events = fires_again(on, {})
    assume(events and not any(event.startswith("<") for event in events))
    history = data.draw(seconds(on, lines_max=4))
    assume(history and found(on, history))
    last = max(second for _, second in history)
    orders = [[*events * 2], [*reversed(events * 2)]]
    later = [[(event, last + n) for n, event in enumerate(order, 1)] for order in orders]
    later.append([(event, last + n) for n in (1, 2) for event in events])
    again = [each for more in later for each in shared(found(on, [*history, *more]))]
    for instance in again:
        ended = {o.event for o in instance.occurrences() if o.end == instance.end}
        assert not ended or ended & {*events}, format_expression(on)
    saw(again)
