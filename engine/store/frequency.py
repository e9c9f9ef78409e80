"""What fired within the last minute of the engine's clock, from the stored buckets (G22)."""

from __future__ import annotations

import sqlalchemy as sa

from tidegate.engine.core.state import MINUTE_MICROS, Fired
from tidegate.engine.store import tables as t
from tidegate.engine.store.blobs import through_count


def fired_lately(connection: sa.Connection, rulebook: str, now: int) -> tuple[Fired, ...]:
    """As `engine.loop.limits` has it: `now` is the last bucket's."""
    b, f, c = t.buckets.c, t.firings.c, t.controls.c
    recent = (b.rulebook == rulebook) & (b.now > now - MINUTE_MICROS)
    enabled = sa.select(c.subject, sa.func.max(c.bucket)).join(
        t.buckets, (b.rulebook == c.rulebook) & (b.bucket == c.bucket)
    )
    enabled = enabled.where(recent, c.kind == "enable").group_by(c.subject)
    since = {row[0]: row[1] for row in connection.execute(enabled)}
    query = sa.select(b.bucket, b.now, f.rule, f.firing_count, f.outcomes).join(
        t.firings, (f.rulebook == b.rulebook) & (f.bucket == b.bucket)
    )
    fresh = b.now - MINUTE_MICROS
    query = query.where(recent, (b.watermark_before > fresh) | (f.first_detected_at > fresh))
    return tuple(
        Fired(row.now, {row.rule: through_count(row.outcomes, row.firing_count)})
        for row in connection.execute(query.order_by(b.now, b.bucket))
        if row.bucket >= since.get(row.rule, 0)
    )
