"""A golden case that fails shows a diff, one detection a line."""

from __future__ import annotations

import pytest

from tests.golden.compare import agree
from tests.golden.load import read
from tests.reference.evaluate import canonical, reference
from tidegate.rules.model import Context

CASE = read(
    "title: a wrong expectation\non: a ; b\nper: k\nhistory: a@1(k=7) a@2(k=7) b@3.5(k=7)\n"
    "expect chronicle: k=7 [1,3.5] {a@1(k=7) b@3.5(k=7)}\n"
    "expect unrestricted: k=7 [1,3.5] {a@1(k=7) b@3.5(k=7)} k=7 [2,3] {a@2(k=7)}",
    "wrong.txt",
)


def found(context: Context) -> list[str]:
    return reference(CASE.rulebook, CASE.history, context=context)


def test_what_is_expected_passes() -> None:
    agree(found(Context.CHRONICLE), CASE, Context.CHRONICLE)


def test_what_is_missing_and_what_is_too_much_stand_in_a_diff() -> None:
    with pytest.raises(AssertionError) as failed:
        agree(found(Context.UNRESTRICTED), CASE, Context.UNRESTRICTED, "in one bucket")
    assert str(failed.value).splitlines() == [
        "wrong.txt:1 a wrong expectation in unrestricted in one bucket",
        "--- expected",
        "+++ found",
        " r k=7 [1,3.5] {a@1(k=7) b@3.5(k=7)}",
        "-r k=7 [2,3] {a@2(k=7)}",
        "+r k=7 [2,3.5] {a@2(k=7) b@3.5(k=7)}",
    ]


def test_a_detection_too_many_is_told_though_it_is_like_another() -> None:
    twice = canonical([*CASE.expected[Context.CHRONICLE]] * 2)
    with pytest.raises(AssertionError, match=r"\n\+r k=7 \[1,3.5\] "):
        agree(twice, CASE, Context.CHRONICLE)
