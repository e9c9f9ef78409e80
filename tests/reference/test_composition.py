"""S1: in `restricted`, choosing at every node gives the same instance as choosing at the root
(Carlson & Lisper, Theorem 4.6; semantics 4)."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference import evaluate as output
from tests.reference.evaluate import Line, canonical, evaluate
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw, small
from tests.reference.meaning import Meaning, World, is_composite
from tests.reference.planted import cases
from tests.reference.strategies import EVERYTHING, FIRST_SLICE, Operator
from tests.reference.values import Instance, greatest
from tidegate.rules.expressions.nodes import Expression, Instant
from tidegate.rules.model import Context, Rulebook


class EveryNode(Meaning):
    """Each node keeps, for each end, only its greatest instance."""

    def of(self, expression: Expression) -> list[Instance]:
        instances = super().of(expression)
        ends = {i.end for i in instances}
        return [greatest(i for i in instances if i.end == end) for end in ends]

    def _each(self, part: Expression) -> list[Instance]:
        """A plain operand's occurrences are each counted, also simultaneous ones."""
        return super()._each(part) if is_composite(part) else Meaning(self.world)._each(part)


def at_every_node(
    expression: Expression,
    world: World,
    context: Context,
    until: int | None,
    where: object,
) -> list[Instance]:
    assert context is Context.RESTRICTED
    assert where is None
    return [i for i in EveryNode(world).of(expression) if until is None or i.end <= until]


@pytest.mark.parametrize(
    "operators",
    [FIRST_SLICE, EVERYTHING, (*FIRST_SLICE, Instant), (*EVERYTHING, Instant)],
    ids=["first slice", "everything", "points", "everything and points"],
)
@detecting
@given(data=st.data())
@example_count(80)
def test_s01_choosing_at_every_node_is_choosing_at_the_root(
    operators: Collection[Operator], data: st.DataObject
) -> None:
    rulebook: Rulebook
    history: list[Line]
    rulebook, history = data.draw(cases(operators=operators, depth=3))
    with small(), pytest.MonkeyPatch.context() as patch:
        at_root = evaluate(rulebook, history, context=Context.RESTRICTED, instances_max=1_000)
        patch.setattr(output, "detections", at_every_node)
        at_nodes = evaluate(rulebook, history, context=Context.RESTRICTED, instances_max=1_000)
    expected = saw(canonical(d.printed() for d in at_root))
    assert canonical(d.printed() for d in at_nodes) == expected
