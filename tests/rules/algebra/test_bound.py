"""The static bound, case by case. That it is true is shown in
`tests/detect/events/test_bound.py`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tests.reference.strategies import EVERYTHING, expressions
from tests.rules import strategies as trees
from tests.support.rulebooks import loaded
from tidegate.rules.algebra.bound import Bounds, bound
from tidegate.rules.algebra.detector_form import detected
from tidegate.rules.algebra.normal_form import normalise
from tidegate.rules.checks.doubts import doubts
from tidegate.rules.errors import Place
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.nodes import Expression
from tidegate.rules.expressions.parser import parse, unlabelled
from tidegate.rules.model import Context, Pattern, Rule

MINUTE = 60_000_000
DAY = 1_440 * MINUTE
PROPOSED = {  # what stands in a warning's hint before the text that was probably meant
    "never": "by a length of time: ",
    "endless": "by a length of time: ",
    "above-operands": "of any of them: |occurrences of one: ",
}
OTHERS = [context for context in Context if context is not Context.RESTRICTED]


@pytest.mark.parametrize(
    ("on", "instances", "occurrences"),
    [
        ("a", 0, 0),
        ("a or b", 0, 0),
        ("a - b", 0, 0),
        ("a within 5", 0, 0),
        ("a ; b", 1, 1),
        ("a and b", 2, 2),
        ("(a ; b) within 3 - c", 2, 1),
        ("a ; (b ; c)", 3, 3),
        ("a ; (b and c)", 5, 5),
        ("any(2, a, b, c)", 3, 3),
        ("any(3, a*)", 2, 2),
        ("any(2, (a and b)*)", 3, 4),
        ("(a and b) ; (a and b)", 5, 8),
        ("not(b)[a, c]", 1, 1),
        ("not(b ; b)[a, c and d]", 9, 9),
        ("A(a, b, c)", 1, 0),
        ("A(a, b ; b, c)", 3, 1),
        ("P*(a, [1], c)", 1, 1),
        ("every(3, a)", 2, 2),
        ("a[7]", 0, 0),
        ("L: (a) ; M: (b)", 1, 1),
        ("a ; instant(b ; c)", 4, 4),
        ("instant(a and b) ; c", 5, 6),
    ],
)
def test_restricted_is_bounded_without_a_within(on: str, instances: int, occurrences: int) -> None:
    found = bound(parse(on), Context.RESTRICTED)
    assert (found.instances_max, found.occurrences_max) == (instances, occurrences)


@pytest.mark.parametrize(
    ("on", "span"),
    [
        ("not(ack)[sent, [5 min]]", 5),
        ("a + [2 min]", 2),
        ("a ; [3 min]", 3),
        ("A*(a, b, [5 min])", 5),
        ("P(a, [10 s], [5 min])", 5),
        ("A*(a, b, c) within 4 min", 4),
        ("(a ; instant(((b - d) ; c) within 2 min)) within 3 min", 5),
    ],
)
def test_what_waits_for_its_own_end_is_bounded_by_time(on: str, span: int) -> None:
    found = bound(parse(on), Context.RESTRICTED)
    assert found.instances_max is None
    assert found.span_micros == found.forgets_micros == span * MINUTE
    assert found.exists
    assert found.advice == ()


@pytest.mark.parametrize(
    ("on", "why", "advice"),
    [
        (
            "A*(a, b, c)",
            "`A*(a, b, c)` keeps every occurrence of an open window",
            "say how long `A*(a, b, c)` may take: a `within` of your choice",
        ),
        (
            "P(a, [10 s], c)",
            "`P(a, [10 s], c)` keeps every opening, for each has ticks of its own",
            "close the window after a time of your choice, too: `P(a, [10 s], c or a + [1 day])`",
        ),
        (
            "P*(a, [1], b) ; c",
            "`P*(a, [1 s], b) ; c` keeps 1 with all that its window holds",
            "say how long `P*(a, [1 s], b) ; c` may take: a `within` of your choice",
        ),
        (
            "A(A*(a, b, c), d, e) within 5",
            "`A*(a, b, c)` keeps every occurrence of an open window",
            "say how long `A*(a, b, c)` may take: a `within` of your choice",
        ),
    ],
)
def test_without_a_bound_it_says_why_and_what_gives_one(on: str, why: str, advice: str) -> None:
    found = bound(parse(on), Context.RESTRICTED)
    assert not found.exists
    assert found.why == why
    assert advice in found.advice


@pytest.mark.parametrize(
    ("on", "minutes"),
    [
        ("a ; b", None),
        ("a ; b within 5 min", 5),
        ("a ; b within 5 min without c", 5),
        ("a ; b within 5 min without (c ; b)", None),
        ("(a ; b) within 5 min or (c and a)", None),
    ],
)
def test_a_rule_forgets_what_a_within_reaches(on: str, minutes: int | None) -> None:
    on = on.replace("(a ; b) within 5 min", "((a ; b) within 5 min)")
    found = bound(parse(on), Context.RESTRICTED)
    assert found.forgets_micros == (None if minutes is None else minutes * MINUTE)


def test_a_window_of_known_length_has_so_many_ticks() -> None:
    found = bound(parse("P*(a, [10 s], b) ; c within 1 min"), Context.RESTRICTED)
    assert (found.instances_max, found.occurrences_max) == (2, 1 + 8)  # a, b, and 6 ticks


def test_the_advice_names_what_a_within_must_go_around() -> None:
    found = bound(parse("A(a ; b, c ; d, [5 min]) within 1 min"), Context.RESTRICTED)
    assert found.advice == ("say how long `a ; b` may take: a `within` of your choice",)
    for window in ("not(c)[(a and b), [14 days]]", "(a and b) ; [14 days]"):
        advice = bound(parse(window), Context.RECENT).advice
        assert advice == ("say how long `a and b` may take: a `within` of your choice",)


@pytest.mark.parametrize(
    ("on", "said", "span"),
    [
        ("{window: 1 d, every: 5 min, of: a}", "every row of the last 1 day", DAY),
        ("{window: 1 d, every: 1 d, of: a}", "every row of the last 1 day", 3 * DAY),
        ("{window: 36 h, every: 1 d, of: a}", "every row of the last 36 h", 36 * 60 * MINUTE),
        ("{window: 1 month, every: 1 d, of: a}", "every row of the last 1 month", 35 * DAY),
        ("{window: 1 d, of: a}", "the rows of the window that is open", 3 * DAY),
    ],
)
def test_a_window_keeps_what_it_says(on: str, said: str, span: int) -> None:
    """What is stored is as long as a local day may be; what is said is the window's length."""
    found = bound(loaded("a", r=f"on: {on}").rules["r"].pattern.on, Context.CUMULATIVE)
    assert found.why.endswith(said)
    assert found.span_micros == span


