"""`times`, `relative`, `prior`, `choose`, `fa` and `faAbs` (Ode, Samos): what the detector finds is
what the reference finds, in every context, however it is cut; and what they mean, in words."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tests.reference.hits import detecting, drawn_for, resuming
from tests.reference.planted import cases
from tests.reference.strategies import (
    EVERYTHING,
    Operands,
    expressions,
)
from tests.support.agreement import check
from tidegate import parse
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.nodes import Expression
from tidegate.rules.model import Context

COUNTED = ("every(", "[1]", "[2]", "[3]")
FORMS = (
    "fa({a}, {b}, {c})",
    "faAbs({a}, {b}, {c})",
    "times({n}, {b}, {a}, {c})",
    "relative({a}, ({b})[{n}])",
    "prior({a}, {name})",
    "choose({n}, {a})",
    "fa({a}, {b}, {c}) ; {name}",
    "faAbs({name}, {b}, {c}) within 4 s",
    "not(instant({a}) ; instant({b}))[{name}, {c}]",
    "({a} ; {name}) - (instant({b}) and instant({c}))",
    "A(instant({a}), {name}, instant({b}))",
    "instant({a}) + [2 s]",
)


@cache
def ode(names: tuple[str, ...]) -> Operands:
    """Each form over events and composite parts."""
    leaf = st.sampled_from(names)
    some = expressions(EVERYTHING, names, 1).map(format_expression)
    part = st.one_of(leaf, some.map(lambda text: f"({text})"))

    def made(form: str, a: str, b: str, c: str, name: str, n: int) -> Expression | None:
        if form.startswith("relative") and any(word in b for word in COUNTED):
            return None
        return parse(form.format(a=a, b=b, c=c, name=name, n=n))

    events = st.sampled_from([name for name in names if not name.startswith("r")])
    drawn = st.builds(made, st.sampled_from(FORMS), part, part, part, events, st.integers(1, 3))
    return drawn.filter(lambda found: found is not None)


@pytest.mark.parametrize("context", Context)
@resuming
@detecting
def test_detections_are_those_of_the_reference(context: Context) -> None:
    @drawn_for(context)
    @given(data=st.data())
    @example_count(80, least=6)
    def some(data: st.DataObject) -> None:
        check(context, data.draw(cases(contexts=list(Context), rules_max=2, last=ode)), data)

    some()


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("context", Context)
@resuming
@detecting
@given(data=st.data())
@example_count(20_000 // 6 + 1)
def test_twenty_thousand_cases_are_those_of_the_reference(
    context: Context, data: st.DataObject
) -> None:
    check(context, data.draw(cases(contexts=list(Context), rules_max=2, last=ode)), data)
