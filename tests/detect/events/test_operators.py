"""Each operator's own step, also where the engine has a faster way: what it finds is what the
reference finds, and it is stepped with what it carries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.cuts import everywhere
from tests.reference.examples import example_count
from tests.reference.hits import detecting, drawn_for, saw
from tests.reference.planted import cases
from tests.reference.strategies import Operands, durations, expected, written
from tests.support.history import node_by_node, run
from tidegate.engine.detect.events.graph.operators.any_repeat import AnyRepeat
from tidegate.engine.detect.events.graph.operators.aperiodic import Aperiodic
from tidegate.engine.detect.events.graph.operators.aperiodic_star import AperiodicStar
from tidegate.engine.detect.events.graph.operators.aperiodic_until import (
    AperiodicStarUntil,
    AperiodicUntil,
)
from tidegate.engine.detect.events.graph.operators.conjunction import Conjunction
from tidegate.engine.detect.events.graph.operators.disjunction import Either
from tidegate.engine.detect.events.graph.operators.every import Every
from tidegate.engine.detect.events.graph.operators.instant import Instant
from tidegate.engine.detect.events.graph.operators.minus import Minus
from tidegate.engine.detect.events.graph.operators.negation import Not
from tidegate.engine.detect.events.graph.operators.nth import Nth
from tidegate.engine.detect.events.graph.operators.periodic import Periodic
from tidegate.engine.detect.events.graph.operators.periodic_star import PeriodicStar
from tidegate.engine.detect.events.graph.operators.plus import Plus
from tidegate.engine.detect.events.graph.operators.sequence import Sequence
from tidegate.engine.detect.events.graph.operators.until import Until
from tidegate.engine.detect.events.graph.operators.within import Within
from tidegate.engine.detect.events.occurrences.instances import Carry, Flow, Moment
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Context, in_context

COUNTS = st.integers(2, 3)
OWN = st.builds(x.Own, durations())
EXPRESSIONS: Mapping[type, Callable[[Operands], Operands]] = {
    AnyRepeat: lambda e: st.builds(x.AnyRepeat, COUNTS, e),
    Aperiodic: lambda e: st.builds(x.Aperiodic, e, e, e),
    AperiodicStar: lambda e: st.builds(x.AperiodicStar, e, e, e),
    AperiodicStarUntil: lambda e: st.builds(x.AperiodicStar, e, e, OWN),
    AperiodicUntil: lambda e: st.builds(x.Aperiodic, e, e, OWN),
    Conjunction: lambda e: st.builds(x.And, st.tuples(e, e)),
    Either: lambda e: st.builds(x.Or, st.tuples(e, e)),
    Every: lambda e: st.builds(x.Every, COUNTS, e),
    Instant: lambda e: st.builds(x.Plus, st.builds(x.Instant, pairs(e)), durations()),
    Minus: lambda e: absent(e, lambda a, b: x.Seq(a, b)) | absent(e, lambda a, b: x.And((a, b))),
    Not: lambda e: st.builds(x.Not, e, e, e),
    Nth: lambda e: st.builds(x.Nth, e, COUNTS),
    Periodic: lambda e: st.builds(x.Periodic, e, durations(), e),
    PeriodicStar: lambda e: st.builds(x.PeriodicStar, e, durations(), e),
    Plus: lambda e: st.builds(x.Plus, e, durations()),
    Sequence: lambda e: st.builds(x.Seq, e, e),
    Until: lambda e: st.builds(x.Seq, e, OWN) | st.builds(x.Not, e, e, OWN),
    Within: lambda e: st.builds(x.Within, pairs(e), durations(2)),
}
CARRY_NOTHING = (Either, Instant, Within)


def pairs(e: Operands) -> Operands:
    return st.builds(x.Seq, e, e) | st.builds(x.And, st.tuples(e, e))


def absent(e: Operands, pair: Callable[[x.Expression, x.Expression], x.Expression]) -> Operands:
    """What is absent is none of the pair."""
    three = st.lists(e, min_size=3, max_size=3, unique=True)
    return three.map(lambda parts: x.Minus(pair(parts[0], parts[1]), parts[2]))


@cache
def expressions(operator: type, names: tuple[str, ...]) -> Operands:
    """With the operator at the root, over event types and, now and then, pairs of them; some of
    them as the second part of a sequence."""
    leaf = st.sampled_from(names).map(x.Name)
    found = EXPRESSIONS[operator](st.one_of(leaf, leaf, pairs(leaf)))
    return st.one_of(found, found, st.builds(x.Seq, leaf, found)).map(written)


@contextmanager
def watched(operator: Any) -> Iterator[list[int]]:
    """The number of instances of each step of an operator that takes in or finds something, if it
    resumes from something it carried."""
    steps: list[int] = []
    step = operator.step

    def noted(self: Any, operands: list[Flow], carry: Carry, moment: Moment, /) -> Any:
        flow, kept = step(self, operands, carry, moment)
        count = sum(len(part.instances) for part in (*operands, flow))
        if operator in CARRY_NOTHING or any(map(len, carry)):
            steps.extend([count] * (count > 0))
        return flow, kept

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator, "step", noted)
        yield steps


@pytest.mark.parametrize("operator", EXPRESSIONS, ids=lambda operator: operator.__name__)
@detecting
def test_an_operator_resumes_as_the_reference_goes_on(operator: type) -> None:
    @drawn_for(operator.__name__)
    @given(data=st.data())
    @example_count(12, least=12 if operator is Minus else 8)  # its instances are rare
    def some(data: st.DataObject) -> None:
        drawn, history = data.draw(cases(10, last=lambda names: expressions(operator, names)))
        rules = {name: in_context(r, Context.RESTRICTED) for name, r in drawn.rules.items()}
        rulebook = replace(drawn, rules=rules)
        answer = expected(rulebook, history)
        with node_by_node(), watched(operator) as steps:
            for cut in everywhere(rulebook, history):
                assert run(rulebook, history, cut) == answer
        saw(steps)

    some()
