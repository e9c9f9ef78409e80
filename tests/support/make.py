"""Plans, firings, entries and signals as values; small buckets committed to a store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.engine.core.columns.ids import as_binary, as_hex
from tidegate.engine.core.entries import Entry, Outcome, Progress
from tidegate.engine.core.state import StoredBucket
from tidegate.engine.core.statement import SqlStatement, decode, encode
from tidegate.engine.core.values import Carried, Cursor, Firings, Plan, Rejected, Signal, TableRange
from tidegate.engine.store import SqlStore, id_runs, signals

SECOND = 1_000_000
HOUR = 3_600 * SECOND
BEGIN = 1_772_442_000 * SECOND  # 2026-03-02T09:00:00Z
UTC = pa.timestamp("us", "UTC")


def plan(bucket: int = 1, **changes: Any) -> Plan:
    """Bucket n ends n hours after BEGIN."""
    values = {
        "rulebook": "bank",
        "bucket": bucket,
        "watermark_before": BEGIN + (bucket - 1) * HOUR,
        "watermark": BEGIN + bucket * HOUR,
        "now": BEGIN + bucket * HOUR + SECOND,
    }
    return Plan(**{**values, **changes})


def a_range(table: str, first: int, last: int) -> TableRange:
    instants = {version: BEGIN + version * SECOND for version in range(first, last + 1)}
    cursor = Cursor(table, f"id-of-{table}", last, BEGIN + last * SECOND, '{"fields":[]}')
    return TableRange(table, first, last, instants, cursor)


def firings(
    rule: str = "blocked", count: int | None = None, bucket: int = 1, **columns: Any
) -> Firings:
    """As many firings as `columns` say, else two; one a minute from the bucket's begin, of two
    constituents each."""
    if count is None:
        count = len(next(iter(columns.values()), "ab"))
    seed = np.frombuffer(rule.encode().ljust(8)[:8], np.uint64)[0]
    numbers = np.arange(count, dtype=np.uint64)
    ids = np.stack([numbers * np.uint64(0x9E3779B97F4A7C15) + seed, numbers + np.uint64(bucket)], 1)
    ends = BEGIN + (bucket - 1) * HOUR + (np.arange(count) + 1) * 60 * SECOND
    keys = np.arange(count) + 7
    table = {
        "firing_id": as_binary(ids),
        "account_id": pa.array(keys),
        "started_at": pa.array(ends - 30 * SECOND, pa.int64()).cast(UTC),
        "detected_at": pa.array(ends, pa.int64()).cast(UTC),
        "depth": pa.array(np.ones(count, np.int32)),
        "condition": pa.array(["none"] * count),
        "constituents": pa.array(np.full(count, 2, np.int32)),
    }
    twice = pa.array(np.repeat(np.arange(count), 2))
    times = np.stack([ends - 30 * SECOND, ends], 1).ravel()
    relation = {
        "firing_id": as_hex(ids).take(twice),
        "event_type": pa.array(["withdrawal", "transfer"] * count),
        "label": pa.array([None] * 2 * count, pa.string()),
        "occurred_at": pa.array(times, pa.int64()).cast(UTC),
        "started_at": table["started_at"].take(twice),
        "detected_at": table["detected_at"].take(twice),
        "account_id": table["account_id"].take(twice),
        "amount": pa.array([amount for key in keys for amount in (key + 43.5, None)], pa.float64()),
    }
    return Firings(rule, pa.table({**table, **columns}), pa.table(relation))


def hex_ids(fired: Firings) -> list[str]:
    ids: list[str] = fired.hex_ids().to_pylist()
    return ids


def entry(rule: str = "blocked", order: int = 0, **changes: Any) -> Entry:
    """As a bucket makes it: without a number, which the store gives."""
    return altered(Entry(rule, SqlStatement("UPDATE a", "a")), order=order, **changes)


def altered(entry: Entry, **changes: Any) -> Entry:
    """An entry with other values, also those of its progress, turn and statement."""
    said: dict[str, Any] = {
        **{name: getattr(entry.statement, name, None) for name in ("target", "reads", "appends")},
        "kind": entry.kind,
        "text": encode(entry.statement),
        "action": entry.statement.action,
    }
    own = {name: changes.pop(name) for name in said.keys() & changes.keys()}
    said |= own
    if own and said["kind"] in ("signal", "webhook"):
        given = json.loads(own.get("text", "{}"))
        event = {"event": "e"} if said["kind"] == "signal" else {}
        said["text"] = json.dumps({"fields": {}, "types": {}, "group": [], **event, **given})
    if own:
        entry = replace(entry, statement=decode(**said))
    for part in ("progress", "turn"):
        known = {field.name for field in fields(getattr(entry, part))}
        of_part = {name: changes.pop(name) for name in known & changes.keys()}
        entry = replace(entry, **{part: replace(getattr(entry, part), **of_part)})
    return replace(entry, **changes)


def outcome(
    entry: Entry,
    state: str,
    attempts: int,
    error: str | None = None,
    *,
    details: str | None = None,
    fate: str | None = None,
    **others: Any,
) -> Outcome:
    progress = Progress(state=state, attempts=attempts, error=error, details=details, fate=fate)
    return Outcome(entry, progress, **others)


def numbered(number: int, rule: str, **changes: Any) -> Entry:
    """As the store gives it back: `number` says its place in the queue too."""
    app_id = f"tidegate/store/bank/{rule}"
    values = {"number": number, "place": number, "order": number, "bucket": 9, "app_id": app_id}
    return entry(rule, **{**values, "target_version": 0, **changes})


def commit(
    store: SqlStore,
    epoch: int,
    made: Plan,
    *,
    carried: Carried | None = None,
    fired: Sequence[Firings] = (),
    entries: Sequence[Entry] = (),
    rejected: Sequence[Rejected] = (),
    digests: Mapping[str, str] | None = None,
    state_path: str | None = None,
    **more: Any,
) -> tuple[Entry, ...]:
    """`state_path`: the setting."""
    buckets = store.of(made.rulebook, epoch).buckets
    return buckets.commit(
        StoredBucket(
            made,
            carried or Carried(),
            digests or {},
            firings=tuple(fired),
            entries=tuple(entries),
            rejected=tuple(rejected),
            shelf=buckets.shelf(state_path, made.bucket),
            **more,
        ),
    )


def purge(
    store: SqlStore, epoch: int, firings: int = 0, history: int = 0, rows_max: int = 1_000
) -> int:
    """Forget what is older than these instants."""
    return store.of("bank", epoch).retention.purge(firings, history, rows_max)


def signal(id: str = "s1", at: int = BEGIN, **changes: Any) -> Signal:
    values = {"id": id, "event": "atm_empty", "fields": {"atm_id": 4}, "received_at": at}
    return Signal(**{**values, **changes})


def unplaced_by_event(store: SqlStore, rulebook: str) -> Mapping[str, int]:
    """How many signals no bucket has claimed."""
    with store.database.read() as connection:
        return signals.unplaced_by_event(connection, rulebook)


def find_firing(store: SqlStore, rulebook: str, firing_id: str) -> tuple[int, str] | None:
    """The (bucket, rule) of a firing by its hexadecimal id."""
    with store.database.read() as connection:
        return id_runs.find(connection, rulebook, firing_id)


def unplaced(store: SqlStore) -> tuple[Signal, ...]:
    """All that no bucket has claimed."""
    return store.of("bank").signals.unplaced(("atm_empty",), BEGIN, 99).signals
