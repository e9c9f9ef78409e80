"""What the last buckets of a rulebook brought, and when its sources were heard, for the console.

Every query reads a bounded number of rows by an index, however large the store is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from tidegate.engine.core.text import json_text
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound

SIGNALS_SEEN = 1_000
"""So many of the newest signals say when each event was heard."""


class Trends(Bound):
    """The trends of one rulebook."""

    def buckets(self, most: int) -> list[dict[str, Any]]:
        """The last buckets, at most so many, oldest first. `seconds`: by stage, as far as known;
        `lag_seconds`: how old the end of the bucket was when it was planned."""
        c = t.buckets.c
        seconds = [c[f"seconds_{stage}"] for stage in t.STAGES]
        query = sa.select(c.bucket, c.now, c.watermark, c.row_count, *seconds)
        query = query.where(c.rulebook == self.rulebook).order_by(c.bucket.desc()).limit(most)
        with self.database.read() as connection:
            rows = connection.execute(query).all()
        return [
            {
                "bucket": bucket,
                "at": json_text.instant(now),
                "lag_seconds": round(max(0, now - watermark) / 1e6, 1),
                "rows": count,
                "seconds": {n: s for n, s in zip(t.STAGES, took, strict=True) if s is not None},
            }
            for bucket, now, watermark, count, *took in reversed(rows)
        ]

    def rejected_since(self, instant: int) -> int:
        """How many rows and signals the buckets since an instant rejected."""
        c = t.buckets.c
        query = sa.select(sa.func.coalesce(sa.func.sum(c.rejected_count), 0))
        query = query.where(c.rulebook == self.rulebook, c.now >= instant)
        with self.database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def commits(self, tables: Sequence[str], most: int) -> Mapping[str, list[int]]:
        """The instants of the last commits of each of these tables, at most so many, newest
        first."""
        c = t.commits.c
        with self.database.read() as connection:
            return {
                table: [
                    *connection.execute(
                        sa.select(c.instant)
                        .where(c.rulebook == self.rulebook, c.table_name == table)
                        .order_by(c.instant.desc())
                        .limit(most)
                    ).scalars()
                ]
                for table in tables
            }

    def signals(self) -> Mapping[str, list[int]]:
        """When each event was received, of the newest `SIGNALS_SEEN` signals, newest first."""
        c = t.signals.c
        placed = sa.select(c.event, c.received_at)
        placed = placed.where(c.rulebook == self.rulebook, c.bucket.is_not(None))
        placed = placed.order_by(c.bucket.desc()).limit(SIGNALS_SEEN)
        waiting = sa.select(c.event, c.received_at)
        waiting = waiting.where(c.rulebook == self.rulebook, c.bucket.is_(None))
        waiting = waiting.order_by(c.received_at.desc()).limit(SIGNALS_SEEN)
        found: dict[str, list[int]] = {}
        with self.database.read() as connection:
            for query in (waiting, placed):
                for event, at in connection.execute(query):
                    found.setdefault(event, []).append(at)
        return {event: sorted(times, reverse=True) for event, times in found.items()}

    def clock(self) -> int:
        """The engine's clock at its last look or bucket, whichever is later; 0 before the first."""
        b, one = t.buckets.c, t.leases.c
        looked = sa.select(one.looked_at).where(one.rulebook == self.rulebook)
        with self.database.read() as connection:
            last = connection.execute(t.of_last_bucket(self.rulebook, b.now)).scalar_one_or_none()
            return max(last or 0, connection.execute(looked).scalar_one_or_none() or 0)
