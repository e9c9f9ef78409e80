"""Rows and signals that could not become occurrences (G5), for `tidegate rejected` and `status`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from tidegate.engine.core.text import json_text
from tidegate.engine.core.values import Plan, Rejected
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import mappings
from tidegate.engine.store.tables import rejected


class Rejections(Bound):
    """The rejections of one rulebook."""

    def newest(self, limit: int, *, whole: bool) -> list[dict[str, Any]]:
        """See the function."""
        with self.database.read() as connection:
            return newest(connection, self.rulebook, limit, whole=whole)


def newest(
    connection: sa.Connection, rulebook: str, limit: int, *, whole: bool
) -> list[dict[str, Any]]:
    """The newest rejections, oldest first. `whole`: with fields and the whole message, which may
    hold values of the user's tables."""
    c = rejected.c
    columns = [c.bucket, c.ordinal, c.event, c.source, c.reason]
    query = sa.select(*columns, *((c.fields, c.details) if whole else ()))
    query = query.where(c.rulebook == rulebook).order_by(c.bucket.desc(), c.ordinal.desc())
    rows = mappings(connection, query.limit(limit))[::-1]
    return [{**row, "fields": json.loads(row["fields"])} if whole else row for row in rows]


def add(connection: sa.Connection, plan: Plan, rows: Sequence[Rejected]) -> None:
    """Store the rejections of a bucket."""
    of_bucket = {"rulebook": plan.rulebook, "bucket": plan.bucket}
    made = [
        {
            **of_bucket,
            "ordinal": ordinal,
            **{name: getattr(row, name) for name in ("event", "source", "reason", "details")},
            "fields": json_text.text(row.row),
        }
        for ordinal, row in enumerate(rows)
    ]
    if made:
        connection.execute(sa.insert(rejected), made)
