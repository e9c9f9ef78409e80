"""Misfires: how many occurrences of clocks were missed and passed over (G3)."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from tidegate.engine.store import tables as t
from tidegate.engine.store.database import add_up


def add(connection: sa.Connection, rulebook: str, counts: Mapping[str, int]) -> None:
    """Add the misfires of a bucket, by clock."""
    for clock, count in counts.items():
        one = {"rulebook": rulebook, "clock": clock}
        add_up(connection, t.misfires, one, {"passed_over": count})


def by_clock(connection: sa.Connection, rulebook: str) -> dict[str, int]:
    """The misfires of each clock that had any."""
    query = sa.select(t.misfires.c.clock, t.misfires.c.passed_over)
    rows = connection.execute(query.where(t.misfires.c.rulebook == rulebook))
    return {row.clock: row.passed_over for row in rows}
