"""What was recorded of a firing: where each constituent came from, and what became of its entries;
and how much each node of the event graphs carries.

Example: a firing of `a ; b` has the row of `a` that version 7 of its table brought, and the `b`
that was signal `k-19`. Its one entry began at 09:00:04, and was settled at 09:00:05: version 12 of
its target is its commit, which wrote 3 rows.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from tidegate.engine.core.text import json_text
from tidegate.engine.core.values import Firings
from tidegate.engine.store import id_runs
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.outbox import stored_firings

_NODE = "node:"
_OF_ENTRY = ("number", "kind", "state", "fate", "attempts", "error", "alternative")
_TIMES = ("stored_at", "begun_at", "settled_at")


class Recorded(Bound):
    """The records of one rulebook."""

    def firing(self, firing_id: str) -> dict[str, Any] | None:
        """The record of a firing by its whole id; None if there is none, or it was purged.

        `constituents`: in order, each with its event type, its time, and the `version` of its table
        or the `signal` with the `namespace` of its id; all three are None for ticks, for what a
        script has emitted, and where the store does not know. `entries`: those that the firing is
        in, each with the `version` of its `table` that is its commit, and the `rows` it wrote.
        """
        with self.database.read() as connection:
            place = id_runs.find(connection, self.rulebook, firing_id)
            if place is None:
                return None
            bucket, rule = place
            (fired,) = stored_firings(connection, self, bucket, [rule])
            c = t.outbox.c
            query = sa.select(t.outbox).where(c.rulebook == self.rulebook)
            query = query.where(c.bucket == bucket, c.rule == rule).order_by(c.number)
            rows = connection.execute(query).all()
        one = fired.some(pc.equal(fired.hex_ids(), firing_id)).loaded()
        through = bool(len(one.acted_on))
        return {
            "firing_id": firing_id,
            "rule": rule,
            "bucket": bucket,
            "constituents": _constituents(one),
            "entries": [_entry(row) for row in rows if is_for(row, firing_id, through=through)],
        }

    def carried_by_node(self) -> dict[str, int]:
        """How many instances each node carries, by the node's digest."""
        c = t.carried.c
        query = sa.select(c.name, c.row_count).where(c.rulebook == self.rulebook)
        found: Counter[str] = Counter()
        with self.database.read() as connection:
            for name, count in connection.execute(query.where(c.name.startswith(_NODE))):
                found[name.removeprefix(_NODE).rpartition("/")[0]] += count
        return dict(found)


def _constituents(one: Firings) -> list[dict[str, Any]]:
    relation, sources = one.rows, one.sources
    times = relation["occurred_at"].cast(pa.int64()).to_pylist()
    nothing: list[Any] = [None] * len(times)
    versions = nothing if sources is None else sources["version"].to_pylist()
    signals = nothing if sources is None else sources["signal"].to_pylist()
    rows = zip(relation["event_type"].to_pylist(), times, versions, signals, strict=True)
    found = []
    for event, time, version, signal in rows:
        namespace, _, signal_id = (signal or "").partition("/")
        found.append(
            {
                "event": event,
                "time": json_text.instant(time),
                "version": version,
                "signal": signal_id or None,
                "namespace": namespace or None,
            }
        )
    return [shown for shown in found if shown["event"] is not None]


def _entry(row: sa.Row[Any]) -> dict[str, Any]:
    return {
        **{name: row._mapping[name] for name in _OF_ENTRY},
        "alternative": bool(row.alternative),
        **{name: json_text.instant(row._mapping[name]) for name in _TIMES},
        "table": row.target,
        "version": row.effect_version,
        "rows": row.rows_written,
    }


def is_for(row: sa.Row[Any], firing_id: str, *, through: bool) -> bool:
    """Whether an entry is for a firing. One without ids is for all that are acted on; a condition
    is for all."""
    if row.firing_ids is None:
        return through or row.kind == "condition"
    return firing_id in row.firing_ids
