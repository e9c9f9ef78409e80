"""Reads tables in memory. Implements `engine.core.ports.Feed`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.columns.hashing import row_hash
from tidegate.engine.core.parameters import commit_schema
from tidegate.engine.core.ports import (
    FEED_KINDS,
    KIND,
    SAME_1,
    SAME_2,
    VERSION,
    ReadRequest,
    TableHead,
)
from tidegate.engine.core.values import Commit, Cursor, TableRange
from tidegate.engine.replay.memory.predicates import decided
from tidegate.engine.replay.memory.tables import MemoryTable
from tidegate.rules.model import Change, Table


class MemoryFeed:
    """Tables by name. Each begins at its version 0, whatever its `start` says: what stands there is
    no event."""

    def __init__(self, tables: Mapping[str, MemoryTable]) -> None:
        self.tables = tables

    def cursor(self, table: MemoryTable) -> Cursor:
        """The cursor of a table that nothing has been read of."""
        return Cursor(table.name, f"memory-{table.name}", 0, table.commits[0].instant, table.json)

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        """See `engine.core.ports.Feed.head`."""
        known = self.tables[table.name]
        cursor = after or self.cursor(known)
        commits = tuple(
            Commit(
                version,
                commit.instant,
                rows_estimate=commit.changes.num_rows,
                depth=commit.depth,
                schema=commit.schema,
                skip=not commit.changes_rows,
                writer=commit.writer,
            )
            for version, commit in enumerate(
                known.commits[cursor.version + 1 :], cursor.version + 1
            )
        )
        return TableHead(cursor, known.version, commits)

    def version(self, table: Table) -> int:
        """See `engine.core.ports.Feed.version`."""
        return self.tables[table.name].version

    def earliest(self, table: Table, cursor: Cursor, column: str) -> int | None:  # noqa: ARG002
        """See `engine.core.ports.Feed.earliest`: there are no snapshots."""
        return None

    def version_at(self, table: Table, instant: int) -> int | None:
        """See `engine.core.ports.Feed.version_at`."""
        commits = self.tables[table.name].commits
        before = bisect_right(commits, instant, key=lambda one: one.instant)
        return before - 1 if before else None

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        """See `engine.core.ports.Feed.read`. It reads rows, too, of which no predicate in
        `request.only` is true: Capture asks for itself."""
        known = self.tables[table.name]
        kinds = pa.array([FEED_KINDS[name] for name in request.changes], pa.int64())
        parts = [known.rows.slice(0, 0).append_column(KIND, pa.array([], pa.int64()))]
        counts = []
        for version in range(span.first, span.last + 1):
            if version not in span.skipped:
                parts.append(known.commits[version].changes)
                counts += [version] * parts[-1].num_rows
        found = pa.concat_tables(parts, promote_options="default")  # an added column is null before
        whole = found.append_column(VERSION, pa.array(counts, pa.int64()))
        rows = whole.filter(pc.is_in(whole[KIND], kinds))
        found = rows.select([KIND, VERSION, *request.columns])
        if request.same:
            same = row_hash(rows.select(known.schema.names))
            found = found.append_column(SAME_1, pa.array(same[:, 0]))
            found = found.append_column(SAME_2, pa.array(same[:, 1]))
        if request.where:
            said = decided(rows, request.where, f"table {table.name}")
            for name in said.column_names:
                found = found.append_column(name, said[name])
        return found

    def history(self, table: Table, span: TableRange) -> pa.Table:
        """See `engine.core.ports.Feed.history`."""
        known = self.tables[table.name].commits
        span_of = ((version, known[version]) for version in range(span.first, span.last + 1))
        commits = [
            {
                "operation": commit.operation,
                "operation_parameters": [],
                "operation_metrics": [*commit.metrics.items()],
                "version": version,
                "read_version": version - 1,
                "changes_rows": commit.changes_rows,
            }
            for version, commit in span_of
        ]
        return pa.Table.from_pylist(commits, commit_schema(Change.COMMIT))

    def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
        """See `engine.core.ports.Feed.decide`. Raises EngineError `needs-spark`."""
        return decided(rows, where, source)
