"""The order example on real Delta: cancelled with and without a payment in between."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from tidegate import Engine

if TYPE_CHECKING:
    from tests.examples.conftest import Example


@pytest.mark.long
def test_an_order_cancelled_without_payment(example: Callable[[str], Example]) -> None:
    shop = example("order")
    with Engine(shop.rulebook, spark=shop.spark, store=shop.store) as engine:
        engine.run_once()
        shop.sql(
            "INSERT INTO orders VALUES (1, 'lamp', 2, 'open'), (2, 'desk', 1, 'open'),"
            " (3, 'lamp', 1, 'open')",
            "INSERT INTO payments VALUES (1, 2, 150.00)",
        )
        engine.run_once()
        shop.sql("UPDATE orders SET status = 'cancelled' WHERE order_id <= 2")
        engine.run_once()
    assert shop.rows("SELECT * FROM stock") == [("desk", 2), ("lamp", 7)]
    assert shop.rows("SELECT order_id, amount FROM refunds") == [(2, Decimal("150.00"))]
