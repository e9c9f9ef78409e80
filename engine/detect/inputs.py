"""How event scripts take occurrences: with the columns that an input reads; and what they emit, and
what rules detect, as occurrences (`eventscript.md` 1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.engine.core.columns.ids import constituent_ids, firing_ids, ids_by
from tidegate.engine.core.parameters import DETECTED, INSTANT, STARTED
from tidegate.engine.core.types.spark import arrow_type
from tidegate.engine.core.values import Batch, Detections, Needs
from tidegate.engine.detect.events.occurrences import order
from tidegate.engine.detect.events.occurrences.occurrences import Ranking
from tidegate.engine.detect.scripts.value_types import OBJECTS, object_text
from tidegate.rules import model
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.types import Structure


class Taking:
    """Of occurrences whose parameters are columns, without ids: those of `tidegate.detect`."""

    ranking: Ranking = order
    needs = Needs({})

    def __init__(self, book: model.Rulebook) -> None:
        kinds = book.events.items()
        self._events = {name: e for name, e in kinds if isinstance(e, model.ScriptEvent)}

    def take(self, script: model.Script, read: tree.Input, batch: Batch) -> Batch:
        """The occurrences of an input."""
        taken = script.inputs[read.name]
        wanted = {taken.value or "value", *taken.order_by}
        if isinstance(read.type, Structure):
            wanted = {*taken.order_by, *(name for name, _ in read.type.fields)}
        names = [name for name in batch.table.column_names if name in wanted]
        return replace(batch, table=batch.table.select(names))

    def detected(self, found: Detections) -> Batch:
        """A rule's detections as occurrences at their ends: columns are the key, `started_at` and
        `detected_at`; the id is of rule, key, interval and constituents; the depth their greatest.
        """
        rule = found.rule
        columns = {event: self.needs.ids.get((rule, event), ()) for event in found.events}
        ids = constituent_ids(found, columns)
        ids = firing_ids("", rule, found.keys, found.start, found.end, found.offsets, ids)
        start, end = (pa.array(side).cast(INSTANT) for side in (found.start, found.end))
        names = [*found.keys.column_names, STARTED, DETECTED]
        table = pa.table([*found.keys.columns, start, end], names=names)
        return Batch(rule, found.end, np.arange(len(found)), table, {"": ids}, found.depths)

    def shown(self, emitted: Batch) -> Batch:
        """What a script emits, as rules see it: with columns of the types that its event type is
        declared with. An `object`, which may be of any type, is text."""
        event, table = self._events[emitted.event], emitted.table
        for number, name in enumerate(table.column_names):
            wanted = arrow_type(event.fields[name])
            if table.schema.field(name).type != wanted:
                table = table.set_column(number, name, _cast(table.column(name), wanted))
        return emitted if table is emitted.table else replace(emitted, table=table)


class LiveTaking(Taking):
    """Of occurrences with ids. `needs`: what the scripts read of each event type."""

    def __init__(self, book: model.Rulebook, needs: Needs) -> None:
        super().__init__(book)
        self.needs = needs

    def take(self, script: model.Script, read: tree.Input, batch: Batch) -> Batch:
        """Those of a clock, which have nothing but their instant, get ids of it."""
        columns = self.needs.ids[script.name, script.inputs[read.name].event]
        ids = ids_by(batch, columns)
        return replace(batch, table=batch.table.select([*columns]), ids={"": ids})


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if not _has_objects(column.type):
        return column.cast(wanted)
    values = [_with_texts(value, wanted) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(values, wanted)])


def _has_objects(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_objects(kind.field(n).type) for n in range(kind.num_fields))
    return _has_objects(kind.value_type) if pa.types.is_list(kind) else kind == OBJECTS


def _with_texts(value: Any, wanted: pa.DataType) -> Any:
    """A value whose objects are texts."""
    if value is None:
        return None
    if pa.types.is_struct(wanted):
        parts = (wanted.field(n) for n in range(wanted.num_fields))
        return {part.name: _with_texts(value[part.name], part.type) for part in parts}
    if pa.types.is_list(wanted):
        return [_with_texts(each, wanted.value_type) for each in value]
    return object_text(value) if pa.types.is_string(wanted) else value
