"""The lines of a trace that are changes of tables. They are kept on disk until the types of their
tables are known, and then go through `of` and `where`.

Example: {"table": "accounts", "change": "update", "time": 3, "row": {"id": 7, "balance": 5},
"old": {"id": 7, "balance": 9}} is an occurrence of each event type of `accounts` that is
`on: update` or `on: change`, if its `where` is true.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.engine.core.event_names import begun
from tidegate.engine.core.parameters import missing_columns, parameter_schema
from tidegate.engine.core.types.spark import spark_type
from tidegate.engine.core.values import Int64
from tidegate.engine.replay import inferred
from tidegate.engine.replay.json_reader import LineError
from tidegate.engine.replay.line_types import KINDS, OF_THE_LINE, TAKEN
from tidegate.rules.analysis.graph import uses_of
from tidegate.rules.errors import InputError, Problem, did_you_mean
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Rulebook, SignalEvent, Table, TableEvent

if TYPE_CHECKING:
    from tidegate.engine.replay.table_changes import Occurrences, TableChanges

BLOCK_BYTES = 1 << 20
TABLE, CHANGE, ROW, OLD = "table", "change", "row", "old"
_PARTS = {TABLE: 0, CHANGE: 0, "time": 0, ROW: 0, OLD: 0}.keys()
_EXAMPLE = '{"table": "orders", "change": "insert", "time": 3, "row": {"id": 7}}'
Schemas = Callable[[Table], pa.Schema | None]
"""Looks up the schema of a declared table. None: its types are those that its values have."""


def is_change(fields: Any) -> bool:
    """Whether a line is a change of a table, and not an event."""
    if not isinstance(fields, dict) or "event" in fields:
        return False
    return TABLE in fields or CHANGE in fields


class ChangeLines:
    """The changes among the lines of a trace.

    `declared`: the schemas that are known, by table. `kinds`: of the other tables, the Python types
    of their values, by column. `rejected`: how many rows, by event type and reason. `hidden`:
    tables with columns that no occurrence can show.
    """

    def __init__(self, book: Rulebook, folder: Path, schemas: Schemas = lambda _: None) -> None:
        self._book = book
        self._path = folder / "changes.jsonl"
        self._schemas = schemas
        self._changes: dict[str, set[str]] = defaultdict(set)  # by table
        self._tables: dict[str, TableChanges] = {}
        self._looked_up: set[str] = set()
        self._problems: list[Problem] = []
        self.declared: dict[str, pa.Schema] = {}
        self.kinds: dict[str, dict[str, set[type]]] = {}
        self.rejected: Counter[tuple[str, str]] = Counter()
        self.hidden: dict[str, list[str]] = {}

    def types_of(self, name: str) -> SignalEvent | None:
        """An event type of a table as if it were a signal of its parameters; None where the
        table's columns are not known."""
        event = self._book.events.get(name)
        if not isinstance(event, TableEvent) or event.change.is_commit:
            return None
        table = self._book.tables.get(event.table)
        schema = None if table is None else self._schema_of(table)
        if schema is None or self._problems:
            return None
        found = parameter_schema(self._book, name, {event.table: schema})
        fields = {f.name: spark_type(f.type) for f in found if f.name not in OF_THE_LINE}
        return SignalEvent(name, event.place, fields)

    def _schema_of(self, table: Table) -> pa.Schema | None:
        """The schema of a table, looked up once. Event types that pick a column which it has not
        are among the problems."""
        if table.name in self._looked_up:
            return self.declared.get(table.name)
        self._looked_up.add(table.name)
        schema = self._schemas(table)
        if schema is None:
            return None
        self.declared[table.name] = schema
        for event in self._book.events.values():
            if isinstance(event, TableEvent) and event.table == table.name:
                for column in missing_columns(event, self.declared):
                    message = f"table {table.name} has no column {column}"
                    hint = did_you_mean(column, schema.names)
                    problem = Problem("unknown-column", message, event.place, hint)
                    self._problems.append(problem)
        return schema

    def checked(self, lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows of lines. Raises LineError for the first that is no change of a declared
        table."""
        found = []
        for each in lines:
            table, change = each.get(TABLE), each.get(CHANGE)
            if not isinstance(table, str) or table not in self._book.tables or change not in KINDS:
                raise self._wrong(table, change)
            row, old = each.get(ROW), each.get(OLD)
            if not isinstance(row, dict):
                hint = (
                    f'give "row": the {"deleted" if change == "delete" else "new"} row, an object'
                )
                raise LineError("no-row", f"the {change} has no row", hint)
            if change == "update" and not isinstance(old, dict):
                raise LineError("no-old", "the update has no old", 'give "old": the row before it')
            if change != "update" and old is not None:
                message = f"the {change} has an old, which only an update has"
                raise LineError("no-old", message, "leave it out")
            if extra := each.keys() - _PARTS:
                hint = did_you_mean(min(extra), _PARTS) or f"columns stand in row: {_EXAMPLE}"
                raise LineError("unknown-key", f"a change has no {min(extra)!r}", hint)
            found += [row] if old is None else [row, old]
        return found

    def keep(
        self, numbers: Sequence[int], lines: Sequence[bytes], fields: Sequence[dict[str, Any]]
    ) -> None:
        """Keep lines that are right, with their numbers in the trace."""
        by_table: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for each in fields:
            by_table[each[TABLE]].append(each[ROW])
            self._changes[each[TABLE]].add(each[CHANGE])
            if OLD in each and each[OLD] is not None:
                by_table[each[TABLE]].append(each[OLD])
        for table, rows in by_table.items():
            known = self.kinds.setdefault(table, {})
            for column in dict.fromkeys(name for row in rows for name in row):
                kinds = inferred.kinds([row.get(column) for row in rows])
                known.setdefault(column, set()).update(kinds)
        with self._path.open("ab") as file:
            file.writelines(b"%d %s\n" % one for one in zip(numbers, lines, strict=True))

    def kept(self) -> Iterator[tuple[list[int], list[bytes]]]:
        """The lines that were kept, a block at a time, with their numbers. Raises InputError with
        every `where` that needs Spark."""
        if self._problems:
            raise InputError(self._problems)
        if not self.kinds:
            return
        # sqlglot takes a tenth of a second
        from tidegate.engine.replay.change_types import ColumnTypes
        from tidegate.engine.replay.table_changes import TableChanges

        problems = self._problems
        needed = _needed(self._book)
        for name, kinds in self.kinds.items():
            changes = self._changes[name]
            table = self._book.tables[name]
            schema = self._schema_of(table)
            events = [e for e in _events(self._book, name, changes) if e.name in needed]
            hidden = [column for column in OF_THE_LINE if column in kinds]
            if hidden and not all(event.picks for event in events):
                self.hidden[name] = hidden
            types = ColumnTypes(table, events, schema, kinds, self._book.timezone)
            problems += types.problems
            self._tables[name] = TableChanges(table, types, begun(self._book), self.rejected)
        if problems:
            raise InputError(problems)
        with self._path.open("rb") as file:
            while lines := file.readlines(BLOCK_BYTES):
                parts = [line.rstrip(b"\n").partition(b" ") for line in lines]
                yield [int(number) for number, _, _ in parts], [line for _, _, line in parts]

    def occurrences(
        self, lines: Sequence[bytes], fields: Sequence[dict[str, Any]], time: Int64
    ) -> Occurrences:
        """The occurrences of some changes, whose commits are at these instants. Raises LineError or
        InputError for the first line that is wrong."""
        from tidegate.engine.replay.table_changes import Occurrences

        found = Occurrences()
        places: dict[str, list[int]] = defaultdict(list)
        for at, each in enumerate(fields):
            places[each[TABLE]].append(at)
        for table, mine in places.items():
            self._tables[table].add(found, mine, lines, fields, time)
        return found

    def _wrong(self, table: Any, change: Any) -> LineError:
        if not isinstance(table, str) or not isinstance(change, str):
            missing = CHANGE if isinstance(table, str) else TABLE
            return LineError("no-table", f"the line has no {missing}", f"write {_EXAMPLE}")
        if table not in self._book.tables:
            hint = did_you_mean(table, self._book.tables) or "tables: declares none of that name"
            return LineError("unknown-table", f"unknown table {table!r}", hint)
        hint = did_you_mean(change, KINDS) or f"it is {', '.join(KINDS)}"
        return LineError("unknown-change", f"unknown change {change!r}", hint)


def _events(book: Rulebook, table: str, changes: Collection[str]) -> Iterator[TableEvent]:
    """The event types of a table of which such changes may be occurrences."""
    unpaired = "update" in changes and book.tables[table].on_unpaired != "stop"
    changes = {*changes, *(KINDS if unpaired else ())}
    for event in book.events.values():
        if not isinstance(event, TableEvent) or event.table != table:
            continue
        if not changes.isdisjoint(TAKEN.get(event.change, ())):
            yield event


def _needed(book: Rulebook) -> Collection[str]:
    """The event types that rules and scripts take."""
    nodes = (node for rule in book.rules.values() for node in rule.pattern.on.walk())
    named = {node.name for node in nodes if isinstance(node, x.Name | x.Edge)}
    return named.union(*(uses_of(script, ()) for script in book.scripts.values()))
