"""Whether the rows of a test file fit: columns that are there, values of their types, fields that a
signal or a webhook has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from tidegate.engine.core.types.spark import arrow_type
from tidegate.engine.replay.cases.model import Case, Expectation, Row, TableChange
from tidegate.engine.replay.cases.rows import misfits, signal_schema, widened
from tidegate.rules.errors import Problem, did_you_mean
from tidegate.rules.model import Rulebook, ScriptEvent, SignalEvent, Webhook
from tidegate.rules.sql.tree import columns_of
from tidegate.rules.yaml.kinds import Report

_TIME = pa.field("time", pa.timestamp("us", "UTC"))


def check_columns(
    book: Rulebook,
    schemas: Mapping[str, pa.Schema],
    defaults: Mapping[str, Row],
    cases: Iterable[Case],
    report: Report,
) -> None:
    """Report each column that is not known, and each value that is not of its column's type."""
    checker = _Checker(book, schemas)
    for table, row in defaults.items():
        report.problems += checker.of_table(table, [row])
    for case in cases:
        report.problems += checker.of_case(case)


class _Checker:
    def __init__(self, book: Rulebook, schemas: Mapping[str, pa.Schema]) -> None:
        self.book = book
        self._first = schemas
        self.schemas = dict(schemas)  # after the steps up to here
        self.signals = {
            name: signal_schema(event)
            for name, event in book.events.items()
            if isinstance(event, SignalEvent)
        }
        self.emissions = {
            name: pa.schema([*((n, arrow_type(t)) for n, t in event.fields.items()), _TIME])
            for name, event in book.events.items()
            if isinstance(event, ScriptEvent)
        }

    def of_table(self, table: str, rows: Iterable[Row]) -> list[Problem]:
        schema = self.schemas.get(table)
        return [] if schema is None else misfits([*rows], schema, self.book.timezone)

    def of_case(self, case: Case) -> Iterator[Problem]:
        self.schemas = dict(self._first)
        for table, rows in case.tables.items():
            yield from self.of_table(table, rows)
        for step in case.steps:
            for table, change in step.tables.items():
                written = [*change.inserts, *(update.set for update in change.updates)]
                yield from self.of_table(table, written)
                yield from self._of_predicates(table, change)
                yield from self._widened(table, change)
            for signal in step.signals:
                schema = self.signals[signal.event]
                yield from misfits([signal.fields], schema, self.book.timezone)
            if step.expect is not None:
                yield from self.of_expectation(step.expect)
        if case.expect is not None:
            yield from self.of_expectation(case.expect)

    def of_expectation(self, expect: Expectation) -> Iterator[Problem]:
        zone = self.book.timezone
        for table, wanted in expect.tables.items():
            yield from self.of_table(table, wanted.rows)
        for event, wanted in expect.signals.items():
            yield from misfits(wanted.rows, self.signals[event], zone)
        for event, wanted in expect.emissions.items():
            yield from misfits(wanted.rows, self.emissions[event], zone)
        for rule, wanted in expect.webhooks.items():
            fields = self._posted(rule)
            names = ((n, written) for row in wanted.rows for n, written in row.items())
            for name, written in names:
                if name not in fields:
                    message = f"the webhook of {rule!r} has no field {name!r}"
                    hint = did_you_mean(name, fields)
                    yield Problem("unknown-column", message, written.place, hint)
        for rule, wanted in expect.firings.items():
            yield from self._of_keys(rule, wanted.rows)

    def _of_predicates(self, table: str, change: TableChange) -> Iterator[Problem]:
        """Columns that predicates name and the table lacks, as far as they are sure."""
        schema = self.schemas.get(table)
        known = {name.lower() for name in schema.names} if schema is not None else set[str]()
        wheres = [(one.where, one.place) for one in change.updates]
        wheres += [(one.where, one.place) for one in change.deletes]
        for where, place in wheres if known else ():
            for name in columns_of(where):
                if name.lower() not in known:
                    message = f"there is no column `{name}` in {table}"
                    yield Problem("unknown-column", message, place, did_you_mean(name, known))

    def _widened(self, table: str, change: TableChange) -> Iterator[Problem]:
        """From here on the table has the columns that are added. They have to be new."""
        known = {name.lower() for name in self.schemas[table].names}
        for name in change.added.names:
            if name.lower() in known:
                message = f"`{name}` is a column of {table} already"
                hint = "a step adds new columns only: name another one, or leave this out"
                yield Problem("column-there", message, change.place, hint)
                return
            known.add(name.lower())
        self.schemas[table] = widened(self.schemas[table], change.added)

    def _posted(self, rule: str) -> set[str]:
        actions = self.book.rules[rule].reaction.every
        return {name for action in actions if isinstance(action, Webhook) for name in action.fields}

    def _of_keys(self, rule: str, rows: Iterable[Row]) -> Iterator[Problem]:
        names = self.book.rules[rule].pattern.key_names
        for row in rows:
            for name in row["key"].value if "key" in row else ():
                if name not in names:
                    message = f"the key of {rule!r} has no column {name!r}"
                    message = message if names else f"{rule!r} has no key: its per: is missing"
                    hint = did_you_mean(name, names)
                    yield Problem("unknown-column", message, row["key"].place, hint)
