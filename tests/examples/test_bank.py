"""The bank example on real Delta: inserts, updates, deletes, merges, and a cascade."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tidegate import Engine
from tidegate.engine.cli.demo.writer import STEPS

if TYPE_CHECKING:
    from tests.examples.conftest import Example


@pytest.mark.long
def test_the_bank(example: Callable[[str], Example]) -> None:
    bank = example("bank")
    with Engine(bank.rulebook, spark=bank.spark, store=bank.store) as engine:
        engine.run_once()
        assert bank.rows("SELECT * FROM alerts") == []
        for step in STEPS:
            bank.sql(step.sql)
            engine.run_once()
        engine.run_once()  # what a rule did is an event of a later bucket
    assert bank.rows("SELECT rule, account_id, name, text FROM alerts") == [
        ("closed_with_money", 40, "Dorothy", "pay out 75.50"),
        ("overdraft", 30, "Carl", "balance 40.00 -> -30.00"),
        ("owner_told", 10, "Ada", "account blocked"),
        ("takeover", 20, "Blaise", "phone changed, then money withdrawn"),
    ]
    assert bank.rows("SELECT account_id FROM accounts WHERE blocked") == [(10,)]
