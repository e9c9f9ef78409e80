"""What a window may be asked: of which columns, of which types, in which words."""

from __future__ import annotations

import pytest

from tidegate import rules
from tidegate.rules.errors import InputError

BOOK = """rulebook: b
tables: {t: {path: /x/t, key: [k]}}
events:
  req: {signal: {k: bigint, c: double, s: string, d: "decimal(30,2)", m: "decimal(12,2)", f: float}}
  other: {signal: {c: string, at: timestamp, n: tinyint}}
  more: {signal: {k: double, c: bigint, m: "decimal(12,4)", d: bigint}}
  up: {on: update, table: t}
rules:
  used: {on: req ; other within 5 s}
  r: {on: {over: {window: 1 min, of: OF, fire: "FIRE"}}}
"""


def told(of: str, fire: str) -> list[str]:
    try:
        rules.load(BOOK.replace("OF", of).replace("FIRE", fire))
    except InputError as error:
        return [f"{p.place.path} {p.place.column}: {p.message} | {p.hint}" for p in error.problems]
    return []


@pytest.mark.parametrize(
    ("of", "fire"),
    [
        ("req", "avg(c) > 80.5 and COUNT(*) >= 2"),
        ("req", "sum(k) * 2 - 1 > sum(m) or avg(m) is not null"),
        ("req", "count(s) > 1 and avg(f) > 1"),
        ("[req, other]", "max(at) > timestamp '2026-01-01 00:00:00Z' and sum(n) > 1"),
        ("[req, other]", "count(c) > 1"),
        ("[req, more]", "sum(m) > 1 and max(m) > 1 and count(k) > 1"),
        ("up", "sum(old.amount) < sum(amount)"),
        ("[req, up]", "avg(anything) > 1"),
        ("used", "count(*) > 1"),
        ("[used, req]", "avg(C) > 1"),
    ],
)
def test_what_may_be_asked(of: str, fire: str) -> None:
    assert not told(of, fire)


@pytest.mark.parametrize(
    ("of", "fire", "said"),
    [
        ("req", "avg(cc) > 80", "the rows of the window have no column cc | did you mean 'c'?"),
        ("used", "avg(c) > 80", "the rows of the window have no column c | "),
        ("req", "sum(old.k) > 1", "the rows of the window have no column old.k | "),
        ("req", "c > 80", "c has a value in each row of the window | write avg(c), or another of"),
        (
            "req",
            "median(c) > 80",
            "median(..) is no aggregate of the list | it has count(*), count,",
        ),
        ("req", "sum(*) > 80", "sum(*) has no column | write sum(column), or count(*)"),
        ("req", "count(1) > 80", "an aggregate is of one column | write count(*)"),
        ("req", "avg(c + 1) > 80", "an aggregate is of one column | write avg(column), and"),
        (
            "req",
            "count(distinct k) > 1",
            "distinct is not in the list | write {window: .., every: ..}, and count distinct"
            " values",
        ),
        (
            "req",
            "count_if(c > 1) > 0.1 * count(*)",
            "count_if(..) is no aggregate of the list | give these rows an event type with a"
            " column",
        ),
        ("req", "count(k) / 2 > 1", "'/' is not exact, and so is left out | multiply the other"),
        ("req", "avg(s) > 1", "avg is of numbers, and s is string | name a column of numbers"),
        (
            "req",
            "max(s) = 1",
            "max is of numbers, dates and timestamps, and s is string | count it",
        ),
        ("req", "max(f) = 1", "max(f) is a float | declare the column double"),
        ("req", "sum(d) > 1", "sum(d) may take 40 digits, and at most 38 are exact | declare a"),
        ("req", "avg(d) > 1", "an average is exact of 18 digits at most, and of decimal(30,2) not"),
        ("req", "sum(m) * sum(m) > 1", "this may take 44 digits, and at most 38 are exact | "),
        ("[req, more]", "sum(k) > 1", "sum(k) is of several types, which do not compare: bigint"),
        ("[req, more]", "avg(m) > 1", "avg(m) is of several types, whose averages are rounded"),
        ("[req, other]", "avg(c) > 1", "avg(c) is of several types, which do not compare: double"),
        ("req", "count(*)", "this is no condition | compare it: count(*) > 0"),
        ("req", "1 = 1", "this is the same for all rows | name an aggregate"),
        ("req", "sum(k) > 'a'", "a number does not compare with a string | both sides must be"),
    ],
)
def test_what_may_not_is_refused_at_its_place(of: str, fire: str, said: str) -> None:
    (problem,) = told(of, fire)
    assert problem.startswith("rules.r.on.over.fire ")
    assert said in problem


def test_rearm_is_checked_too() -> None:
    (problem,) = told("req", 'count(*) > 1", rearm: "k < 1')
    assert problem.startswith("rules.r.on.over.rearm ")
