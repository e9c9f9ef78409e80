"""Carlson & Lisper's laws hold of `[[E]]`, and in `restricted` on starts and ends (Cor. 4.4)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.laws.drawn import cases, each_law
from tests.laws.table import sides
from tests.reference.alone import seen, spans, world
from tests.reference.contexts import detections
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw, small
from tests.reference.meaning import World
from tests.reference.values import Instance
from tidegate.rules.algebra.laws import LAWS, Law
from tidegate.rules.expressions.nodes import Expression, Name
from tidegate.rules.model import Context


def found(on: Expression, context: Context, seeing: World) -> list[Instance]:
    with small():
        return saw(detections(on, seeing, context))


def test_there_are_36_laws_each_with_its_own_name() -> None:
    assert len({law.name for law in LAWS}) == len(LAWS) == 36


@each_law
@detecting
@given(data=st.data())
@example_count(8)
def test_law(law: Law, data: st.DataObject) -> None:
    case = data.draw(cases(law))
    seeing = world(case.history)
    if law.instances:
        left, right = (found(e, Context.UNRESTRICTED, seeing) for e in (case.left, case.right))
        assert seen(left) == seen(right)
    left, right = (found(e, Context.RESTRICTED, seeing) for e in (case.left, case.right))
    assert spans(left) == spans(right)


def test_and_is_idempotent_in_restricted_only() -> None:
    """S9: `a and a` is not `a`."""
    seeing = world([("a", 1), ("a", 2)])
    law = next(law for law in LAWS if law.name == "and-idempotent")
    left, right = sides(law, {"x": Name("a")}, 0, 0)
    assert seen(detections(left, seeing, Context.UNRESTRICTED)) != seen(
        detections(right, seeing, Context.UNRESTRICTED)
    )
