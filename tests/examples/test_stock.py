"""The stock example on real Delta: old and new images of updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tidegate import Engine

if TYPE_CHECKING:
    from tests.examples.conftest import Example


@pytest.mark.long
def test_the_stock_prices(example: Callable[[str], Example]) -> None:
    stock = example("stock")
    with Engine(stock.rulebook, spark=stock.spark, store=stock.store) as engine:
        engine.run_once()
        stock.sql(
            "UPDATE prices SET price = price * 0.8",  # both fall
            "UPDATE prices SET price = 101 WHERE symbol = 'ACME'",  # one rises again
            "UPDATE prices SET price = price WHERE symbol = 'INIT'",  # nothing happened
            "UPDATE prices SET price = 41 WHERE symbol = 'INIT'",  # too little for any rule
        )
        engine.run_once()
    assert stock.rows("SELECT symbol, before, after FROM moves") == [
        ("ACME", 100.0, 80.0),
        ("ACME", 80.0, 101.0),
        ("INIT", 50.0, 40.0),
    ]
    assert stock.rows("SELECT * FROM watchlist") == [("ACME", 1)]
