"""`instant(x)` of what takes time as a constituent: what the detector finds is what the reference
finds, in every context, however it is cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.compare import agree
from tests.golden.load import read
from tests.reference.cuts import everywhere
from tests.reference.examples import example_count
from tests.reference.hits import detecting, drawn_for, noted, noting, resuming
from tests.reference.meaning import Meaning
from tests.reference.planted import cases
from tests.reference.strategies import EVERYTHING, Operands, expressions
from tests.reference.test_points import EXAMPLES
from tests.reference.values import Instance
from tests.support.agreement import check
from tests.support.history import run
from tidegate import parse
from tidegate.rules.algebra.points import counted_points, points
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.model import Context

PARTS = (
    "{a} ; {b}",
    "{a} and {b}",
    "{a} or ({b} ; {c})",
    "({a} ; {b}) within 2 s",
    "{a} within 1 s",
    "{a} - {b}",
    "any(2, {a}*)",
    "not({b})[{a}, [2 s]]",
    "A*({a}, {b}, {c})",
    "P({a}, [1 s], {b})",
    "{a} + [1 s]",
    "every(2, {a})",
    "instant({a} ; {b}) ; {c}",
    "instant({a} and {b}) and {c}",
)
FORMS = (
    "{i}",
    "{i} ; {c}",
    "{c} ; {i}",
    "({i} ; {c}) within 3 s",
    "{i} and {c}",
    "{i} or {c}",
    "{i} or {j}",
    "{i} and {j}",
    "{i} ; {j}",
    "{c} ; ({d} ; {i})",
    "({i} or {c}) ; {d}",
    "{i} or ({part} ; {c})",
    "{part} ; {i}",
    "any(2, {i}, {j}, {c})",
    "any({n}, {i}*)",
    "any(2, ({i} and {c})*)",
    "A*({c}, {i}, {d})",
    "A*({i}, {c}, {j})",
    "A({c}, {i}, {d})",
    "P*({i}, [1 s], {c})",
    "({c} ; {i}) - {part}",
    "not({c})[{i}, {j}]",
    "{i} ; [2 s]",
    "instant({i} ; {c}) and {d}",
)
SEVERAL = "points are one of several of an instant"
TIED = "points are one of several of an instant that start together"


@cache
def forms(names: tuple[str, ...]) -> Operands:
    """Expressions that are searched for because of their points."""
    leaf = st.sampled_from(names)
    rules = [name for name in names if name.startswith("r")]
    drawn = expressions(EVERYTHING, names, 1).map(format_expression)
    made = st.builds(
        lambda p, a, b, c: p.format(a=a, b=b, c=c), st.sampled_from(PARTS), *[leaf] * 3
    )
    part = st.one_of(made, made, made, drawn, *[st.sampled_from(rules)] * bool(rules))
    point = part.map(lambda text: f"instant({text})")
    whole = st.builds(
        lambda form, i, j, p, c, d, n: parse(form.format(i=i, j=j, part=f"({p})", c=c, d=d, n=n)),
        st.sampled_from(FORMS), point, point, part, leaf, leaf, st.integers(1, 3),
    )  # fmt: skip
    return whole.filter(lambda on: any(points(on, rules)) and not any(counted_points(on, rules)))


@pytest.mark.parametrize("text", EXAMPLES.split("\n\n"))
def test_example(text: str) -> None:
    case = read(text)
    history = list(case.history)
    for context in case.expected:
        book = case.in_context(context)
        agree(run(book, history, until=case.until), case, context, "in one bucket")
        for cut in everywhere(book, history):
            agree(run(book, history, cut, case.until), case, context, "in many buckets")


@pytest.fixture
def choices(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What the reference has chosen points among."""
    found: Counter[str] = Counter()
    known = Meaning._instant

    def noting_ties(self: Meaning, e: x.Instant) -> Iterator[Instance]:
        ends = Counter(i.end for i in self.of(e.part))
        starts = Counter((i.start, i.end) for i in self.of(e.part))
        found[SEVERAL] += any(number > 1 for number in ends.values())
        found[TIED] += any(number > 1 for number in starts.values())
        return known(self, e)

    monkeypatch.setattr(Meaning, "_instant", noting_ties)
    return found


def looked(context: Context, data: st.DataObject, choices: Counter[str]) -> None:
    choices.clear()
    check(context, data.draw(cases(contexts=list(Context), rules_max=2, last=forms)), data)
    for what in (SEVERAL, TIED):
        noted(what, choices[what] > 0)


@pytest.mark.parametrize("context", Context)
@noting(**{SEVERAL.replace(" ", "_"): 3, TIED.replace(" ", "_"): 8})
@resuming
@detecting
def test_detections_are_those_of_the_reference(context: Context, choices: Counter[str]) -> None:
    @drawn_for(context)
    @given(data=st.data())
    @example_count(50, least=6)
    def some(data: st.DataObject) -> None:
        looked(context, data, choices)

    some()


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("context", Context)
@noting(**{SEVERAL.replace(" ", "_"): 3, TIED.replace(" ", "_"): 5})
@resuming
@detecting
def test_twenty_thousand_cases_are_those_of_the_reference(
    context: Context, choices: Counter[str]
) -> None:
    @drawn_for(context)
    @given(data=st.data())
    @example_count(20_000 // 6 + 1)
    def some(data: st.DataObject) -> None:
        looked(context, data, choices)

    some()
