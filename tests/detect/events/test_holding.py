"""`holds` and `resolved`: the detector finds what the reference does, however a history is cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.load import PLACE
from tests.reference.cuts import cuts
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, resuming, saw
from tests.reference.planted import untils
from tests.reference.strategies import SECOND, expected, expressions, written
from tests.reference.windows import holding
from tests.reference.windows.histories import CASES_AN_EXAMPLE, side_by_side
from tests.reference.windows.holding import Alert
from tests.support.history import run
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.model import Context, EventType, Pattern, Rule, Rulebook, SignalEvent

EXAMPLES = 200
NAMES = ("a", "b", "c", "d")
OPERATORS = (x.Or, x.And, x.Seq, x.Minus, x.Within, x.Not, x.AnyRepeat, x.Own)
KEYS = st.sampled_from([1, 1, 1, 2, None])


def either(names: list[str]) -> x.Expression:
    parts = tuple(map(x.Name, names))
    return parts[0] if len(parts) == 1 else x.Or(parts)


@st.composite
def holdings(draw: st.DrawFn, begun: tuple[str, ...], ended: tuple[str, ...]) -> w.Holding:
    length, keep = draw(st.integers(1, 4)), draw(st.sampled_from([0, 1, 2, 3]))
    some = st.lists(st.sampled_from(begun), min_size=1, max_size=2, unique=True)
    others = st.lists(st.sampled_from(ended), min_size=1, max_size=2, unique=True)
    return w.Holding(
        either(draw(some)),
        either(draw(others)),
        x.Duration(0, length * SECOND),
        x.Duration(0, keep * SECOND),
    )


def renamed(e: x.Expression, name: str, by: x.Expression) -> x.Expression:
    if e == x.Name(name):
        return by
    return x.with_operands(e, [renamed(operand, name, by) for operand in e.operands()])


@st.composite
def books(draw: st.DrawFn) -> Rulebook:
    """A rule p that may be held, as an event; a rule that holds; and one over it and its end. Keyed
    by k, but d; or without keys."""
    keyed = draw(st.sampled_from([True, True, False]))
    columns = {name: {"k": "bigint"} if keyed and name != "d" else {} for name in NAMES}
    events: dict[str, EventType] = {
        name: SignalEvent(name, PLACE, {**columns[name], "v": "bigint"}) for name in NAMES
    }
    per = {name: ("k",) for name in NAMES if columns[name]} | ({"p": ("k",)} if keyed else {})
    pair = draw(expressions(OPERATORS, ("a", "b"), 1, x.Seq))
    on = draw(holdings(("a", "a", "b", "p"), ("c", "c", "d", "a", "p")))
    over = draw(expressions(OPERATORS, ("h", "e", "h", "e", "c"), draw(st.sampled_from([1, 0]))))
    last = renamed(over, "e", x.Resolved("h"))
    usual = draw(st.sampled_from([*Context]))
    rules = {
        "p": rule("p", pair, Context.RESTRICTED, per),
        "h": rule("h", on, Context.CUMULATIVE, per),
        "s": rule("s", written(last), usual, {**per, "h": ("k",)} if keyed else {}),
    }
    return Rulebook("generated", None, "", "UTC", {}, events, rules)


def rule(name: str, on: x.Expression, context: Context, per: Mapping[str, tuple[str, ...]]) -> Rule:
    named = {n.name for n in on.walk() if isinstance(n, x.Name | x.Edge)}
    keyed = {event: columns for event, columns in per.items() if event in named}
    names = ("k",) if keyed else ()
    return Rule(
        name, PLACE, Pattern(on, format_expression(on), context, key_names=names, per=keyed)
    )


class Alerts:
    """A growing history, of alerts one after another: an instant is that at which something is
    decided, or a microsecond beside it."""

    def __init__(self, draw: st.DrawFn, book: Rulebook) -> None:
        on = book.rules["h"].pattern.on
        assert isinstance(on, w.Holding)
        self.draw, self.book, self.on = draw, book, on
        self.begun, self.ended = (
            sorted(x.names_in(part) - {"p"}) or ["b"] for part in (on.begun, on.ended)
        )
        self.now = 0
        self.lines: list[Line] = []

    def add(self, names: list[str], after: int, key: int | None) -> None:
        """A line so long after the last one, or a microsecond beside that."""
        self.now = max(0, self.now + after + self.draw(st.sampled_from([0, 0, -1, 1])))
        name = self.draw(st.sampled_from(names))
        row = {"k": key, "v": self.draw(st.integers(0, 1))}
        event = self.book.events[name]
        assert isinstance(event, SignalEvent)
        self.lines.append((name, self.now, {field: row[field] for field in event.fields}))

    def alert(self) -> None:
        """One alert: pending, more of it, perhaps an end that makes it void, an end."""
        key, length, keep = self.draw(KEYS), self.on.length.micros, self.on.keep.micros
        if "p" in x.names_in(self.on.begun):
            self.add(["a"], SECOND, key)
        self.add(self.begun, SECOND, key)
        left = length
        if self.draw(st.booleans()):
            self.add(self.begun, SECOND, key)
            left = max(left - SECOND, 0)
        self.add(self.ended, left, key)
        for _ in range(self.draw(st.integers(0, 2))):
            self.add(self.begun, keep, key)
            self.add(self.ended, self.draw(st.sampled_from([SECOND, length])), key)


@st.composite
def histories(draw: st.DrawFn, book: Rulebook) -> list[Line]:
    found = Alerts(draw, book)
    for _ in range(draw(st.integers(1, 3))):
        found.alert()
    for _ in range(draw(st.integers(0, 3))):
        found.now = draw(st.sampled_from(found.lines))[1]
        found.add([*NAMES], draw(st.sampled_from([0, SECOND])), draw(KEYS))
    return draw(st.permutations(found.lines))


Seen = tuple[list[Alert], set[int]]


@contextmanager
def watching() -> Iterator[list[Seen]]:
    """The alerts that the reference finds in here, key by key, and the instants of the key."""
    found, alerts = list[Seen](), holding.alerts

    def watched(overs: Any, unders: Any, *lengths: Any) -> list[Alert]:
        each = alerts(overs, unders, *lengths)
        found.append((each, {o.end for o in (*overs, *unders)}))
        return each

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holding, "alerts", watched)
        yield found


SAID = ("fired", "cut short", "resolved", "kept", "at one instant")


def shown(alerts: list[Alert], instants: set[int]) -> Iterator[str]:
    """What a key shows."""
    for alert in alerts:
        yield str(alert.fate)
        if alert.fired is not None:
            yield "fired"
        if alert.kept:
            yield "kept"
        if instants & {alert.fired, alert.resolved} - {alert.start}:
            yield "at one instant"


def check(data: st.DataObject, counted: Counter[str]) -> None:
    book = data.draw(books())
    history = data.draw(side_by_side(book, histories(book)))
    until = data.draw(untils(history))
    with watching() as seen:
        answer = expected(book, history, until=until)
    for alerts, instants in seen:
        counted["keys"] += bool(alerts)
        counted.update({*shown(alerts, instants)})
    saw([line for line in answer if '"rule": "h"' in line])
    assert run(book, history, until=until) == answer
    cut, partitions = data.draw(cuts(book, history)), data.draw(st.sampled_from([None, 4]))
    assert run(book, history, cut, until, partitions=partitions) == answer


@resuming
@detecting
def test_it_fires_and_is_resolved_as_by_the_reference() -> None:
    draw(EXAMPLES)


@pytest.mark.long
@pytest.mark.timeout(0)
@resuming
@detecting
def test_in_twenty_thousand_cases() -> None:
    draw(20_000 // CASES_AN_EXAMPLE)


def draw(count: int) -> None:
    """Each of what a `holds` may do is seen of one key in ten at least."""
    counted = Counter[str]()

    @given(data=st.data())
    @example_count(count, least=EXAMPLES // 24)
    def some(data: st.DataObject) -> None:
        check(data, counted)

    some()
    print(dict(counted))
    assert all(counted[said] * 10 >= counted["keys"] for said in SAID), counted
