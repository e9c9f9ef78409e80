"""Occurrences of clocks that were missed and passed over (G3)."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from tidegate.engine.store import tables as t
from tidegate.engine.store.database import insert_new


def add(connection: sa.Connection, rulebook: str, counts: Mapping[str, int]) -> None:
    """Count those of a bucket, by clock."""
    c = t.misfires.c
    for clock, count in counts.items():
        one = {"rulebook": rulebook, "clock": clock}
        if not insert_new(connection, t.misfires, {**one, "passed_over": count}):
            same = (c.rulebook == rulebook) & (c.clock == clock)
            more = sa.update(t.misfires).where(same).values(passed_over=c.passed_over + count)
            connection.execute(more)


def by_clock(connection: sa.Connection, rulebook: str) -> dict[str, int]:
    """How many there were, of clocks that had any."""
    query = sa.select(t.misfires.c.clock, t.misfires.c.passed_over)
    rows = connection.execute(query.where(t.misfires.c.rulebook == rulebook))
    return {row.clock: row.passed_over for row in rows}
