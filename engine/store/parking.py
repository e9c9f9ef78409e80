"""Rules that a limit has parked (G13)."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from tidegate.engine.core.state import Taken
from tidegate.engine.store.database import upsert
from tidegate.engine.store.tables import parked


def names(connection: sa.Connection, rulebook: str) -> frozenset[str]:
    """The rules that are parked."""
    query = sa.select(parked.c.rule).where(parked.c.rulebook == rulebook)
    return frozenset(connection.execute(query).scalars())


def save(connection: sa.Connection, taken: Taken) -> None:
    """The rules that a bucket parks, and what the parked ones did not see of it. A rule that is not
    active any more is forgotten."""
    name = taken.plan.rulebook
    enable(connection, name, names(connection, name) - taken.digests.keys())
    rows = [
        {
            "rulebook": name,
            "rule": rule.rule,
            "reason": rule.reason,
            "hint": rule.hint,
            "instant": rule.instant,
            "bucket": taken.plan.bucket,
            "passed_over": 0,
        }
        for rule in taken.parked
    ]
    upsert(connection, parked, rows)
    counts = [{"named": rule, "more": n} for rule, n in taken.passed_over.items() if n]
    if counts:
        one = (parked.c.rulebook == name) & (parked.c.rule == sa.bindparam("named"))
        more = parked.c.passed_over + sa.bindparam("more")
        connection.execute(sa.update(parked).where(one).values(passed_over=more), counts)


def enable(connection: sa.Connection, rulebook: str, rules: Collection[str]) -> None:
    """Let rules go on."""
    if rules:
        these = (parked.c.rulebook == rulebook) & parked.c.rule.in_(rules)
        connection.execute(sa.delete(parked).where(these))
