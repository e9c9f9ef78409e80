"""Detection over a table, without an engine: `tidegate.detect`."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from tidegate import rules
from tidegate.engine.core.clocks import clock_batches
from tidegate.engine.core.event_names import action_edges, beginning, begun, edge_micros, with_edges
from tidegate.engine.core.policy import load_policy
from tidegate.engine.core.types.common import rounded
from tidegate.engine.core.types.spark import arrow_type
from tidegate.engine.core.values import FOREVER, Batch, Carried, Detections
from tidegate.engine.detect.events.occurrences.comparison import incomparable
from tidegate.engine.detect.events.occurrences.occurrence_table import read_occurrences, wrong
from tidegate.engine.detect.events.occurrences.timeline import Timeline, of_batches, of_table
from tidegate.engine.detect.events.step import result
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.stratified_detector import by_stratum
from tidegate.engine.detect.inputs import Taking
from tidegate.engine.detect.pipeline import Pipeline
from tidegate.rules.analysis.key_types import ROUNDED
from tidegate.rules.checks.gaps import SIMULATED
from tidegate.rules.errors import did_you_mean
from tidegate.rules.model import ClockEvent, Rule, Rulebook, ScriptEvent, SignalEvent


def detect(
    rulebook: str | os.PathLike[str] | Rulebook, occurrences: pa.Table, id: str | None = None
) -> pa.Table:
    """Every detection of every enabled rule over a table of occurrences, without Spark or store.

    `rulebook`: a path, YAML text or a `Rulebook`. `occurrences`, in any order: `event` (string or
    dictionary), `time` (int64 microseconds since the epoch, or a timestamp) and the parameters as
    columns. Rules are active from the first occurrence on. A transaction at T is two occurrences:
    its beginning at T - 1 us and its end, which its plain name means too, at T + 1 us. Scripts run
    too; what they emit stands in `ticks`, for it is in no row.

    Returns `rule`, the key columns of all rules, `start`, `end` (timestamp[us, UTC]),
    `constituents` (list<int64>: row numbers in `occurrences`; or the values of its column `id`) and
    `ticks` (list<struct<event, time>>), ordered by end, rule, key, start, constituents: by their
    values, then by row numbers.

    Raises `InputError` for a rulebook or occurrences that are wrong.
    """
    book = read_rulebook(rulebook)
    log = read_occurrences(occurrences)
    line = of_table(log)
    firsts = line.firsts
    check_history(book, firsts, log.table.schema, id)
    span = span_of(book, firsts, int(log.time[-1]) if len(log) else 0)
    found = detected(book, line, span)
    return result.joined(book, found, log.table, id)


class Span(NamedTuple):
    """A history: when its first occurrence happens and its last one; when rules become active,
    which is when the first begins."""

    activation: int
    first: int
    last: int
    empty: bool


def read_rulebook(rulebook: str | os.PathLike[str] | Rulebook) -> Rulebook:
    """A rulebook that is only to detect. Raises `InputError`."""
    book = rulebook if isinstance(rulebook, Rulebook) else rules.load(rulebook, features=SIMULATED)
    return replace(book, python=load_policy(None).python)


def check_history(
    book: Rulebook, events: Collection[str], schema: pa.Schema, id: str | None
) -> None:
    """Whether a rulebook knows the event types of a history, and finds the columns of its keys, and
    `id`. Raises `InputError`."""
    edges = action_edges(book)
    for event in events:
        if event not in edges:
            _check_event(book, event)
    for rule in with_edges(book, book.rules).rules.values():
        _check_keys(book, rule, events, schema)
    if id is not None and id not in schema.names:
        raise wrong("no-column", f"occurrences lack the column {id}", "`id` names one of theirs")


def span_of(book: Rulebook, firsts: Mapping[str, int], last: int) -> Span:
    """The span of a history. `firsts`: when the first of each event type happens."""
    first = min(firsts.values(), default=0)
    begins = (firsts[e] - edge_micros(book, e) for e in begun(book) if e in firsts)
    return Span(min([first, *begins]), first, last, not firsts)


def detected(
    book: Rulebook, line: Timeline, span: Span, only: Collection[str] | None = None
) -> list[pa.Table]:
    """What rules of `book`, all or `only` these, detect in a part of a history, or in all of it: a
    table for each rule that has detections (`result.of_rule`). After the last occurrence scripts go
    on, as in `simulate`."""
    table = line.log.table if line.log else pa.table({})
    line = _with_clock_batches(book, line, span)
    starts = dict.fromkeys([*book.scripts, *book.rules], span.activation)

    def make(rules: Collection[str] | None) -> Detector:
        return Detector(book, starts, only=rules)

    if not any(script.enabled for script in book.scripts.values()):
        found, _, _ = make(only).step(Carried(), line, FOREVER, span.last)
        return [result.of_rule(d, table) for d in found]
    batches = {event: line.batch(event) for event in line.counts}
    rules_of, every = by_stratum(book, make, only), list[Detections]()

    def detect(stratum: int, shown: Mapping[str, Batch]) -> Sequence[Detections]:
        own = rules_of[stratum]
        made, _, _ = own.detector.step(
            Carried(), of_batches({**batches, **shown}), FOREVER, span.last
        )
        found = own.some(made)
        every.extend(found)
        return found

    end = max([span.last, *(int(batch.time[-1]) for batch in batches.values())])
    Pipeline(book, starts, Taking(book)).history(batches, end, detect)
    return [result.of_rule(d, table) for d in every]


def _with_clock_batches(book: Rulebook, line: Timeline, span: Span) -> Timeline:
    """The occurrences of the table, and of the clocks that rules name. One of a transaction gives
    its beginning and its end."""
    clocks = {} if span.empty else clock_batches(book, span.first, span.last)
    if not clocks and not any(edge_micros(book, event) for event in line.counts):
        return line
    batches = {event: line.batch(event) for event in line.counts} | clocks
    for event in line.counts:
        batch, edge = batches[event], edge_micros(book, event)
        batches[event] = replace(batch, time=batch.time + edge)
        if event in begun(book):
            batches[beginning(event)] = replace(batch, time=batch.time - edge)
    return of_batches(batches)


def _check_keys(rulebook: Rulebook, rule: Rule, events: Collection[str], schema: pa.Schema) -> None:
    """Whether the occurrences have the columns that are the rule's key, of types that compare."""
    for number, key in enumerate(rule.pattern.key_names if rule.enabled else ()):
        if key in result.COLUMNS:
            message = f"key {key} of rule {rule.name} is called as a column of what is returned"
            hint = f"rename the column; {', '.join(result.COLUMNS)} are taken"
            raise wrong("key-name", message, hint)
        columns = {e: names[number] for e, names in rule.pattern.per.items() if e in events}
        for event, name in columns.items():
            if name not in schema.names:
                message = f"occurrences of {event} lack the column {name}, a key of {rule.name}"
                raise wrong("no-column", message, f"add {name}; it may be null")
        kinds = [schema.field(name).type for name in columns.values()]
        if reason := incomparable(kinds) or (ROUNDED if rounded(kinds) else None):
            listed = ", ".join(
                f"{name} of {event} ({schema.field(name).type})" for event, name in columns.items()
            )
            message = f"key {key} of rule {rule.name} cannot be compared: {listed}"
            raise wrong("key-type", message, f"{reason}; give these columns one type")
        for event, name in columns.items():
            _check_declared(rulebook, event, name, schema.field(name).type)


def _check_declared(book: Rulebook, event: str, name: str, kind: pa.DataType) -> None:
    """Whether a key of a signal is of the type that is declared, as `signal` takes it."""
    declared = book.events.get(event)
    wanted = declared.fields.get(name) if isinstance(declared, SignalEvent) else None
    if wanted is not None and incomparable([kind, arrow_type(wanted)]):
        message = f"{name} of {event} is {kind}, and declared as {wanted}"
        raise wrong("key-type", message, f"give the column {name} the type {wanted}")


def _check_event(book: Rulebook, event: str) -> None:
    if event in book.events and not isinstance(book.events[event], ClockEvent | ScriptEvent):
        return
    if event in book.events or event in book.rules:
        raise wrong("not-an-occurrence", f"{event} cannot be given as an occurrence")
    raise wrong("unknown-event", f"unknown event {event!r}", did_you_mean(event, book.events))
