"""Checks event types against their tables before anything runs: columns, types, `where`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, StructField, StructType, TimestampNTZType, TimestampType

from tidegate.connectors.delta import nodes
from tidegate.connectors.delta.analysis import Analysis, unresolved
from tidegate.connectors.delta.catalog import quoted
from tidegate.connectors.delta.faults import SPARK_ERRORS
from tidegate.connectors.delta.functions import changing, moment_cast
from tidegate.connectors.delta.gate import Gate
from tidegate.connectors.delta.places import Texts
from tidegate.connectors.delta.plans import Plans
from tidegate.connectors.delta.session import new_session
from tidegate.engine.core.evaluator.filters import compile_filter, filter_types
from tidegate.engine.core.parameters import OLD, has_old
from tidegate.engine.core.types.spark import arrow_schema, arrow_type
from tidegate.rules.analysis.graph import table_events
from tidegate.rules.analysis.key_types import COMMIT_COLUMNS
from tidegate.rules.errors import InputError, Place, Problem, did_you_mean
from tidegate.rules.model import Rulebook, SignalEvent, Table, TableEvent

_CLOCK_HINT = "read again, a commit must raise the same events; compare with the table's columns"
_NODES = nodes.ANALYSED_PLANS | {"org.apache.spark.sql.execution.LogicalRDD"}
_ONE_PASS = (["Project", "LogicalRDD"], ["Project", "LocalRelation"])  # plans that see one row
_ROW_HINT = "`where` sees one row: its event's columns; on updates also old.x and new.x"


def check_events(
    spark: SparkSession,
    book: Rulebook,
    locations: Mapping[str, str],
    functions: Collection[str] = (),
) -> None:
    """Checks the columns that tables and event types name. Checks every `where`: let in, analysed,
    boolean, deterministic (G25, G27). Spark is not asked of a `where` that Arrow evaluates (G30).

    `locations`: of the tables, by name. `functions`: those that the operator's policy adds. Raises
    InputError with all problems.
    """
    session = new_session(spark)
    checker = _Checker(session, book, functions)
    problems: list[Problem] = []
    for name, table in book.tables.items():
        events = [e for e in table_events(book) if e.table == name and not e.change.is_commit]
        if (events or table.key) and name in locations:  # one that is only written may be missing
            schema = session.read.format("delta").load(locations[name]).schema
            problems += checker.table(table, events, schema)
    for event in book.events.values():
        if isinstance(event, SignalEvent):
            problems += checker.at_hand(event, event.fields)
        elif isinstance(event, TableEvent) and event.change.is_commit:
            problems += checker.at_hand(event, COMMIT_COLUMNS[event.change])
    if problems:
        raise InputError(problems)


class _Checker:
    def __init__(self, session: SparkSession, book: Rulebook, functions: Collection[str]) -> None:
        self._session = session
        self._book = book
        self._plans = Plans(session)
        self._gate = Gate(self._plans, book.tables, functions=functions)
        self._analysis = Analysis(self._plans, ("event",), functions=functions)
        self._texts = Texts(book)

    def table(
        self, table: Table, events: Sequence[TableEvent], schema: StructType
    ) -> Iterator[Problem]:
        yield from _unknown(table.place, f"tables.{table.name}.key", table.key, schema)
        for event in events:
            path = f"events.{event.name}"
            yield from self._other_types(event, schema)
            yield from _unknown(event.place, f"{path}.of", event.of, schema)
            yield from _unknown(event.place, f"{path}.columns", event.columns.values(), schema)
            yield from _unknown(event.place, f"{path}.time", filter(None, [event.time]), schema)
            yield from _no_time(event, path, schema)
        for images in (False, True):
            asked = [e for e in events if e.where is not None and has_old(e, table) == images]
            yield from self._predicates(asked, schema, images)

    def _other_types(self, event: TableEvent, schema: StructType) -> Iterator[Problem]:
        """A table that raises a signal must have its fields, with the declared types."""
        signal = self._book.events.get(event.name)
        if not isinstance(signal, SignalEvent):
            return
        known = arrow_schema(schema.json())
        for name, ddl in signal.fields.items():
            if name in known.names and known.field(name).type != arrow_type(ddl):
                message = (
                    f"field {name} is {ddl}, the column is {schema[name].dataType.simpleString()}"
                )
                place = replace(event.place, path=f"events.{event.name}.signal.{name}")
                hint = f"declare it as the table {event.table} has it"
                yield Problem("column-type", message, place, hint)

    def at_hand(
        self, event: TableEvent | SignalEvent, columns: Mapping[str, str]
    ) -> Iterator[Problem]:
        """The problems of an event type's `where`, over columns whose types are declared."""
        if event.where is None:
            return
        if compile_filter(event.where, {n: arrow_type(ddl) for n, ddl in columns.items()}) is None:
            schema = ", ".join(f"{quoted(name)} {ddl}" for name, ddl in columns.items())
            yield from self._predicate(self._session.createDataFrame([], schema), event)

    def _predicates(
        self, events: Sequence[TableEvent], schema: StructType, images: bool
    ) -> Iterator[Problem]:
        """The problems of all `where` over the columns of one table. Equal texts are checked once.
        `images`: whether they may name old.x and new.x."""
        types = filter_types(schema.json(), images)
        events = [e for e in events if compile_filter(e.where or "", types) is None]
        fields = list(schema.fields)
        if images:
            fields += [StructField(OLD, schema), StructField("new", schema)]
        if not events:
            return
        frame = self._session.createDataFrame([], StructType(fields))
        for event in {e.where or "": e for e in reversed(events)}.values():
            yield from self._predicate(frame, event)

    def _predicate(self, frame: DataFrame, event: TableEvent | SignalEvent) -> tuple[Problem, ...]:
        text = event.where or ""
        place = event.where_place or replace(event.place, path=f"events.{event.name}.where")
        locate = self._texts.locate(place)
        try:
            column = self._plans.column(self._gate.expression(text, locate))
            try:
                selected = frame.select(column.alias("_held"))
            except SPARK_ERRORS as error:
                raise unresolved(error, locate, _ROW_HINT) from None
            plan = selected._jdf.queryExecution().analyzed()
            parts = self._analysis.parts(plan, locate, _NODES)
            replaced = self._plans.walk(self._plans.replaced(plan))
        except InputError as error:
            return error.problems
        kind = selected.schema[0].dataType
        if [part.kind for part in parts if part.plan] not in _ONE_PASS:
            message = "aggregates, windows and functions that return rows are refused here"
            return (Problem("sql-kind", message, locate(0), _ROW_HINT),)
        if not isinstance(kind, BooleanType):
            message = f"`where` is {kind.simpleString()}, not boolean"
            return (Problem("where-type", message, locate(0), "write a comparison"),)
        if clock := changing(parts) or moment_cast(replaced):
            message = f"the value of {clock} changes with time"
            return (Problem("where-nondeterministic", message, locate(0), _CLOCK_HINT),)
        return ()


def _no_time(event: TableEvent, path: str, schema: StructType) -> Iterator[Problem]:
    """An event time must be a timestamp: a text or a number can mean several times."""
    if event.time in schema.names:
        kind = schema[event.time].dataType
        if not isinstance(kind, TimestampType | TimestampNTZType):
            message = f"column `{event.time}` is {kind.simpleString()}, no timestamp"
            place = replace(event.place, path=f"{path}.time")
            yield Problem("time-type", message, place, "use a column of type TIMESTAMP")


def _unknown(
    place: Place, path: str, names: Iterable[str], schema: StructType
) -> Iterator[Problem]:
    for name in names:
        if name not in schema.names:
            hint = did_you_mean(name, schema.names)
            message = f"the table has no column `{name}`"
            yield Problem("unknown-column", message, replace(place, path=path), hint)
