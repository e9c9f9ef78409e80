"""Stored firings as `firings --json` prints them (language.md 3)."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from engine.moments import python_values
from engine.store import plain
from engine.store import tables as t
from engine.store.blobs import ID_BYTES, ids_from_bytes, table_from_bytes
from engine.store.database import Database
from engine.values import Firings

_CHUNK_ROWS = 5_000
_ENGINE_COLUMNS = frozenset(
    {"firing_id", "event_type", "label", "occurred_at", "started_at", "detected_at"}
)


@dataclass(frozen=True, slots=True)
class _Entry:
    """An outbox entry as it is shown, and the firings that it is for: None = all that held."""

    firing_ids: frozenset[str] | None
    shows: dict[str, Any]


def list_firings(
    database: Database, rulebook: str, rule: str | None, since: int | None, limit: int | None
) -> Iterator[dict[str, Any]]:
    """The firings of a rulebook, ordered by end, rule, key, start; a bucket's are in memory at a
    time. `since`: ends from this instant on, microseconds; `limit`: the newest so many."""
    found = (
        firing
        for bucket, rules in _buckets(database, rulebook, rule, since, limit)
        for firing in _of_bucket(database, rulebook, bucket, rules, since, limit)
    )
    return found if limit is None else iter(deque(found, maxlen=limit))


def find_firing(connection: sa.Connection, rulebook: str, firing_id: str) -> tuple[int, str] | None:
    """The (bucket, rule) of a firing, None if the store has it not (any more)."""
    wanted = bytes.fromhex(firing_id)
    c = t.firings.c
    sqlite = connection.dialect.name == "sqlite"
    at = sa.func.instr(c.ids, wanted) if sqlite else sa.func.pg_catalog.position(c.ids, wanted)
    query = sa.select(c.bucket, c.rule, c.ids).where(c.rulebook == rulebook, at > 0)
    for row in connection.execute(query):
        found = row.ids.find(wanted)
        while found > 0 and found % ID_BYTES:  # it lies across two ids
            found = row.ids.find(wanted, found + 1)
        if found >= 0:
            return row.bucket, row.rule
    return None


def _buckets(
    database: Database, rulebook: str, rule: str | None, since: int | None, limit: int | None
) -> Sequence[tuple[int, list[str]]]:
    """The buckets to look into, oldest first, with their rules."""
    c, b = t.firings.c, t.buckets.c
    query = sa.select(c.bucket, c.rule, c.firing_count).where(c.rulebook == rulebook)
    if rule is not None:
        query = query.where(c.rule == rule)
    if since is not None:
        query = query.join(t.buckets).where(b.watermark >= since)
    found: dict[int, list[str]] = {}
    count = 0
    with database.read() as connection:
        for row in connection.execute(query.order_by(c.bucket.desc())):
            if row.bucket not in found and limit is not None and count >= limit:
                break
            found.setdefault(row.bucket, []).append(row.rule)
            count += row.firing_count
    return sorted(found.items())


def _of_bucket(
    database: Database,
    rulebook: str,
    bucket: int,
    rules: Sequence[str],
    since: int | None,
    limit: int | None,
) -> Iterator[dict[str, Any]]:
    with database.read() as connection:
        payloads = _payloads(connection, rulebook, bucket, rules)
        entries = _entries(connection, rulebook, bucket)
    streams = [
        _of_rule(bucket, firings, entries.get(firings.rule, []), since, limit)
        for firings in payloads
    ]
    merged = heapq.merge(*streams, key=lambda timed: (timed[0], timed[1]["rule"]))
    return (firing for _, firing in merged)


def _payloads(
    connection: sa.Connection, rulebook: str, bucket: int, rules: Sequence[str]
) -> list[Firings]:
    c = t.firings.c
    query = sa.select(c.rule, c.firings, c.relation).where(
        c.rulebook == rulebook, c.bucket == bucket, c.rule.in_(rules)
    )
    return [
        Firings(row.rule, table_from_bytes(row.firings), table_from_bytes(row.relation))
        for row in connection.execute(query)
    ]


def _entries(connection: sa.Connection, rulebook: str, bucket: int) -> dict[str, list[_Entry]]:
    c = t.outbox.c
    query = sa.select(c.rule, c.firing_ids, c.number, c.state, c.attempts, c.error)
    query = query.where(c.rulebook == rulebook, c.bucket == bucket).order_by(c.number)
    found: dict[str, list[_Entry]] = {}
    for row in connection.execute(query):
        ids = None if row.firing_ids is None else frozenset(ids_from_bytes(row.firing_ids))
        shows = {name: row._mapping[name] for name in ("number", "state", "attempts", "error")}
        found.setdefault(row.rule, []).append(_Entry(ids, shows))
    return found


def _of_rule(
    bucket: int,
    fired: Firings,
    entries: Sequence[_Entry],
    since: int | None,
    limit: int | None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(end, firing) in detection order, the last `limit` of them."""
    for_all = [entry.shows for entry in entries if entry.firing_ids is None]
    for_some: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        for firing_id in entry.firing_ids or ():
            for_some.setdefault(firing_id, []).append(entry.shows)
    for chunk, constituents in _chunks(fired, limit):
        keys = _objects(chunk.select(fired.key_names))
        ends = chunk["detected_at"].cast(pa.int64()).to_pylist()
        starts = chunk["started_at"].cast(pa.int64()).to_pylist()
        ids = [found.hex() for found in chunk["firing_id"].to_pylist()]
        conditions = chunk["condition"].to_pylist()
        depths = chunk["depth"].to_pylist()
        for n, end in enumerate(ends):
            if since is not None and end < since:
                continue
            own = [*(for_all if conditions[n] != "failed" else ()), *for_some.get(ids[n], ())]
            yield (
                end,
                {
                    "rule": fired.rule,
                    "key": keys[n],
                    "start": plain.instant(starts[n]),
                    "end": plain.instant(end),
                    "constituents": constituents[n],
                    "firing_id": ids[n],
                    "bucket": bucket,
                    "condition": conditions[n],
                    "depth": depths[n],
                    "entries": sorted(own, key=lambda shows: shows["number"]),
                },
            )


