"""Every context detects what the reference detects, interval and constituents, for any cut."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.errors import Place
from rules.expression import Name
from rules.model import Context, Rule, Rulebook, SignalEvent
from rules.parser import parse
from tests.detector.history import run
from tests.reference.strategies import SECOND, UNTIMED, cases, cuts, expected, histories

CHOOSING = [context for context in Context if context is not Context.RESTRICTED]


@pytest.mark.parametrize("context", CHOOSING)
@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_detections_are_those_of_the_reference_for_any_cut(
    context: Context, data: st.DataObject
) -> None:
    rulebook, history = data.draw(cases(operators=UNTIMED, depth=3))
    rules = {name: replace(rule, context=context) for name, rule in rulebook.rules.items()}
    rulebook = replace(rulebook, rules=rules)
    answer = expected(rulebook, history)
    whole = sorted(history, key=lambda line: line[1])
    assert run(rulebook, [whole]) == answer
    assert run(rulebook, data.draw(cuts(history))) == answer


CHAINS = st.sampled_from(["a ; b", "a ; b ; c", "a ; (b ; c) within 3 s", "c ; a within 2 s"])


@pytest.mark.parametrize("context", CHOOSING)
@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_plain_sequences_are_those_of_the_reference_for_any_cut(
    context: Context, data: st.DataObject
) -> None:
    text = data.draw(CHAINS)
    keys = data.draw(st.sampled_from([(), ("k",)]))
    rulebook = signals(text, context, keys)
    history = data.draw(histories(rulebook, lines_max=16))
    answer = expected(rulebook, history)
    whole = sorted(history, key=lambda line: line[1])
    assert run(rulebook, [whole]) == answer
    assert run(rulebook, data.draw(cuts(history))) == answer


def signals(on: str, context: Context, keys: tuple[str, ...]) -> Rulebook:
    """One rule over the signals a, b, c, all keyed or none."""
    fields = dict.fromkeys((*keys, "v"), "bigint")
    events = {name: SignalEvent(name, Place(), fields) for name in "abc"}
    node = parse(on)
    used = {n.name for n in node.walk() if isinstance(n, Name)}
    per = dict.fromkeys(sorted(used), keys) if keys else {}
    rule = Rule("r0", Place(), node, on, context, key_names=keys, per=per)
    return Rulebook("b", None, "", "UTC", {}, events, {"r0": rule})


@pytest.mark.parametrize("on", ["a and a[1] within 0 s", "a and (a without b)[1]"])
@pytest.mark.parametrize("context", Context)
def test_s05_equal_rows_have_one_order_in_every_operator(on: str, context: Context) -> None:
    rulebook = signals(on, context, ())
    history = [("a", 0, {"v": 0}), ("a", 0, {"v": 0})]
    assert run(rulebook, [history]) == expected(rulebook, history)


@pytest.mark.parametrize("context", Context)
def test_s01_what_instances_share_counts_once(context: Context) -> None:
    rulebook = signals("any(2, any(2, (b and a)*), c) within 3 s", context, ())
    seen = [("b", 1), ("a", 1), ("c", 2), ("a", 3), ("b", 4), ("c", 5)]
    history = [(name, time * SECOND, {"v": 0}) for name, time in seen]
    assert run(rulebook, [history]) == expected(rulebook, history)
