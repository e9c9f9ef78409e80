"""The fields of signals and webhooks: expressions over the rows of a firing."""

from __future__ import annotations

import pyarrow as pa

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.evaluator.firings import compile_fields
from tidegate.engine.core.evaluator.nodes import UndecidedError
from tidegate.engine.core.ports import Sink
from tidegate.engine.core.statement import FieldsStatement
from tidegate.engine.core.types.spark import arrow_type
from tidegate.engine.core.values import Firings


def fields_of(entry: Entry, firings: Firings, sink: Sink) -> pa.Table:
    """The fields of an entry: a row a firing, `firing_id` (hex) first, in any order. No Spark job
    is needed if each field is a column of the firings and has the right type, or an expression of
    the closed list (G30). Raises SinkError."""
    statement = entry.stating(FieldsStatement)
    found = _bare(statement, firings)
    found = _listed(statement, firings) if found is None else found
    return sink.fields(entry, firings) if found is None else found


def _listed(statement: FieldsStatement, firings: Firings) -> pa.Table | None:
    schema = firings.relation.schema
    fields = compile_fields(statement.fields, statement.types, schema, statement.group)
    try:
        return None if fields is None else fields.values(firings.rows)
    except UndecidedError:
        return None


def _bare(statement: FieldsStatement, firings: Firings) -> pa.Table | None:
    ids = firings.hex_ids()
    known = firings.firings.set_column(0, "firing_id", ids)
    fields = {"firing_id": ids}
    for name, expression in statement.fields.items():
        column = expression.strip()
        if column not in statement.group or column not in known.column_names:
            return None
        kind = statement.types.get(name)
        if kind is not None and known[column].type != arrow_type(kind):
            return None
        fields[name] = known[column]
    return pa.table(fields)