def test_what_counts_cannot_be_bounded_by_a_within() -> None:
    found = bound(parse("a[1] or (b ; a)"), Context.CHRONICLE)
    assert not found.exists
    assert found.advice == (
        "`a[1]` counts since activation: a number for every key stays",
        "choose context: restricted, which keeps few",
    )
    assert bound(parse("a[1] or (b ; a)"), Context.RESTRICTED).exists
    endless = bound(parse("a[1] or P(a, [1 h], b)"), Context.CHRONICLE)
    assert endless.advice == found.advice[:1]  # restricted would have no bound either


@given(trees.expressions, st.sampled_from(Context))
def test_what_an_advice_proposes_is_an_expression(on: Expression, context: Context) -> None:
    """The part that it names is one of what is detected."""
    rule = Rule("r", Place(), Pattern(on, "", context))
    whole = detected(rule.pattern)
    for advice in Bounds({"r": rule}).of_rule(rule).advice:
        if advice.startswith("choose context"):
            continue
        if advice.startswith("close the window"):
            parse(advice.split("`", 1)[1].rsplit("`", 1)[0])
            continue
        part = advice.removesuffix("a `within` of your choice").split("`", 1)[1].rsplit("`", 1)[0]
        parse(part)
        assert part in {format_expression(unlabelled(below)) for below in whole.walk()} | {
            format_expression(below) for below in whole.walk()
        }
    for doubt in doubts(on, rule, {}):
        for proposed in PROPOSED.get(doubt.code, "").split("|"):
            if proposed and proposed in doubt.hint:
                parse(doubt.hint.split(proposed)[1].split("; each once")[0])


@pytest.mark.parametrize("context", OTHERS)
def test_where_nothing_is_remembered_every_context_is_bounded(context: Context) -> None:
    assert bound(parse("a or b - c"), context).instances_max == 0


