"""Detection over a history in Spark: `tidegate.detect` of a DataFrame."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.engine.core.types.spark import arrow_schema
from tidegate.engine.detect import table
from tidegate.engine.detect.events.occurrences.occurrence_table import micros, wrong
from tidegate.engine.detect.keyed_history import Facts, KeyedHistory
from tidegate.rules.model import Rulebook

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def detect(
    rulebook: str | os.PathLike[str] | Rulebook, occurrences: Any, id: str | None = None
) -> Any:
    """Every detection of every enabled rule over a history: an Arrow table, or a Spark DataFrame,
    of any size. No store is needed, and no action runs.

    `rulebook`: a path, YAML text or a `Rulebook`. `occurrences`, in any order: `event` (string),
    `time` (int64 microseconds since the epoch, or a timestamp) and the parameters as columns. `id`:
    the column that tells rows apart, which a DataFrame needs. Rules are active from the first
    occurrence on. A transaction at T is two occurrences: its beginning at T - 1 us and its end,
    which its plain name means too, at T + 1 us. Scripts run too; what they emit stands in `ticks`,
    for it is in no row.

    Returns what it was given: a table or a DataFrame of `rule`, the key columns of all rules,
    `start`, `end` (timestamp[us, UTC]), `constituents` (list of the values of `id`; without it,
    row numbers in the table) and `ticks` (list<struct<event, time>>). The table is ordered by end,
    rule, key, start, constituents; a DataFrame has no order.

    Of a DataFrame, rules with a key are detected in executors, part by part, when the result is
    read. Before that, event types are counted, in one job. Other rules are detected here, and so
    are those that `explain` says are the driver's: of the event types that these look at, and of
    those without a key that others do, at most `driver_rows_max` rows are collected.

    Raises `InputError` for a rulebook or occurrences that are wrong, and for more rows than may be
    collected.
    """
    if not hasattr(occurrences, "sparkSession"):
        return table.detect(rulebook, occurrences, id)
    if id is None:
        hint = "detect(rulebook, frame, id='column'): constituents refer to its values"
        raise wrong("no-id", "rows of a DataFrame have no numbers, and `id` is not given", hint)
    return _of_frame(table.read_rulebook(rulebook), occurrences, id)


def _of_frame(book: Rulebook, frame: DataFrame, id: str) -> DataFrame:
    from tidegate.connectors.delta import history_frames as frames
    from tidegate.connectors.delta.catalog import spark_schema

    if missing := {"event", "time"} - {*frame.columns}:
        raise wrong("no-column", f"occurrences lack the column {min(missing)}")
    schema = arrow_schema(frame.schema.json())
    if not pa.types.is_string(kind := schema.field("event").type):
        raise wrong("event-type", f"column event is {kind}, not string")
    session = frame.sparkSession
    facts = _facts(frames.counted(frame))
    cores = session.sparkContext.defaultParallelism
    history = KeyedHistory(book, facts, schema, id, cores)
    sent = frozenset[str]().union(*history.sent)
    _check_rows(history, facts, sent, book.settings.driver_rows_max)
    found = []
    if history.sent:
        rows = frames.rows_of(frame, sent) if sent else None
        parts = len(history.sent) * history.parts
        step = history.part(rows)
        found.append(
            frames.by_part(frame, history.keys, history.places(), step, parts, history.schema)
        )
    if history.reasons or not found:
        here = history.detected_here(frames.rows_of(frame, history.here))
        found.append(session.createDataFrame(here, spark_schema(history.schema)))
    return found[0] if len(found) == 1 else found[0].unionAll(found[1])


def _facts(counted: pa.Table) -> Facts:
    """What is known of the rows. Raises `InputError`."""
    if sum(counted.column("lacking").to_pylist()):
        raise wrong("null", "event and time of an occurrence cannot be null")
    events = counted.column("event").to_pylist()
    first, last = (micros(counted.column(name)).tolist() for name in ("first", "last"))
    counts = dict(zip(events, counted.column("rows").to_pylist(), strict=True))
    return Facts(counts, dict(zip(events, first, strict=True)), max(last, default=0))


def _check_rows(history: KeyedHistory, facts: Facts, sent: frozenset[str], most: int) -> None:
    for events, why in ((history.here, _why(history)), (sent, "they have no key, and others do")):
        rows = sum(facts.counts[event] for event in events)
        if rows > most:
            message = (
                f"{rows:,} rows of {', '.join(sorted(events))} would be collected, at most"
                f" {most:,} are (setting driver_rows_max): {why}"
            )
            hint = "give these rules a key, disable them, or raise driver_rows_max"
            raise wrong("too-many-rows", message, hint)


def _why(history: KeyedHistory) -> str:
    return "; ".join(f"{rule}: {why}" for rule, why in history.reasons.items())
