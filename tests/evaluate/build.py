"""Rules, detections and a fake analyst, built as values."""

# ruff: noqa: ARG002
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from tidegate.engine.ids import column_set
from tidegate.engine.parameters import parameter_schema
from tidegate.engine.values import Batch, Detections, Reading
from tidegate.rules.errors import Place
from tidegate.rules.model import (
    Change,
    Condition,
    Context,
    EventType,
    Rule,
    Rulebook,
    SignalAction,
    SignalEvent,
    Sql,
    Table,
    TableEvent,
)
from tidegate.rules.parser import parse

HERE = Place("bank.yaml", 3, 5)
MOVES = pa.schema(
    [
        ("id", pa.int64()),
        ("account", pa.int64()),
        ("amount", pa.decimal128(12, 2)),
        ("kind", pa.string()),
    ]
)
ACCOUNTS = pa.schema([("account", pa.int32()), ("amount", pa.int32()), ("owner", pa.string())])
TABLES: Mapping[str, pa.Schema] = {"moves": MOVES, "accounts": ACCOUNTS}


def table_event(name: str, table: str, change: str = "insert", **options: Any) -> TableEvent:
    return TableEvent(name, HERE, Change(change), table, **options)


EVENTS: Sequence[EventType] = (
    table_event("moved", "moves"),
    table_event("changed", "accounts", "update"),
    SignalEvent("noticed", HERE, {"account": "bigint", "note": "string"}),
)


def rule(
    on: str, *, name: str = "r", per: Mapping[str, Sequence[str]] | None = None, **more: Any
) -> Rule:
    """`per` is by event type; the key is named after the first entry."""
    columns = {event: tuple(names) for event, names in (per or {}).items()}
    keys = next(iter(columns.values()), ())
    return Rule(
        name, HERE, parse(on, HERE), on, Context.RESTRICTED, key_names=keys, per=columns, **more
    )


def rulebook(*rules: Rule, events: Sequence[EventType] = EVENTS, **more: Any) -> Rulebook:
    tables = {
        "moves": Table("moves", HERE, path="/lake/moves", key=("id",)),
        "accounts": Table("accounts", HERE, path="/lake/accounts", key=("account",)),
    }
    return Rulebook(
        "bank",
        None,
        "",
        "UTC",
        tables,
        {e.name: e for e in events},
        {r.name: r for r in rules},
        **more,
    )


class FakeAnalyst:
    """Takes every text for a list of the columns that it reads."""

    def action(
        self,
        rule: Rule,
        action: Sql,
        event: pa.Schema,
        parameters: Sequence[str],
        *,
        resolve: bool = True,
    ) -> Reading:
        return Reading(frozenset(action.text.split()), target="alerts")

    def condition(
        self, rule: Rule, event: pa.Schema, per_firing: Sequence[str], *, resolve: bool = True
    ) -> Reading:
        assert rule.condition is not None
        return Reading(frozenset(rule.condition.text.split()))

    def fields(
        self,
        rule: Rule,
        action: SignalAction,
        event: pa.Schema,
        per_firing: Sequence[str],
        types: Mapping[str, str],
    ) -> Reading:
        return Reading(frozenset(action.fields.values()))


def sql(text: str) -> Sql:
    return Sql(text, HERE)


def condition(text: str, *, query: bool = False) -> Condition:
    return Condition(text, query, HERE)


def batch(
    book: Rulebook,
    event: str,
    rows: Sequence[Mapping[str, Any]],
    times: Sequence[int],
    *,
    depth: Sequence[int] | None = None,
    sets: Sequence[Sequence[str]] = ((),),
) -> Batch:
    """Occurrences in order of time; each id is made of the time alone."""
    table = pa.Table.from_pylist(list(rows), schema=parameter_schema(book, event, TABLES))
    ids = np.stack(
        [np.array(times, np.uint64), np.full(len(times), crc32(event.encode()), np.uint64)], 1
    )
    return Batch(
        event,
        np.array(times, np.int64),
        np.arange(len(times)),
        table,
        {column_set(columns): ids for columns in sets},
        None if depth is None else np.array(depth, np.int32),
    )


def detections(
    of: Rule,
    batches: Sequence[Batch],
    found: Sequence[Sequence[tuple[str, int]]],
    *,
    keys: pa.Table | None = None,
    labels: Sequence[str] = (),
    label: Sequence[int] | None = None,
    times: Sequence[tuple[int, int]] = (),
    spans: Mapping[str, Any] | None = None,
) -> Detections:
    """One detection for each list of (event type, occurrence); `times` where it has none."""
    events = tuple(b.event for b in batches)
    by_name = {b.event: b for b in batches}
    entries = [entry for one in found for entry in one]
    at = [
        [int(by_name[event].time[row]) for event, row in one] or list(times[n])
        for n, one in enumerate(found)
    ]
    return Detections(
        of.name,
        keys if keys is not None else pa.table({}),
        np.array([min(one) for one in at], np.int64),
        np.array([max(one) for one in at], np.int64),
        np.cumsum([0, *map(len, found)]).astype(np.int64),
        events,
        np.array([events.index(event) for event, _ in entries], np.int16),
        np.array([row for _, row in entries], np.int64),
        by_name,
        tuple(labels),
        None if label is None else np.array(label, np.int16),
        spans or {},
    )
