"""The types of a table's columns, and what of them its event types ask."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

from tidegate.engine.core.evaluator.filters import Filter, compile_filter
from tidegate.engine.core.parameters import INSTANT, OLD
from tidegate.engine.core.text.times import INSTANTS
from tidegate.engine.core.types.fields import check_fields, fields_table
from tidegate.engine.core.types.spark import spark_type
from tidegate.engine.replay import inferred, times
from tidegate.engine.replay.inferred import Kinds
from tidegate.engine.replay.json_reader import LineError
from tidegate.rules.errors import Problem, did_you_mean, word_place
from tidegate.rules.model import Change, SignalEvent, Table, TableEvent
from tidegate.rules.sql.statement import unknown_columns

NEEDS_SPARK = "needs Spark: tidegate test --spark"
_GUESSES = (pa.string(), pa.int64(), pa.bool_())  # of a column that is null throughout


@dataclass(frozen=True, slots=True)
class Asked:
    """An event type of the table. `types`: of the columns that its `where` and `time`
    read."""

    event: TableEvent
    where: Filter | None
    types: Mapping[str, pa.DataType]


class ColumnTypes:
    """The types of a table's columns: those of its `schema`, or without one those that its values
    have, whose Python types are `kinds`. `paired`: images of updates are paired, as some event type
    is over updates. `problems`: each `where` that Arrow cannot evaluate. `zone`: of times without
    an offset."""

    def __init__(
        self,
        table: Table,
        events: Sequence[TableEvent],
        schema: pa.Schema | None,
        kinds: Kinds,
        zone: str,
    ) -> None:
        self._declared: SignalEvent | None = None
        self._schema, self._zone = schema, zone
        if schema is None:
            some = {name: found - {type(None)} for name, found in kinds.items()}
            self._types = {n: inferred.type_of(k) if k else pa.null() for n, k in some.items()}
        else:
            self._types = {column.name: column.type for column in schema}
            ddl = {name: spark_type(kind) for name, kind in self._types.items()}
            self._declared = SignalEvent(table.name, word_place(table.name), ddl)
        self._mixed = {
            name
            for name, kind in self._types.items()
            if pa.types.is_null(kind) and kinds.get(name, set()) - {type(None)}
        }
        updates = any(event.change in (Change.UPDATE, Change.CHANGE) for event in events)
        self.paired = bool(table.key) and updates
        self.problems: list[Problem] = []
        self.asked = [self._asked(event) for event in events]

    def exact(self, lines: Sequence[bytes]) -> Sequence[dict[str, Any]] | None:
        """The lines with decimals as they are written, and timestamps as instants, where the types
        are declared. Raises InputError for the first value that is not of its column's type."""
        if self._declared is None or self._schema is None:
            return None
        found = [json.loads(line, parse_float=Decimal) for line in lines]
        for each in found:
            each |= {
                name: times.in_zone(each[name], self._schema, self._zone)
                for name in ("row", "old")
                if isinstance(each.get(name), dict)
            }
        absent = dict.fromkeys(self._declared.fields)
        rows = [row for each in found for row in (each["row"], each.get("old")) if row is not None]
        try:
            plain = not any(row.keys() - absent.keys() for row in rows)
            if plain and fields_table(self._declared, rows) is not None:
                return found
        except (ValueError, TypeError, ArithmeticError, pa.ArrowException):
            pass
        for row in rows:
            check_fields(self._declared, absent | row)
        return found

    def columns(
        self, rows: Sequence[Mapping[str, Any]], olds: Sequence[Mapping[str, Any]]
    ) -> dict[str, pa.Array]:
        """The columns that event types ask, by name; those of the rows before as `old.x`."""
        wanted: dict[str, pa.DataType] = {}
        for asked in self.asked:
            wanted |= asked.types
        found = {}
        for name, kind in wanted.items():
            before = name.startswith(f"{OLD}.") and name not in self._types
            column = name.removeprefix(f"{OLD}.") if before else name
            values = [row.get(column) for row in (olds if before else rows)]
            found[name] = self._array(column, kind, values)
        return found

    def _array(self, name: str, kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
        if self._declared is not None:
            one = SignalEvent(name, self._declared.place, {name: spark_type(kind)})
            return fields_table(one, [{name: value} for value in values])[name].combine_chunks()
        if kind == INSTANT:
            return self._instants(name, values)
        if kind == pa.float64():
            values = [value if value is None else float(value) for value in values]
        return pa.array(values, kind)

    def _instants(self, name: str, values: Sequence[Any]) -> pa.Array:
        """The instants of a column with event times: seconds, or ISO 8601."""
        known = [value for value in values if value is not None]
        try:
            if str in map(type, known):
                micros = times.of_texts(known, self._zone)
            else:
                micros = times.of_numbers(known, [orjson.dumps({"time": one}) for one in known])
        except (ValueError, TypeError, OverflowError, pa.ArrowException):
            raise LineError("time", f"{name} is no instant", INSTANTS) from None
        each = iter(micros.tolist())
        return pa.array([None if v is None else next(each) for v in values], pa.int64()).cast(
            INSTANT
        )

    def _asked(self, event: TableEvent) -> Asked:
        types = dict(self._types)
        own: dict[str, pa.DataType] = {}
        if event.time is not None:
            kind = types.get(event.time)
            own = {event.time: kind if self._declared is not None and kind is not None else INSTANT}
        if event.where is None:
            return Asked(event, None, own)
        if self.paired and event.change in (Change.UPDATE, Change.CHANGE):
            types |= {f"{OLD}.{name}": kind for name, kind in self._types.items()}
        for guess in _GUESSES:
            guessed = {n: guess if pa.types.is_null(k) else k for n, k in types.items()}
            found = compile_filter(
                event.where, {n: guessed[n] for n in guessed.keys() - self._mixed}
            )
            if found is not None:
                return Asked(event, found, {n: guessed[n] for n in found.columns} | own)
        self.problems.append(self._problem(event, types))
        return Asked(event, None, own)

    def _problem(self, event: TableEvent, types: Mapping[str, pa.DataType]) -> Problem:
        place = event.where_place or event.place
        said = f"the `where` of {event.name}"
        known = {*types} - {name for name in types if name.removeprefix("old.") in self._mixed}
        for name in (one.name for one in unknown_columns(event.where or "", known)):
            if name.lower() in {one.lower() for one in types}:
                message = f"{said}: the values of {name} are of several types in the trace"
                return Problem("types", message, place, NEEDS_SPARK)
            message = f"{said}: no row of {event.table} has a column {name}"
            return Problem("unknown-column", message, place, did_you_mean(name, types))
        hint = f"or it names a column that no row of {event.table} has: G30 lists what needs none"
        return Problem("needs-spark", f"{said} {NEEDS_SPARK}", place, hint)
