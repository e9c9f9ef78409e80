"""The difference between two backtests."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.replay.backtest.made import DAY, MARCH, SECOND, backtest, firing
from tidegate.engine.replay.backtest.against import compared
from tidegate.engine.replay.backtest.counts import fates
from tidegate.engine.replay.backtest.model import Span

ONE_KEY, NULL_KEY = '{"account_id":7}', '{"account_id":null}'
SAME = [
    firing("pay", f'{{"account_id":{n % 50}}}', MARCH + n * 60 * SECOND, f"rows-{n}")
    for n in range(2_000)
]


def shown(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in ("rule", "key", "end")), strict=True))


def test_a_planted_difference_of_seventeen_firings_is_found_exactly() -> None:
    """Among 2,000 equal ones. Of the 17 six are only in the one, five only in the other, six of
    other constituents; duplicates and null keys are among all of them."""
    at = MARCH + 3 * DAY
    thrice = [firing("pay", ONE_KEY, at, "same")] * 3  # one of three is gone
    only_one = [
        *[firing("pay", NULL_KEY, at + SECOND)] * 2,
        *[firing("gone", ONE_KEY, at + n * SECOND) for n in range(3)],
    ]
    only_other = [
        *[firing("new", "{}", at)] * 2,
        firing("pay", NULL_KEY, at + 2 * SECOND),
        firing("pay", None, at + 2 * SECOND),
    ]
    failed = firing("pay", '{"account_id":8}', at, condition="failed")
    both = [*[("pay", ONE_KEY, at + 9 * SECOND)] * 2, ("pay", NULL_KEY, at), ("pay", None, at),
            ("pay", '{"account_id":9}', at), ("pay", '{"account_id":"9"}', at)]  # fmt: skip
    one = [firing(*where, made_of=f"this {n % 4}") for n, where in enumerate(both)]
    other = [firing(*where, made_of=f"that {n % 4}") for n, where in enumerate(both)]
    found = compared(
        backtest([*SAME, *thrice, *only_one, *one, failed]),
        backtest([*SAME, *thrice[:2], *only_other, *other, {**failed, "condition": "held"}]),
    )
    assert found.count == 17
    planted = shown(backtest([thrice[0], *only_one]).firings)
    assert Counter(shown(found.only_one)) == Counter(planted)
    assert Counter(shown(found.only_other)) == Counter(
        shown(backtest([*only_other, failed]).firings)
    )
    assert Counter(shown(found.differing_one)) == Counter(shown(backtest(one).firings))
    assert shown(found.differing_one) == shown(found.differing_other)
    assert found.same == 2_000 + 2
    assert Counter(found.only_other["otherwise"].to_pylist()) == {None: 4, "condition_failed": 1}
    rules = {rule.name: rule for rule in found.rules}
    assert [rule.name for rule in found.rules if not rule.in_other] == ["gone"]
    assert [rule.name for rule in found.rules if not rule.in_one] == ["new"]
    counts = {n: (r.only_one, r.only_other, r.differing, r.same) for n, r in rules.items()}
    assert counts == {"pay": (3, 3, 6, 2_002), "gone": (3, 0, 0, 0), "new": (0, 2, 0, 0)}


FIRINGS = st.lists(
    st.builds(
        firing,
        st.sampled_from(["pay", "tell"]),
        st.sampled_from([ONE_KEY, NULL_KEY, None, "{}"]),
        st.sampled_from([MARCH, MARCH + SECOND]),
        st.sampled_from(["x", "y"]),
        condition=st.sampled_from(["none", "held", "skipped", "none", "failed", "dead"]),
        damped=st.sampled_from([None, None, None, "cooldown"]),
    ),
    max_size=24,
)


@detecting
@given(one=FIRINGS, other=FIRINGS)
@example_count(200)
def test_it_is_that_of_a_naive_comparison(
    one: list[dict[str, Any]], other: list[dict[str, Any]]
) -> None:
    sides = [backtest(rows, "pay", "tell") for rows in (one, other)]
    fired = [
        [r for r, f in zip(b.firings.to_pylist(), fates(b.firings).to_pylist(), strict=True)
         if f in ("fired", "unasked")]
        for b in sides
    ]  # fmt: skip
    equal = [Counter((r["rule"], r["key"], r["end"], r["made_of"]) for r in rows) for rows in fired]
    left = [equal[0] - equal[1], equal[1] - equal[0]]
    group = [Counter(where[:3] for where in rows.elements()) for rows in left]
    found = compared(*sides)
    assert found.same == (equal[0] & equal[1]).total()
    assert Counter(shown(found.only_one)) == group[0] - group[1]
    assert Counter(shown(found.only_other)) == group[1] - group[0]
    assert Counter(shown(found.differing_one)) == group[0] & group[1]
    assert shown(found.differing_one) == shown(found.differing_other)
    pairs = zip(
        found.differing_one["made_of"].to_pylist(),
        found.differing_other["made_of"].to_pylist(),
        strict=True,
    )
    assert all(a != b for a, b in pairs)
    for only, there in ((found.only_one, sides[1]), (found.only_other, sides[0])):
        quiet: dict[Any, str] = {}
        for where, fate in zip(shown(there.firings), fates(there.firings).to_pylist(), strict=True):
            if fate not in ("fired", "unasked"):
                quiet.setdefault(where, fate)
        assert only["otherwise"].to_pylist() == [quiet.get(where) for where in shown(only)]
    saw(range(found.count))


def test_nothing_differs_from_itself_and_everything_from_nothing() -> None:
    some, none = backtest(SAME), backtest([])
    assert (compared(some, some).count, compared(some, some).same) == (0, 2_000)
    assert len(compared(some, none).only_one) == len(compared(none, some).only_other) == 2_000
    assert compared(none, none).count == 0


def test_rules_that_are_not_asked_for_are_not_named() -> None:
    one = backtest([], "pay", "tell")
    asked = replace(one, rules=(one.rules[0], replace(one.rules[1], shown=False)))
    assert [rule.name for rule in compared(asked, backtest([], "pay")).rules] == ["pay"]


def test_other_spans_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        compared(backtest([]), backtest([], span=Span(MARCH, MARCH + 1)))
