"""`recent` detects the same from the few occurrences that it keeps of a flat expression."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.reference.cuts import cuts
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import planted
from tests.reference.strategies import SECOND, expected, written
from tests.support.history import run
from tests.support.rulebooks import over_signals
from tidegate.rules.expressions.nodes import And, Duration, Expression, Name, Seq, Within
from tidegate.rules.model import Context

NAMES = ("a", "b", "c", "d")


@st.composite
def flat(draw: st.DrawFn, names: tuple[str, ...]) -> Expression:
    """`;` and `and` over these event types, in this order."""
    if len(names) == 1:
        return Name(names[0])
    at = draw(st.integers(1, len(names) - 1))
    left, right = draw(flat(names[:at])), draw(flat(names[at:]))
    return Seq(left, right) if draw(st.booleans()) else And((left, right))


@detecting
@given(data=st.data())
@example_count(40)
def test_s03_recent_detects_what_the_reference_detects_for_any_cut(data: st.DataObject) -> None:
    on = data.draw(flat(NAMES[: data.draw(st.integers(2, 4))]))
    if data.draw(st.booleans()):
        on = Within(on, Duration(0, data.draw(st.integers(0, 5)) * SECOND))
    keys = data.draw(st.sampled_from([(), ("k",)]))
    book = over_signals(written(on), Context.RECENT, keys)
    history = data.draw(planted(book, 16))
    assert run(book, history, data.draw(cuts(book, history))) == saw(expected(book, history))
