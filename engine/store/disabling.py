"""Rules that are switched off (G24)."""

from __future__ import annotations

import sqlalchemy as sa

from tidegate.engine.core.state import Taken
from tidegate.engine.store.database import upsert
from tidegate.engine.store.tables import disabled


def names(connection: sa.Connection, rulebook: str) -> frozenset[str]:
    """The rules that are disabled."""
    query = sa.select(disabled.c.rule).where(disabled.c.rulebook == rulebook)
    return frozenset(connection.execute(query).scalars())


def save(connection: sa.Connection, taken: Taken) -> None:
    """The rules that a bucket switches. A rule that is not active any more is forgotten."""
    plan = taken.plan
    over = plan.enabled | (names(connection, plan.rulebook) - taken.digests.keys())
    if over:
        these = (disabled.c.rulebook == plan.rulebook) & disabled.c.rule.in_(over)
        connection.execute(sa.delete(disabled).where(these))
    instant = plan.watermark_before + 1
    rows = [
        {"rulebook": plan.rulebook, "rule": rule, "instant": instant, "bucket": plan.bucket}
        for rule in sorted(plan.disabled & taken.digests.keys())
    ]
    upsert(connection, disabled, rows)
