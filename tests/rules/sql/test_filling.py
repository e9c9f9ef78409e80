"""Values for the columns of a filter: such that it holds."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tidegate.rules.sql.filling import filling


@pytest.mark.parametrize(
    ("where", "now", "before"),
    [
        ("kind = 'withdraw'", {"kind": "withdraw"}, {}),
        ("'withdraw' = kind and amount >= 1000", {"kind": "withdraw", "amount": 1000}, {}),
        ("amount > 10", {"amount": 11}, {}),
        ("amount < -1.5", {"amount": Decimal("-2.5")}, {}),
        ("10 > amount", {"amount": 9}, {}),
        ("5 <= amount", {"amount": 5}, {}),
        ("state <> 'sent'", {"state": "sentx"}, {}),
        ("blocked <> true", {"blocked": False}, {}),
        ("new.blocked and not old.blocked", {"blocked": True}, {"blocked": False}),
        ("(kind in ('a', 'b')) and n between 3 and 5", {"kind": "a", "n": 3}, {}),
        ("a is null", {"a": None}, {}),
        ("not (a is null)", {"a": 1}, {}),
        ("old.quantity >= 5 and new.quantity < 5", {"quantity": 4}, {"quantity": 5}),
        ("new.price < old.price", {"price": -1}, {"price": 0}),
        (None, {}, {}),
    ],
)
def test_a_filter_gets_values_with_which_it_holds(
    where: str | None, now: dict[str, Any], before: dict[str, Any]
) -> None:
    found = filling(where, {}, {})
    assert (found.now, found.before, found.unknown) == (now, before, [])


def test_what_is_known_stays_and_is_reckoned_with() -> None:
    found = filling("new.price < old.price and kind = 'a'", {"price": 7}, {})
    assert (found.now, found.before) == ({"kind": "a"}, {"price": 8})
    assert filling("kind = 'a'", {"kind": "b"}, {}).now == {}


@pytest.mark.parametrize("where", ["abs(a - b) > 10", "a = 1 or b = 2", "name like 'x%'"])
def test_what_does_not_follow_is_told(where: str) -> None:
    found = filling(where, {}, {})
    assert (found.now, len(found.unknown)) == ({}, 1)
