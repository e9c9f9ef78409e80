"""What a store calls the tables of a rulebook that is tried over its past."""

from __future__ import annotations

from tidegate.engine.app.past import called


def test_tables_at_one_location_keep_their_names() -> None:
    own = {"orders": "/o", "buys": "/o", "log": "/l"}
    assert called(own, own) == {"orders": "orders", "buys": "buys", "log": "log"}


def test_tables_of_another_rulebook_are_known_by_their_locations() -> None:
    own = {"orders": "/o", "buys": "/o", "log": "/l"}
    other = {"buys": "/o", "sales": "/o", "orders": "/l", "new": "/n"}
    assert called(other, own) == {"buys": "buys", "sales": "orders", "orders": "log"}
