"""The columns of the tables that a test file writes: declared, else of the table's log, else
inferred.

Inferred types: whole numbers are bigint, others double, true and false boolean, texts string.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from tidegate.engine.core.types.spark import arrow_schema, plain_columns
from tidegate.engine.replay.cases.model import Case, Row, Written
from tidegate.engine.replay.cases.rows import signal_schema
from tidegate.rules.analysis.graph import table_events
from tidegate.rules.errors import Place, Problem
from tidegate.rules.model import Rulebook, SignalEvent
from tidegate.rules.yaml.kinds import Report

LogSchema = Callable[[str], str | None]
"""The schema of the table at a path, as Spark's JSON; None where it cannot be seen."""

_INFERRED: Mapping[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}
_LARGEST = 2**63


def schemas_of(
    book: Rulebook,
    declared: Mapping[str, pa.Schema],
    defaults: Mapping[str, Row],
    cases: Iterable[Case],
    log_schema: LogSchema | None,
    place: Place,
    report: Report,
) -> dict[str, pa.Schema]:
    """The schema of each declared table. One of which nothing is known is reported where an event
    type reads it, and has no columns where only actions write it, or where there are no cases."""
    cases = [*cases]
    values = _values(cases, defaults)
    added = _added(cases)
    read = {event.table: event.name for event in table_events(book)}
    found = {}
    for name, table in book.tables.items():
        if name in declared:
            found[name] = declared[name]
            continue
        logged = log_schema(table.path) if log_schema is not None and table.path else None
        if logged is not None:
            found[name] = arrow_schema(logged)
            _warn_of_odd_texts(name, found[name], logged, place, report)
        elif (
            known := _inferred(name, values.get(name, {}), added.get(name, ()), report)
        ) is not None:
            found[name] = known
        elif (fields := _of_signal(book, name)) is not None:
            found[name] = fields
        elif name in read and cases:
            message = f"the columns of the table {name!r} are not known; {read[name]!r} reads them"
            hint = f'declare them: schemas: {{{name}: "id BIGINT, ..."}}'
            report.add("unknown-schema", message, place, hint)
        else:  # actions write it, and no case looks at it
            found[name] = pa.schema([])
    return found


def _warn_of_odd_texts(
    table: str, schema: pa.Schema, logged: str, place: Place, report: Report
) -> None:
    """Warn of texts that the real table pads, or compares by a collation."""
    odd = [name for name in schema.names if name not in plain_columns(logged)]
    if odd:
        message = f"{table} has char(n) columns, or a collation: {', '.join(odd)}"
        hint = "here they are plain texts, and compare byte by byte"
        report.warn("plain-text", message, place, hint)


def _of_signal(book: Rulebook, table: str) -> pa.Schema | None:
    """The columns of a table whose rows raise a signal."""
    for event in book.events.values():
        if isinstance(event, SignalEvent) and event.from_table == table:
            return signal_schema(event)
    return None


def _values(cases: Iterable[Case], defaults: Mapping[str, Row]) -> dict[str, dict[str, Any]]:
    """By table and column, the values that a file has of it."""
    found: dict[str, dict[str, list[Written]]] = {}
    rows = [*defaults.items(), *(pair for case in cases for pair in _rows(case))]
    for table, row in rows:
        columns = found.setdefault(table, {})
        for name, written in row.items():
            columns.setdefault(name, []).append(written)
    return found


def _added(cases: Iterable[Case]) -> dict[str, set[str]]:
    """By table, the columns that steps add: it has not had them before."""
    found: dict[str, set[str]] = {}
    for case in cases:
        for step in case.steps:
            for table, change in step.tables.items():
                found.setdefault(table, set()).update(change.added.names)
    return found


def _rows(case: Case) -> Iterator[tuple[str, Row]]:
    """The rows of declared tables in a case, those expected too."""
    for table, rows in case.tables.items():
        yield from ((table, row) for row in rows)
    for step in case.steps:
        for table, change in step.tables.items():
            yield from ((table, row) for row in change.inserts)
            yield from ((table, update.set) for update in change.updates)
    for expect in case.expectations:
        for table, wanted in expect.tables.items():
            yield from ((table, row) for row in wanted.rows)


def _inferred(
    table: str, columns: Mapping[str, list[Written]], added: Collection[str], report: Report
) -> pa.Schema | None:
    names = [name for name in columns if name not in added]
    if not names:
        return None
    return pa.schema([(name, _type_of(table, name, columns[name], report)) for name in names])


def _type_of(table: str, column: str, values: list[Written], report: Report) -> pa.DataType:
    """The type of all values of a column."""
    hint = f'declare the columns: schemas: {{{table}: "{column} STRING, ..."}}'
    kinds: dict[pa.DataType, Place] = {}
    for written in values:
        value = written.value
        if value is None:
            continue
        if type(value) not in _INFERRED or (type(value) is int and not _fits(value)):
            message = f"the type of column `{column}` cannot be inferred from this value"
            report.problems.append(Problem("unknown-type", message, written.place, hint))
            return pa.null()
        kinds.setdefault(_INFERRED[type(value)], written.place)
    if kinds.keys() == {pa.int64(), pa.float64()}:
        return pa.float64()
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds:
        (_, first), (_, second) = list(kinds.items())[:2]
        message = f"column `{column}` has values of several types, the other at line {first.line}"
        report.problems.append(Problem("mixed-types", message, second, hint))
    else:
        message = f"the type of column `{column}` cannot be inferred: it is null everywhere"
        report.problems.append(Problem("unknown-type", message, values[0].place, hint))
    return pa.null()  # whatever is written fits, so that each problem is told once


def _fits(value: int) -> bool:
    return -_LARGEST <= value < _LARGEST
