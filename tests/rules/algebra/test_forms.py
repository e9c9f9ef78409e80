"""The chooser: which form an expression has in each context."""

from __future__ import annotations

import pytest

from tidegate.rules.algebra.forms import Form, forms
from tidegate.rules.expressions.parser import parse
from tidegate.rules.model import Context, Selection

FORMS = {
    # expression: restricted, unrestricted, recent, chronicle, continuous, cumulative
    "a": "Operators Single Operators Single Single Single",
    "a or b": "Operators Single Operators Single Single Single",
    "a or a": "Operators Single Nested Nested Nested Nested",
    "A(a, b ; c, d) - a": "Operators Nested Nested Nested Nested Nested",
    "A(a ; b, c, [5 s]) - a": "Operators Single Operators Single Single Single",
    "L: (a) ; [5 s]": "Operators Single Operators Single Single Single",
    "a ; b ; c within 5 s": "Operators Nested Flat Flat Flat Flat",
    "a ; (b and c) - d": "Operators Nested Flat Flat Flat Flat",
    "a ; any(1, b, c)": "Operators Nested Nested Flat Flat Flat",
    "a ; b within 1 month": "Operators Nested Nested Nested Nested Nested",
    "A*(a, b, c) - d": "Operators Nested Windowed Windowed Windowed Windowed",
    "A*(a, b, [1 month])": "Operators Nested Nested Nested Nested Nested",
    "a ; a": "Operators Nested Flat Flat Flat Flat",
    "(a ; b within 5 s) ; c": "Operators Nested Flat Flat Flat Nested",
    "(a ; b) and c": "Operators Nested Nested Nested Nested Nested",
    "P*(a, [5 s], c)": "Operators Nested Nested Nested Nested Nested",
}
ORDER = (
    Context.RESTRICTED,
    Context.UNRESTRICTED,
    Context.RECENT,
    Context.CHRONICLE,
    Context.CONTINUOUS,
    Context.CUMULATIVE,
)


def named(on: str, **given: tuple[str, ...]) -> list[str]:
    found = forms(parse(on), **given)
    return [type(found.of(context)).__name__ for context in ORDER]


@pytest.mark.parametrize("on", FORMS)
def test_each_context_has_its_form(on: str) -> None:
    assert named(on) == named(on, keyed=("a", "b", "c", "d")) == FORMS[on].split()


def test_a_walk_reads_event_types_of_one_key_or_broadcasts_and_no_rules() -> None:
    assert named("a ; b")[3] == "Flat"
    assert named("a ; b", keyed=("a",))[3] == named("a ; b", rules=("b",))[3] == "Nested"
    assert named("A*(a, b, c)", keyed=("a",))[3] == "Nested"
    assert named("A(a, b, c)", keyed=("b",))[3] == "Single"
    assert named("(a or b) - c", keyed=("a",))[3] == "Nested"


def test_a_selection_is_always_searched() -> None:
    assert type(forms(parse("a ; b")).of(Selection())).__name__ == "Nested"


def kept(form: Form) -> int | None:
    amounts = getattr(form, "kept", None)
    return amounts and amounts[0].maximum


def test_recent_keeps_few_of_event_types_and_of_rules_that_are_instants() -> None:
    assert kept(forms(parse("a ; b")).of(Context.RECENT)) == 1
    nested = forms(parse("a ; r"), rules=("r",), points=("r",)).of(Context.RECENT)
    assert kept(nested) == 1
    assert kept(forms(parse("a ; r"), rules=("r",)).of(Context.RECENT)) is None
