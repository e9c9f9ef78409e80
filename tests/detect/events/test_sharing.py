"""G9: adding, removing, editing a rule disturbs no other one and keeps every node that stays."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.reference.alone import alone
from tests.reference.evaluate import Line, canonical
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import planted
from tests.reference.strategies import NAMES, PLACE, SECOND, UNTIMED, expressions
from tests.support.history import batches, printed, through_ipc
from tidegate.engine.core.values import Carried
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.expressions.nodes import Expression
from tidegate.rules.model import Context, Pattern, Rule, Rulebook, SignalEvent

EVENTS = {name: SignalEvent(name, PLACE, {"v": "bigint"}) for name in NAMES}
ONS = expressions(UNTIMED, depth=2)
CONTEXTS = st.sampled_from([Context.RESTRICTED, *Context])
LATER = 4 * SECOND


def book(**on: tuple[Expression, Context]) -> Rulebook:
    rules = {name: Rule(name, PLACE, Pattern(e, "", context)) for name, (e, context) in on.items()}
    return Rulebook("sharing", None, "", "UTC", {}, EVENTS, rules)


def run(rulebooks: Sequence[Rulebook], parts: Sequence[list[Line]]) -> tuple[list[str], Carried]:
    """What the rule r detects where each part of a history has a rulebook of its own; rules that
    are not in the first one are active later."""
    carried, lines = Carried(), []
    for rulebook, part in zip(rulebooks, parts, strict=True):
        activations = {name: 0 if name in rulebooks[0].rules else LATER for name in rulebook.rules}
        detector = Detector(rulebook, activations)
        watermark = max((time for _, time, _ in part), default=LATER - 1)
        found, carried, _ = detector.step(through_ipc(carried), batches(rulebook, part), watermark)
        lines += [line for d in found if d.rule == "r" for line in printed(d)]
    return canonical(lines), carried


@detecting
@given(
    r=st.tuples(ONS, CONTEXTS),
    others=st.lists(st.tuples(ONS, CONTEXTS), min_size=3, max_size=3),
    data=st.data(),
)
@example_count(40, suppress_health_check=[HealthCheck.too_slow])
def test_g09_a_rule_does_not_notice_the_others(
    r: tuple[Expression, Context],
    others: list[tuple[Expression, Context]],
    data: st.DataObject,
) -> None:
    gone, before, after = others
    lines = sorted(data.draw(planted(alone(r[0]), 14)), key=lambda line: line[1])
    parts = [[x for x in lines if x[1] < LATER], [x for x in lines if x[1] >= LATER]]
    edited = [book(r=r, gone=gone, edited=before), book(r=r, edited=after, new=gone)]
    expected, kept = run([book(r=r)] * 2, parts)
    found, carried = run(edited, parts)
    assert found == saw(expected)
    nodes = [name for name in kept.tables if name.startswith("node:")]
    assert {*nodes} <= {*carried.tables}
    assert all(carried.tables[n].num_rows == kept.tables[n].num_rows for n in nodes)
