"""Rulebooks with one window, and histories whose rows stand at its bounds.

A rule sees each key as if alone. So where rules have keys, an example has several histories side by
side, each of keys of its own: a step of the detector costs the same, and finds as many cases more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from itertools import product
from typing import Any, TypeVar

from hypothesis import strategies as st

from tests.reference.evaluate import Line
from tests.reference.strategies import PLACE, SECOND
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.model import Context, Pattern, Rule, Rulebook, SignalEvent

FIELDS = {"k": "bigint", "v": "bigint", "x": "double", "m": "decimal(6,2)"}
VALUES: dict[str, list[Any]] = {
    "k": [1, 1, 1, 2, None],
    "v": [0, 1, 2, 3, -1, None],
    "x": [0.1, 0.2, 0.7, 1.5, -2.25, 1e16, None],
    "m": [Decimal("0.05"), Decimal("1.25"), Decimal("2.00"), Decimal("-0.70"), None],
}
_ROWS = [dict(zip(VALUES, values, strict=True)) for values in product(*VALUES.values())]
AS_EVENT = "used"
SIDE_BY_SIDE = 8
CASES_AN_EXAMPLE = 4
"""At least, on average."""
_APART = 10  # keys of two histories
Found = TypeVar("Found")
Made = Callable[[x.Expression], st.SearchStrategy[w.Window]]


@st.composite
def books(
    draw: st.DrawFn, made: Made, zones: Collection[str] = ("UTC",), windows: Collection[str] = "r"
) -> Rulebook:
    """Windows, `r` one of them, over a, over a and b, or over a rule's detections; with keys and
    without; sometimes a rule over `r`."""
    events = {name: SignalEvent(name, PLACE, FIELDS) for name in ("a", "b")}
    keyed = draw(st.sampled_from([True, True, False]))
    rules: dict[str, Rule] = {}

    def add(name: str, on: x.Expression, context: Context) -> None:
        per = dict.fromkeys(x.names_in(on), ("k",)) if keyed else {}
        keys = ("k",) if keyed else ()
        pattern = Pattern(on, format_expression(on), context, key_names=keys, per=per)
        rules[name] = Rule(name, PLACE, pattern)

    a, b = x.Name("a"), x.Name("b")
    part = draw(st.sampled_from([a, a, a, x.Or((a, b)), x.Or((b, a)), x.Name(AS_EVENT)]))
    if part == x.Name(AS_EVENT):
        pair = x.Within(x.Seq(a, b), x.Duration(0, 4 * SECOND))
        add(AS_EVENT, pair, draw(st.sampled_from([Context.CHRONICLE, Context.UNRESTRICTED])))
    for name in windows:
        add(name, draw(made(part)), Context.CUMULATIVE)
    if draw(st.integers(0, 4)) == 4:
        over = x.Within(x.Seq(a, x.Name("r")), x.Duration(0, 6 * SECOND))
        add("over", over, draw(st.sampled_from([Context.RESTRICTED, Context.CHRONICLE])))
    return Rulebook("generated", None, "", draw(st.sampled_from([*zones])), {}, events, rules)


@st.composite
def histories(draw: st.DrawFn, lengths: Collection[int], begin: int = 0) -> list[Line]:
    """Rows at bounds of windows with these lengths, a microsecond beside them, and between."""
    steps = [0, 0, SECOND, 2 * SECOND, *lengths, *lengths]
    moved = st.builds(int.__add__, st.sampled_from(steps), st.sampled_from([0, 0, -1, 1]))
    times = [begin]
    lines: list[Line] = []
    for _ in range(draw(st.integers(1, 9))):
        time = max(draw(st.sampled_from(times[-3:])) + draw(moved), begin - 1)
        times.append(time)
        lines.append((draw(st.sampled_from("aab")), time, draw(st.sampled_from(_ROWS))))
    return draw(st.permutations(lines))


@st.composite
def side_by_side(
    draw: st.DrawFn, book: Rulebook, histories: st.SearchStrategy[list[Line]]
) -> list[Line]:
    """As many histories as an example of a rulebook has, in one."""
    lines: list[Line] = []
    for case in range(cases(book)):
        for event, time, row in draw(histories):
            key = row.get("k")
            if case and "k" in row:
                row = {**row, "k": case * _APART + (key or 0)}
            lines.append((event, time, row))
    return lines


def cases(book: Rulebook) -> int:
    """How many histories an example of a rulebook has."""
    keyed = all(rule.pattern.key_names for rule in book.rules.values())
    return SIDE_BY_SIDE if keyed else 1


def by_case(
    book: Rulebook, found: Iterable[Found], key: Callable[[Found], Mapping[str, Any]]
) -> list[list[Found]]:
    """What is found, by the history that it is found in."""
    apart: list[list[Found]] = [[] for _ in range(cases(book))]
    for each in found:
        apart[(key(each).get("k") or 0) // _APART].append(each)
    return apart


def ends(history: list[Line], lengths: Collection[int]) -> st.SearchStrategy[int | None]:
    """How far time goes on: until all has run out, or up to a bound, or a microsecond beside it."""
    last = max(time for _, time, _ in history)
    bound = st.builds(int.__add__, st.just(last), st.sampled_from([0, *lengths]))
    beside = st.builds(int.__add__, bound, st.sampled_from([-1, 0, 1]))
    return st.one_of(st.none(), st.none(), beside)