def _chunks(
    fired: Firings, limit: int | None
) -> Iterator[tuple[pa.Table, list[list[dict[str, Any]]]]]:
    """Some firings at a time, with the constituents of each as they are printed."""
    groups = pc.run_end_encode(fired.relation["firing_id"].combine_chunks())
    ends = np.concatenate([[0], np.asarray(groups.run_ends)])
    skipped = 0 if limit is None else max(0, len(fired) - limit)
    for first in range(skipped, len(fired), _CHUNK_ROWS):
        chunk = fired.firings.slice(first, _CHUNK_ROWS)
        bounds = ends[first : first + len(chunk) + 1]
        rows = _constituents(fired.relation.slice(bounds[0], bounds[-1] - bounds[0]))
        yield (
            chunk,
            [
                [row for row in rows[start:end] if row["event"] is not None]
                for start, end in zip(bounds - bounds[0], bounds[1:] - bounds[0], strict=False)
            ],
        )


def _constituents(relation: pa.Table) -> list[dict[str, Any]]:
    """Rows as constituents; parameters that are null are those of other event types."""
    labels = [label for label in pc.unique(relation["label"]).to_pylist() if label is not None]
    spans = {f"{label}_{side}" for label in labels for side in ("start", "end")}
    names = [n for n in relation.column_names if n not in _ENGINE_COLUMNS and n not in spans]
    events = relation["event_type"].to_pylist()
    times = relation["occurred_at"].cast(pa.int64()).to_pylist()
    parameters = _objects(relation.select(names))
    return [
        {
            "event": event,
            "time": plain.instant(time),
            **{name: found for name, found in row.items() if found is not None},
        }
        for event, time, row in zip(events, times, parameters, strict=True)
    ]


def _objects(table: pa.Table) -> list[Mapping[str, Any]]:
    """Rows as they are printed."""
    columns = {
        name: [plain.value(found) for found in python_values(table[name])]
        for name in table.column_names
    }
    return [{name: column[n] for name, column in columns.items()} for n in range(table.num_rows)]