@pytest.mark.parametrize("context", [c for c in OTHERS if c is not Context.RECENT])
def test_contexts_that_keep_what_is_not_used_up_need_a_within(context: Context) -> None:
    assert not bound(parse("a ; b"), context).exists
    assert bound(parse("a ; b"), context).advice == (
        "say how long `a ; b` may take: a `within` of your choice",
    )
    assert bound(parse("a ; b within 5 min"), context).span_micros == 5 * MINUTE


@pytest.mark.parametrize(
    ("on", "instances"),
    [
        ("a ; b", 1),
        ("a ; (b ; c) within 5", 2),
        ("a and b", 1),
        ("(a and b) ; c", 2),
        ("a ; (b and c)", 2),
        ("any(2, a, b, c)", 1),
        ("any(2, a, b, c, d)", 2),
        ("(a ; b) - c", 1),
        ("not(b)[a, c]", 1),
        ("a and (b ; c)", 3 + 3),
        ("((a ; (b and c)) within 9) within 5", 2),
        ("(a or b) ; c", 1 + 2),
        ("a ; any(2, b, c, d)", 7 + 5),
        ("any(2, a, b, c) ; d", 4 + 3),
        ("a ; a", 1),
        ("(a ; b) and a", None),
        ("((a and b) within 5) ; c", None),
        ("a and (b - c)", None),
    ],
)
def test_recent_is_bounded_where_later_occurrences_are_always_better(
    on: str, instances: int | None
) -> None:
    """What may be chosen later; where that needs a search, also what `restricted` stores, to find
    where there is something to choose."""
    assert bound(parse(on), Context.RECENT).instances_max == instances


@pytest.mark.parametrize("context", OTHERS)
def test_of_so_many_occurrences_of_one_event_type_all_but_one_are_kept(context: Context) -> None:
    found = bound(parse("any(3, a*)"), context)
    assert found.instances_max == (None if context is Context.UNRESTRICTED else 2)


def test_recent_is_not_bounded_where_broadcasts_stand_among_keyed_events() -> None:
    rulebook = loaded("abcd", r="on: a and b, per: {a: k}, context: recent")
    assert Bounds(rulebook.rules).of_rule(rulebook.rules["r"]).instances_max is None


def test_what_is_half_matched_in_a_rule_used_as_event_counts() -> None:
    rulebook = loaded("abcd", q="on: b and c", r="on: a ; q", s="on: a ; d")
    found = bound(rulebook.rules["r"].pattern.on, Context.RESTRICTED, rulebook.rules)
    assert found.instances_max == 3  # an a for each start that q may have, and the latest


@pytest.mark.parametrize(
    ("rule", "warned"),
    [
        ("on: a ; b, per: k", ["fires-again"]),
        ("on: a ; b, per: k, context: restricted", []),
        ("on: a ; b, per: k, context: recent", []),
        ("on: a ; a, per: k", ["fires-again"]),
        ("on: 'A*(a, b, c)'", ["unbounded"]),
        ("on: 'A*(a, b, c) within 1 h'", []),
        ("on: a ; b, context: chronicle", ["unbounded"]),
        ("on: a ; b within 5 min, context: chronicle", []),
    ],
)
def test_s13_a_rule_without_a_bound_is_warned_of(rule: str, warned: list[str]) -> None:
    assert [w.code for w in loaded("abcd", r=rule).warnings] == warned


def test_s13_the_warning_says_what_to_write() -> None:
    (warning,) = loaded("abcd", r="on: a ; b, context: chronicle").warnings
    assert warning.message == (
        "no bound on what this stores: "
        "context chronicle keeps every occurrence until it is consumed"
    )
    assert warning.hint == "say how long `a ; b` may take: a `within` of your choice"


@given(expressions(EVERYTHING, depth=3))
@example_count(300)
def test_the_normal_form_is_bounded_and_forgets_where_the_expression_does(on: Expression) -> None:
    written, normal = (bound(e, Context.RESTRICTED) for e in (on, normalise(on)))
    assert normal.exists or not written.exists
    assert written.instances_max is None or normal.instances_max is not None
    if written.forgets_micros is not None:
        assert normal.forgets_micros is not None
        assert normal.forgets_micros <= written.forgets_micros
