"""What the parameters of an event type are: the columns that `if`, `do` and `per` may name."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from tidegate.engine.core.types.spark import arrow_type
from tidegate.rules.analysis.key_types import COMMIT_COLUMNS
from tidegate.rules.model import Change, Rulebook, ScriptEvent, SignalEvent, Table, TableEvent

CHANGE_TYPE = "_change_type"  # insert | delete | update: a parameter of `change` events
OLD = "old"  # the pre-image, a struct of all columns of the table
SAMPLE = "sample"  # what a query said as of a tick
INSTANT = pa.timestamp("us", "UTC")
ENGINE_COLUMNS: Mapping[str, pa.DataType] = {
    "firing_id": pa.string(),
    "event_type": pa.string(),
    "label": pa.string(),
    "occurred_at": INSTANT,
    "started_at": INSTANT,
    "detected_at": INSTANT,
}
"""The columns of a parameter relation that no event type brings."""


COMMITS: Mapping[Change, pa.Schema] = {
    change: pa.schema([pa.field(name, arrow_type(ddl)) for name, ddl in columns.items()])
    for change, columns in COMMIT_COLUMNS.items()
}
"""What a commit tells of itself, by the kind of event type."""


def parameter_schema(rulebook: Rulebook, event: str, tables: Mapping[str, pa.Schema]) -> pa.Schema:
    """The parameters of an event type, given the schemas of the rulebook's tables by name.

    A transaction and a commit have those of `COMMITS`. A table's other events have the table's
    columns, or those that `columns:` picks under its names; on updates of a table with a `key` also
    `old`, unless it is their beginning, which has the values of the pre-image itself. A signal and
    what a script emits have their fields, a clock nothing.
    Raises KeyError naming a column in `columns:` that the table has not.
    """
    kind = rulebook.events[event]
    if isinstance(kind, SignalEvent | ScriptEvent):
        return pa.schema([pa.field(name, arrow_type(ddl)) for name, ddl in kind.fields.items()])
    if not isinstance(kind, TableEvent):
        return pa.schema([])
    if kind.change.is_commit:
        return COMMITS[kind.change]
    columns = tables[kind.table]
    if kind.columns:
        fields = [pa.field(name, columns.field(at).type) for name, at in kind.columns.items()]
    else:
        fields = list(columns)
    if kind.change is Change.CHANGE:
        fields.append(pa.field(CHANGE_TYPE, pa.string()))
    if has_old(kind, rulebook.tables[kind.table]):
        fields.append(pa.field(OLD, pa.struct(list(columns))))
    return pa.schema(fields)


def has_old(event: TableEvent, table: Table) -> bool:
    """Whether the event's rows carry their pre-image as `old`: pairing takes a `key` (G11)."""
    images = event.change in (Change.UPDATE, Change.CHANGE) and bool(table.key)
    return images and event.begin_of is None
