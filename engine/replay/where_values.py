"""The values that `where`, `fire` and `rearm` of rules read of a trace's lines, with their types.

Signals have the declared types; columns of tables have those of their schemas, else of their values
in the trace. Each is a column beside the lines, named as `engine.core.parameters.TYPED` says, and
null in the lines of other event types.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa

from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.parameters import OLD, TYPED, parameter_schema
from tidegate.engine.replay.conditions import parameters, table_schemas
from tidegate.engine.replay.json_values import EVENT, LINE
from tidegate.engine.replay.trace import Trace
from tidegate.rules.algebra.asked_columns import asked_columns
from tidegate.rules.expressions import predicates as p
from tidegate.rules.model import Rulebook


class WhereValues:
    """Adds the columns to windows of one trace."""

    def __init__(self, book: Rulebook, trace: Trace) -> None:
        tables = table_schemas(book, trace)
        self._book, self._events = book, trace.events
        self._declared = trace.changes.declared.keys()
        self._named: dict[str, set[p.Column]] = defaultdict(set)
        for rule in book.rules.values():
            for column, event in asked_columns(rule.pattern):
                if event in book.events:
                    self._named[event].add(column)
        self._schemas = {e: parameter_schema(book, e, tables) for e in self._named}

    def added(self, window: pa.Table) -> pa.Table:
        """A window with the columns."""
        codes = window[EVENT].to_numpy()
        names = [EventKey.of(event).event for event in self._events]
        for event, columns in self._named.items():
            mine = [code for code, name in enumerate(names) if name == event]
            row = np.flatnonzero(np.isin(codes, mine))
            lines = window[LINE].take(pa.array(row)).to_pylist()
            schema, found = self._schemas[event], np.full(len(window), len(row))
            found[row] = np.arange(len(row))
            zone = self._book.timezone
            read = parameters(self._book.events[event], schema, lines, self._declared, zone)
            for column in sorted(columns, key=str):
                values = _values(read, column)
                if values is not None:
                    values = pa.chunked_array([*values.chunks, pa.nulls(1, values.type)])
                    name = f"{TYPED}{event}.{str(column).partition('.')[2]}"
                    if name not in window.column_names:
                        window = window.append_column(name, values.take(pa.array(found)))
        return window


def _values(table: pa.Table, column: p.Column) -> pa.ChunkedArray | None:
    """The case of a name does not matter to SQL."""
    if column.old:
        if OLD not in table.column_names:
            return None
        struct = table[OLD].combine_chunks()
        struct = struct.chunk(0) if isinstance(struct, pa.ChunkedArray) else struct
        table = pa.table(struct.flatten(), names=[f.name for f in struct.type])
    wanted = column.column
    alike = [name for name in table.column_names if name.lower() == wanted.lower()]
    return table[wanted if wanted in alike else alike[0]] if alike else None
