"""The commits of a table as occurrences: `on: transaction` (S10).

A commit at T begins at T - 1 us and ends at T + 1 us, so that its rows, at T, lie inside. Its plain
name is its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tidegate.engine.capture.athand import Bools, Undecided, held
from tidegate.engine.ids import occurrence_ids
from tidegate.engine.moments import python_rows
from tidegate.engine.ownwrites import ignored_writer, public_name
from tidegate.engine.ports import VERSION, Feed
from tidegate.engine.values import Batch, ChangeKind, Int64, Needs, Rejected, TableRange
from tidegate.rules.model import Table, TableEvent

EDGE_MICROS = 1


def transactions(
    table: Table,
    events: Sequence[TableEvent],
    span: TableRange,
    needs: Needs,
    id_sets: Mapping[str, Mapping[str, tuple[str, ...]]],
    feed: Feed,
    rulebook: str,
) -> Iterator[tuple[str, Batch, list[Rejected]]]:
    """The occurrences of each event type, with the commits on which its `where` raises. Commits
    that a range skips raise nothing (G10)."""
    commits = feed.transactions(table, span)
    version = commits.column(VERSION).to_numpy()
    instant = np.array([span.instants[v] for v in version.tolist()], np.int64)
    depth = np.array([span.depths.get(v, 0) for v in version.tolist()], np.int32)
    rows = commits.drop_columns(VERSION)
    asked: dict[str | None, tuple[Bools, Undecided]] = {}
    for event in events:
        if event.where not in asked:
            asked[event.where] = held(event.where, rows, feed, table.name)
        mask, undecided = asked[event.where]
        if (writer := ignored_writer(event.name)) and span.writers:
            mask = mask & ~span.written_by((rulebook, writer))[version - span.first]
        row, name = np.flatnonzero(mask), public_name(event.name)
        edge = -EDGE_MICROS if event.begin_of else EDGE_MICROS
        batch = Batch(
            event.begin_of or name,
            instant[row] + edge,
            row,
            rows.select([*needs.carry[event.name]]),
            _ids(name, span.cursor.table_id, row, version, id_sets.get(event.name, {})),
            depth[row] if depth.any() else None,
        )
        wrong = [
            (row, why)
            for those, why in ([] if event.begin_of else undecided)
            for row in python_rows(rows.take(those))
        ]
        yield (
            event.name,
            batch,
            [
                Rejected(
                    event=name,
                    source=f"{table.name}@{row['version']}",
                    reason=f"`where: {event.where}` fails on this commit{why}",
                    row=row,
                )
                for row, why in wrong
            ],
        )


def _ids(
    event: str, table_id: str, row: Int64, version: Int64, id_sets: Mapping[str, object]
) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.uint64]]]:
    """A version of a table is one commit: no parameter need tell it apart."""
    none = np.zeros((len(version), 2), np.uint64)
    kind = np.full(len(version), ChangeKind.INSERT, np.int64)
    found = occurrence_ids(event, table_id, row, version, kind, none)
    return dict.fromkeys(id_sets, found)
