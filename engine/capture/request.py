"""The request for the changes of a table: one for all its event types, made once for a schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidegate.engine.core.evaluator.filters import Filter, compile_filter, filter_types
from tidegate.engine.core.event_names import Edge, EventKey
from tidegate.engine.core.parameters import CHANGE_TYPE, OLD
from tidegate.engine.core.ports import ReadRequest
from tidegate.engine.core.types.spark import arrow_schema
from tidegate.engine.core.values import Needs
from tidegate.rules.model import Change, Table, TableEvent

_ONLY_MAX = 8  # the most predicates that are pushed into the scan
_WORD = re.compile(r"`((?:[^`]|``)+)`|([A-Za-z_]\w*)")
_FEED_TYPES: Mapping[Change, frozenset[str]] = {
    Change.INSERT: frozenset({"insert"}),
    Change.DELETE: frozenset({"delete"}),
    Change.UPDATE: frozenset({"update_postimage"}),
    Change.CHANGE: frozenset({"insert", "delete", "update_postimage"}),
}


@dataclass(frozen=True, slots=True)
class EventRequest:
    """One event type of the table.

    `carry`: by parameter, its column: of the table, or `old`, `old.x`, `_change_type`. The
    beginning of an update has `old.x` for all of them. `ids`: by the digest of a set of parameters
    (`engine.core.columns.ids.column_set`), the columns that are hashed. With a `where`, one of two
    is set: `filter`, which Arrow runs, or `asked`, the column with Spark's answers.
    """

    event: TableEvent
    carry: Mapping[str, str]
    ids: Mapping[str, tuple[str, ...]]
    filter: Filter | None = None
    asked: str | None = None


@dataclass(frozen=True, slots=True)
class TableRequest:
    """One table. `read`: the request to the feed. `decide`: predicates over paired images that
    Spark decides afterwards, by column name. `old`: the columns of the pre-image that are read.
    `paired`: images are paired.
    """

    table: Table
    events: tuple[EventRequest, ...]
    read: ReadRequest
    decide: Mapping[str, str]
    old: tuple[str, ...]
    paired: bool

    @property
    def used(self) -> frozenset[str]:
        """The table's columns that the rulebook needs (G12)."""
        return frozenset(self.read.columns)


def table_request(
    table: Table,
    events: Iterable[TableEvent],
    schema_json: str,
    needs: Needs,
    id_sets: Mapping[str, Mapping[str, tuple[str, ...]]],
) -> TableRequest:
    """The request for a table. `id_sets`: by event type, the parameters of each set, by its
    digest."""
    schema = arrow_schema(schema_json)
    events = tuple(events)
    paired = bool(table.key) and any(e.change in (Change.UPDATE, Change.CHANGE) for e in events)
    compiler = _Compiler(table, schema_json, paired)
    requests = tuple(
        compiler.event(event, needs.carry[event.name], id_sets.get(event.name, {}))
        for event in events
    )
    types = frozenset().union(*(_FEED_TYPES[event.change] for event in events))
    wheres = {event.where for event in events}
    only = not paired and None not in wheres and len(wheres) <= _ONLY_MAX
    read = ReadRequest(
        columns=sorted(compiler.columns),
        changes=types | ({"update_preimage"} if paired else frozenset()),
        where=compiler.asked,
        only=sorted(where for where in wheres if where is not None) if only else (),
        same=paired,
    )
    return TableRequest(
        table=table,
        events=requests,
        read=read,
        decide=compiler.decided,
        old=tuple(name for name in schema.names if name in compiler.old),
        paired=paired,
    )


class _Compiler:
    """Collects what the event types of a table need together."""

    def __init__(self, table: Table, schema_json: str, paired: bool) -> None:
        self.columns: set[str] = set(table.key)
        self.old: set[str] = set()
        self.asked: dict[str, str] = {}
        self.decided: dict[str, str] = {}
        self._table = table
        self._schema = arrow_schema(schema_json)
        self._paired = paired
        self._types = {images: filter_types(schema_json, images) for images in (False, True)}

    def event(
        self,
        event: TableEvent,
        carry: Iterable[str],
        id_sets: Mapping[str, tuple[str, ...]],
    ) -> EventRequest:
        columns = {name: self._column(event, name) for name in carry}
        ids = {
            digest: tuple(sorted({*(self._column(event, n) for n in names), *self._table.key}))
            for digest, names in id_sets.items()
        }
        for column in (*columns.values(), *(c for names in ids.values() for c in names)):
            self._need(column)
        for column in event.of:
            self._need(f"{OLD}.{column}")
        self.columns.update([event.time] if event.time else [])
        if event.where is None:
            return EventRequest(event, columns, ids)
        images = self._paired and event.change in (Change.UPDATE, Change.CHANGE)
        found = compile_filter(event.where, self._types[images])
        if found is None:
            return EventRequest(event, columns, ids, asked=self._ask(event.where, images))
        for name in found.columns:
            self._need(name)
        return EventRequest(event, columns, ids, filter=found)

    def _column(self, event: TableEvent, parameter: str) -> str:
        if parameter in (CHANGE_TYPE, OLD) or parameter.startswith(f"{OLD}."):
            return parameter
        column = event.columns.get(parameter, parameter)
        return f"{OLD}.{column}" if EventKey.of(event.name).edge is Edge.BEGIN else column

    def _need(self, column: str) -> None:
        if column == OLD:
            self.old.update(self._schema.names)
            self.columns.update(self._schema.names)
        elif column.startswith(f"{OLD}."):
            self.old.add(column.removeprefix(f"{OLD}."))
            self.columns.add(column.removeprefix(f"{OLD}."))
        elif column != CHANGE_TYPE:
            self.columns.add(column)

    def _ask(self, text: str, images: bool) -> str:
        """The name of the column that will have Spark's answers to a predicate."""
        asked = self.decided if images else self.asked
        for name, known in asked.items():
            if known == text:
                return name
        name = f"_tidegate_{'decided' if images else 'where'}_{len(asked)}"
        asked[name] = text
        if images:
            self._need_mentioned(text)
        return name

    def _need_mentioned(self, text: str) -> None:
        """Read every column that a predicate may name: the rows are sent back to Spark for it."""
        found = _WORD.findall(text)
        words = {quoted.replace("``", "`").lower() or word.lower() for quoted, word in found}
        mentioned = {name for name in self._schema.names if name.lower() in words}
        self.columns.update(mentioned)
        self.old.update(mentioned)
