"""The calendar of a rule's business days: what it says, what is refused and warned of."""

from __future__ import annotations

import pytest

from tidegate import rules
from tidegate.engine.loop.compiled_rulebook import digests_of
from tidegate.rules.errors import InputError
from tidegate.rules.expressions.nodes import BusinessCalendar, business_calendars
from tidegate.rules.model import Rulebook

HEAD = "rulebook: b\nevents: {a: {signal: {}}, b: {signal: {}}}\n"


def load(rest: str) -> Rulebook:
    return rules.load(HEAD + rest)


def calendar(rest: str, rule: str = "r") -> BusinessCalendar:
    (found,) = business_calendars(load(rest).rules[rule].pattern.on)
    return found


def test_a_rule_says_its_business_days_as_a_clock_does_or_the_defaults_do() -> None:
    on = "on: 'a ; [2 business days]'"
    assert calendar(f"rules: {{r: {{{on}}}}}") == BusinessCalendar((0, 1, 2, 3, 4))
    said = "days: [sat, mon-tue], except: [2026-12-31, 2026-12-24], holidays: [DE-BE, AT]"
    wanted = BusinessCalendar((0, 1, 5), ("2026-12-24", "2026-12-31"), ("AT", "DE-BE"))
    assert calendar(f"rules: {{r: {{{on}, {said}}}}}") == wanted
    defaults = f"defaults: {{{said}}}\nrules: {{r: {{{on}}}, s: {{{on}, days: sun}}, t: {{on: a}}}}"
    assert calendar(defaults) == wanted
    assert calendar(defaults, "s").days == (6,)
    assert load(defaults).warnings == ()


def test_each_way_to_name_them_in_an_expression_has_the_calendar() -> None:
    for on in (
        "a + [1 business day]",
        "a then no b for 1 business day",
        "P(a, [1 business day], b)",
        "P*(a, [1 day], [1 business day])",
        "not(b)[A(a, b, [1 business day]), b]",
    ):
        text = f"rules: {{r: {{on: '{on}', holidays: DE, context: restricted}}}}"
        assert calendar(text).holidays == ("DE",)


def test_another_calendar_is_another_rule_to_detect() -> None:
    texts = [
        f"rules: {{r: {{on: 'a ; [1 business day]'{more}}}}}" for more in ("", ", holidays: DE")
    ]
    one, other = (digests_of(load(text))["r"] for text in texts)
    assert one != other


@pytest.mark.parametrize(
    ("rest", "column", "said"),
    [
        ("{on: 'a ; [1 business day]', holidays: XX}", 51, "'XX' is no country with known"),
        ("{on: a, cooldown: 2 business days}", 30, "only an event expression counts"),
        ("{on: 'a ; b within 2 business days'}", 31, "2 business days bound no span"),
    ],
)
def test_what_is_refused_has_its_place(rest: str, column: int, said: str) -> None:
    with pytest.raises(InputError) as refused:
        load(f"rules: {{r: {rest}}}")
    (problem,) = refused.value.problems
    assert (problem.place.line, problem.place.column) == (3, column)
    assert said in problem.message


def test_a_calendar_that_nothing_counts_by_is_warned_of_where_the_rule_has_it() -> None:
    book = load("rules: {r: {on: a, holidays: DE}}")
    (warning,) = book.warnings
    assert (warning.code, warning.place.line, warning.place.column) == ("no-business-days", 3, 30)
