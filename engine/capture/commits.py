"""The commits of a table as occurrences: `on: transaction` and `on: commit` (S10).

A commit at T begins at T - 1 us and ends at T + 1 us. Its rows are at T, between the two. The event
type itself is the end of the commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.capture.row_filters import Bools, Undecided, held, rejected
from tidegate.engine.core.columns.ids import occurrence_ids
from tidegate.engine.core.event_names import Edge, EventKey
from tidegate.engine.core.parameters import VERSION_OF, commit_schema
from tidegate.engine.core.ports import Feed
from tidegate.engine.core.values import Batch, ChangeKind, Needs, Rejected, TableRange
from tidegate.rules.model import Change, Table, TableEvent

EDGE_MICROS = 1


def commits(
    table: Table,
    events: Sequence[TableEvent],
    span: TableRange,
    needs: Needs,
    id_sets: Mapping[str, Mapping[str, tuple[str, ...]]],
    feed: Feed,
    rulebook: str,
) -> Iterator[tuple[str, Batch, list[Rejected]]]:
    """The occurrences of each event type, with the commits on which its `where` raises. A commit
    that the range skips, as it changes no row, is no transaction (G10)."""
    every = feed.history(table, span)
    skipped = pc.is_in(every.column("version"), pa.array(span.skipped, pa.int64()))
    changing = every.filter(pc.invert(skipped))
    seen = {
        Change.COMMIT: every,
        Change.TRANSACTION: changing.select(commit_schema(Change.TRANSACTION).names),
    }
    asked: dict[tuple[Change, str | None], tuple[Bools, Undecided]] = {}
    for event in events:
        rows = seen[event.change]
        version = rows.column("version").to_numpy()
        sort = (event.change, event.where)
        if sort not in asked:
            asked[sort] = held(event.where, rows, feed, table.name)
        mask, undecided = asked[sort]
        key = EventKey.of(event.name)
        if key.but_of and span.writers:
            mask = mask & ~span.written_by((rulebook, key.but_of), version)
        row = np.flatnonzero(mask)
        edge = -EDGE_MICROS if key.edge is Edge.BEGIN else EDGE_MICROS
        depth = span.of_versions(span.depths, version[row])
        kind = np.full(len(version), ChangeKind.INSERT, np.int64)
        none = np.zeros((len(version), 2), np.uint64)  # the version is enough to identify a commit
        table_id = span.cursor.table_id
        ids = occurrence_ids(str(key.public), table_id, row, version, kind, none)
        batch = Batch(
            key.shown,
            span.of_versions(span.instants, version[row]) + edge,
            row,
            pa.table(
                {**{c: rows[c] for c in needs.carry[event.name]}, VERSION_OF: rows["version"]}
            ),
            dict.fromkeys(id_sets.get(event.name, {}), ids),
            depth.astype(np.int32) if depth.any() else None,
        )
        said = f"`where: {event.where}` fails on this commit"
        refused = [(those, f"{said}{why}") for those, why in undecided]
        yield event.name, batch, rejected(key.shown, table.name, rows, version, refused)
