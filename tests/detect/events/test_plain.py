"""What is plain is counted occurrence by occurrence, an `or` of plain events too (S9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.cuts import cuts, everywhere
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.keys import needs_keyed
from tests.reference.planted import planted
from tests.reference.strategies import NAMES, SECOND, expected, of_last, written
from tests.support.history import run
from tests.support.rulebooks import altered
from tidegate import parse
from tidegate.rules.errors import Place
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.nodes import (
    And,
    AnyRepeat,
    AperiodicStar,
    Duration,
    Every,
    Labelled,
    Name,
    Nth,
    Or,
    Own,
    Seq,
    Within,
)
from tidegate.rules.model import Context, EventType, Pattern, Rule, Rulebook, SignalEvent

PLACE = Place()
COUNTS = st.integers(1, 3)
EVENTS = st.sampled_from([*NAMES, "r"]).map(Name)
LEAVES = EVENTS | st.builds(Labelled, st.just("L"), EVENTS)
EITHER = st.lists(LEAVES, min_size=2, max_size=3).map(tuple).map(Or)
PLAIN = EITHER | st.builds(Or, st.tuples(EITHER, LEAVES))
LAST = EVENTS | EITHER | st.just(Own(Duration(0, 2 * SECOND)))
COUNTED = st.one_of(
    st.builds(AnyRepeat, COUNTS, PLAIN),
    st.builds(Every, COUNTS, PLAIN),
    st.builds(Nth, PLAIN, COUNTS),
    st.builds(AperiodicStar, EVENTS, PLAIN, LAST),
    st.builds(AperiodicStar, EVENTS, PLAIN, LAST),
)
AROUND = st.one_of(
    COUNTED,
    COUNTED,
    st.builds(Within, COUNTED, st.just(Duration(0, 2 * SECOND))),
    st.builds(Seq, COUNTED, EVENTS),
    st.builds(And, st.tuples(COUNTED, EVENTS)),
    st.builds(Or, st.tuples(COUNTED, COUNTED)),
)


@st.composite
def books(draw: st.DrawFn, context: Context) -> Rulebook:
    """A rule over what is counted, with the rule `r` as an event; with keys, of all or of some
    event types, or without."""
    keyed = draw(st.sampled_from([(), NAMES, ("a", "b")]))
    fields = {name: ({"k": "bigint"} if name in keyed else {}) | {"v": "bigint"} for name in NAMES}
    events: dict[str, EventType] = {n: SignalEvent(n, PLACE, fields[n]) for n in NAMES}
    per = dict.fromkeys(keyed, ("k",))
    pair = Seq(Name("a"), Name("b"))
    first = Rule("r", PLACE, Pattern(pair, format_expression(pair), context=Context.UNRESTRICTED))
    if keyed:
        first = altered(first, key_names=("k",), per={n: per[n] for n in ("a", "b")})
        per["r"] = ("k",)
    on = written(draw(AROUND))
    named = {node.name for node in on.walk() if isinstance(node, Name)}
    rule = Rule("s", PLACE, Pattern(on, format_expression(on), context=context))
    own = {n: per[n] for n in sorted(named & per.keys())}
    if needs_keyed(on, own):
        rule = altered(rule, key_names=("k",), per=own)
    return Rulebook("generated", None, "", "UTC", {}, events, {"r": first, "s": rule})


def unlike(book: Rulebook) -> st.SearchStrategy[list[Line]]:
    """Histories without equal rows: nobody can say which of them a detection of `r` holds."""
    return planted(book, 8).map(
        lambda lines: list({(*line[:2], *sorted(line[2].items())): line for line in lines}.values())
    )


@pytest.mark.parametrize(
    "on", ["any(2, (a or b)*) ; c", "every(2, a or b) ; c", "A*(b, a or b, c)"]
)
def test_a_key_counts_its_own_occurrences_and_the_broadcasts(on: str) -> None:
    events: dict[str, EventType] = {
        name: SignalEvent(name, PLACE, {"k": "bigint", "v": "bigint"} if name != "a" else {})
        for name in NAMES
    }
    per = {"b": ("k",), "c": ("k",)}
    pattern = Pattern(parse(on), on, context=Context.RESTRICTED, key_names=("k",), per=per)
    book = Rulebook("b", None, "", "UTC", {}, events, {"r": Rule("r", PLACE, pattern)})
    history: list[Line] = [("a", SECOND, {})]
    history += [("b", n * SECOND, {"k": n, "v": 0}) for n in (2, 3)]
    history += [("c", (7 - n) * SECOND, {"k": n, "v": 0}) for n in (2, 3)]
    answer = expected(book, history)
    assert answer
    assert run(book, history) == answer
    for cut in everywhere(book, history):
        assert run(book, history, cut) == answer


@pytest.mark.parametrize("context", Context)
@detecting
def test_s09_every_occurrence_of_an_or_of_plain_events_counts(context: Context) -> None:
    @given(data=st.data())
    @example_count(40)
    def some(data: st.DataObject) -> None:
        book = data.draw(books(context))
        history = data.draw(unlike(book))
        answer = expected(book, history)
        saw(of_last(book, answer))
        assert run(book, history) == answer
        assert run(book, history, data.draw(cuts(book, history))) == answer

    some()
