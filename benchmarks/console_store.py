"""A large store for the console: 1,000 rules, buckets of a month, `RULES_FIRED` rules in each,
`FIRED` firings of each of these, by ids of their own; hours, sizes, signals, commits and requests
of the same month; entries that are done, pending, held and dead.

It is made once, in SQLite, by rows that are inserted past the engine; `copy` brings it to
PostgreSQL.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import numpy as np
import psycopg
import pyarrow as pa
import sqlalchemy as sa
from psycopg import sql

from tidegate.engine.core.columns.ids import as_binary, as_hex
from tidegate.engine.core.keeping import DAY_MICROS, Keeping
from tidegate.engine.core.values import Firings, UInt64
from tidegate.engine.store import SqlStore, id_runs, open_store
from tidegate.engine.store import tables as t
from tidegate.engine.store.blobs import ID_BYTES, firings_to_columns
from tidegate.engine.store.hours import HOUR_MICROS, hour_of

RULES = 1_000
RULES_FIRED, FIRED = 20, 50  # in a bucket, of each of them
SIGNALS = 100  # in a bucket, of which several firings may be
TABLES, EVENTS = 10, 10
SECOND, MONTH = 1_000_000, 30 * DAY_MICROS
LEFT = 1_000  # entries that are not done
NAME = "bench"
_UTC = pa.timestamp("us", "UTC")
_FIELDS: Sequence[Mapping[str, Any]] = [
    {"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("id", "k")
]
_COUNTS = ("row_count", "detection_count", "firing_count", "entry_count", "rejected_count")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Made:
    """What a store holds. `times`: when each bucket was planned, microseconds."""

    times: Sequence[int]

    def firing(self, bucket: int, place: int) -> str:
        """The id of the first firing of a bucket's rule with this ordinal."""
        one: str = as_hex(_ids(bucket)[place * FIRED : place * FIRED + 1])[0].as_py()
        return one

    def end(self, bucket: int) -> int:
        """When the firings of a bucket ended, microseconds."""
        return self.times[bucket - 1] - SECOND


def rule_of(bucket: int, place: int) -> str:
    """The rule with this ordinal in a bucket: they fire in turn."""
    return f"r{(bucket * RULES_FIRED + place) % RULES}"


def book() -> str:
    """The rulebook."""
    lines = [
        f"rulebook: {NAME}",
        "tables:",
        *(f"  t{n}: {{path: /bench/t{n}, key: [id]}}" for n in range(TABLES)),
        "  log: {path: /bench/log}",
        "events:",
        *(f"  e{n}: {{on: insert, table: t{n}}}" for n in range(TABLES)),
        *(f"  s{n}: {{signal: {{k: bigint}}}}" for n in range(EVENTS)),
        '  hourly: {cron: "0 * * * *"}',
        "rules:",
    ]
    for n in range(RULES):
        on = f"e{n % TABLES} ; s{n % EVENTS} within 1 h"
        do = "[{sql: INSERT INTO log SELECT k FROM event}]"
        lines.append(f"  r{n}: {{on: {on}, per: k, context: chronicle, do: {do}}}")
    lines.append("  each_hour: {on: hourly}")
    return "\n".join([*lines, ""])


def build(file: Path, count: int) -> Made:
    """An SQLite store of so many firings."""
    with open_store(f"sqlite:///{file}", create=True) as store:
        store.of(NAME).versions.register(book(), None)
        epoch = store.of(NAME).lease.acquire("m1-1/7/1-a", 3_600)
        kept = [Keeping(f"t{n}", 30 * DAY_MICROS, 7 * DAY_MICROS) for n in range(TABLES)]
        store.of(NAME, epoch).keepings.tell(kept)
        buckets, now = max(1, count // (RULES_FIRED * FIRED)), store.wall()
        made = Made([now - MONTH + (n + 1) * MONTH // buckets for n in range(buckets)])
        for table, rows in _tables(made.times, now):
            _insert(store, table, rows)
        with store.database.write() as connection:
            for level, first, last in _runs(buckets):
                ids = np.concatenate([_ids(bucket) for bucket in range(first, last + 1)])
                places = np.empty(len(ids), id_runs.PLACE)
                places["bucket"] = np.repeat(np.arange(first, last + 1), RULES_FIRED * FIRED)
                each = np.repeat(np.arange(RULES_FIRED), FIRED)
                places["ordinal"] = np.tile(each, last + 1 - first)
                data = np.frombuffer(ids.astype(">u8").tobytes(), f"S{ID_BYTES}")
                id_runs.write(connection, NAME, (first, last), level, [data], places.take)
    return made


def copy(file: Path, url: str) -> None:
    """Make a store on PostgreSQL with all that an SQLite store holds, but for its own id."""
    with open_store(url, create=True) as store, store.database.write() as connection:
        of_sqlite = sqlite3.connect(file)
        raw = cast(psycopg.Connection[Any], connection.connection.driver_connection)
        for table in t.metadata.sorted_tables:
            if table is t.meta:
                continue
            names = [column.name for column in table.c]
            form = sql.SQL("COPY {} ({}) FROM STDIN")
            columns = sql.SQL(", ").join(map(sql.Identifier, names))
            rows = of_sqlite.execute(str(sa.select(table).compile(dialect=_SQLITE)))
            with raw.cursor() as cursor:
                command = form.format(sql.Identifier(table.name), columns)
                with cursor.copy(command) as copied:
                    for row in rows:
                        copied.write_row(row)
        of_sqlite.close()
        connection.execute(sa.text("ANALYZE"))


_SQLITE = sa.create_engine("sqlite://").dialect


def _runs(buckets: int) -> Iterator[tuple[int, int, int]]:
    """The runs of ids that so many buckets leave: the level, the first and the last bucket."""
    level, first = 0, 1
    while id_runs.FAN_OUT ** (level + 1) <= buckets:
        level += 1
    while level >= 0:
        size = id_runs.FAN_OUT**level
        while first + size - 1 <= buckets:
            yield level, first, first + size - 1
            first += size
        level -= 1


def _insert(store: SqlStore, table: sa.Table, rows: Iterator[Mapping[str, Any]]) -> None:
    """Rows that name the same columns. The driver takes them: SQLAlchemy would look at each."""
    first = next(rows)
    names = ["rulebook", *first]
    with store.database.write() as connection:
        statement = sa.insert(table).compile(dialect=connection.dialect, column_keys=names)
        ordered = itemgetter(*(cast(Any, statement).positiontup))
        values = (ordered({"rulebook": NAME, **row}) for row in chain([first], rows))
        raw = cast(sqlite3.Connection, connection.connection.driver_connection)
        raw.executemany(str(statement), values)


def _tables(times: Sequence[int], now: int) -> Iterator[tuple[sa.Table, Iterator[Row]]]:
    buckets = len(times)
    hours = range(hour_of(now - MONTH), now, HOUR_MICROS)
    names = sorted(f"r{n}" for n in range(RULES))
    counts = {"fired": 7, "condition_failed": 2, "damped": 1, "dead": 0}
    yield t.buckets, (_bucket(n, times) for n in range(1, buckets + 1))
    yield t.firings, _firings(times)
    yield t.totals, iter([{**dict.fromkeys(_COUNTS, buckets), "adjusted_commits": 3}])
    yield (
        t.rule_totals,
        ({"rule": r, "firing_count": 1_000, "fired": 700, "condition_failed": 200,
          "last_fired_at": now} for r in names),
    )  # fmt: skip
    yield t.rule_hours, ({"hour": h, "rule": r, **counts} for h in hours for r in names)
    sizes = {"instances": 40, "keys": 9}
    yield t.rule_sizes, ({"hour": h, "rule": r, **sizes} for h in hours for r in names[::2])
    carries = {"carried_instances": 40, "carried_keys": 9, "digest": "d"}
    yield t.activations, ({"rule": r, "instant": now - MONTH, **carries} for r in names)
    yield t.damped_totals, ({"rule": r, "kind": "cooldown", "firing_count": 100} for r in names)
    schema = json.dumps({"type": "struct", "fields": _FIELDS})
    yield (
        t.cursors,
        ({"table_name": f"t{n}", "table_id": "i", "version": buckets, "instant": times[-1] - SECOND,
          "schema": schema} for n in range(TABLES)),
    )  # fmt: skip
    yield (
        t.commits,
        ({"table_name": f"t{n}", "instant": at - SECOND, "version": v, "bucket": v,
          "logged": at - 2 * SECOND if n == 0 and v > buckets - 3 else None}
         for v, at in enumerate(times, 1) for n in range(TABLES)),
    )  # fmt: skip
    yield t.signals, (_signal(n, times) for n in range(SIGNALS * buckets))
    yield t.outbox, (_entry(n, times) for n in range(1, RULES_FIRED * buckets + 1))
    yield (
        t.rejected,
        ({"bucket": n, "ordinal": m, "event": "e1", "source": "t1", "reason": "time is null",
          "fields": "{}"} for n in range(1, buckets + 1) for m in range(10)),
    )  # fmt: skip
    yield (
        t.controls,
        ({"kind": "redrive", "subject": f"{1 + n % (RULES_FIRED * buckets)}",
          "asked_at": times[n % buckets], "bucket": 1 + n % buckets, "asked_by": f"user{n % 7}@m1"}
         for n in range(10 * buckets)),
    )  # fmt: skip
    parts = (f"node:d{n}/{m}" for n in range(RULES) for m in range(4))
    empty = {"arrow": b"", "due": None, "timers": 0, "row_count": 10}
    yield t.carried, ({"name": name, **empty} for name in parts)


def _bucket(number: int, times: Sequence[int]) -> Row:
    at = times[number - 1]
    before = times[number - 2] if number > 1 else at - SECOND
    active = {f"r{n}": before - SECOND for n in range(RULES)} if number == 1 else {}
    return {
        "bucket": number,
        "watermark_before": before - SECOND,
        "watermark": at - SECOND,
        "now": at,
        "adjusted_commits": 0,
        "plan": json.dumps({"activations": active, "ranges": []}),
        "version": 1,
        **dict.fromkeys(_COUNTS[:-1], RULES_FIRED * FIRED),
        "rejected_count": 10,
        **{f"seconds_{stage}": 0.1 for stage in t.STAGES},
    }


def _ids(bucket: int) -> UInt64:
    """The ids of the firings of a bucket, by rule and key."""
    draw = np.random.default_rng(bucket)
    return draw.integers(0, 2**64, (RULES_FIRED * FIRED, 2), np.uint64)


def _firings(times: Sequence[int]) -> Iterator[Row]:
    for bucket, at in enumerate(times, 1):
        ids = _ids(bucket)
        fired, hexes = _fired(bucket, ids, at - SECOND), as_hex(ids)
        for place in range(RULES_FIRED):
            first = place * FIRED
            yield {
                "bucket": bucket,
                "rule": rule_of(bucket, place),
                "ordinal": place,
                "firing_count": FIRED,
                "first_detected_at": at - SECOND,
                "last_detected_at": at - SECOND,
                "first_id": hexes[first].as_py(),
                "last_id": hexes[first + FIRED - 1].as_py(),
                **firings_to_columns(_of_rule(fired, place)),
            }


def _of_rule(fired: Firings, place: int) -> Firings:
    """The firings of one rule: each has two rows."""
    assert fired.sources is not None
    rows = 2 * place * FIRED, 2 * FIRED
    firings = fired.firings.slice(place * FIRED, FIRED)
    return Firings("r", firings, fired.rows.slice(*rows), fired.sources.slice(*rows))


def _fired(bucket: int, ids: UInt64, end: int) -> Firings:
    """The firings of a bucket, of all of its rules: each of a row and a signal."""
    count = len(ids)
    ends = pa.array(np.full(count, end)).cast(_UTC)
    keys, kinds = np.tile(np.arange(FIRED), RULES_FIRED), np.arange(count) // FIRED % EVENTS
    columns = {
        "firing_id": as_binary(ids),
        "k": pa.array(keys),
        "started_at": ends,
        "detected_at": ends,
        "depth": pa.array(np.ones(count, np.int32)),
        "condition": pa.array(["none"] * count),
        "constituents": pa.array(np.full(count, 2, np.int32)),
    }
    twice = pa.array(np.repeat(np.arange(count), 2))
    events = [name for kind in kinds.tolist() for name in (f"e{kind}", f"s{kind}")]
    relation = {
        "firing_id": as_hex(ids).take(twice),
        "event_type": pa.array(events),
        "label": pa.nulls(2 * count, pa.string()),
        "occurred_at": ends.take(twice),
        "started_at": ends.take(twice),
        "detected_at": ends.take(twice),
        "k": pa.array(np.repeat(keys, 2)),
    }
    numbers = (keys * EVENTS + kinds) % SIGNALS + (bucket - 1) * SIGNALS
    signals = [name for number in numbers.tolist() for name in (None, f"client/k{number}")]
    versions = pa.array([bucket, None] * count, pa.int64())
    sources = {"version": versions, "signal": pa.array(signals, pa.string())}
    return Firings("r", pa.table(columns), pa.table(relation), pa.table(sources))


def _signal(number: int, times: Sequence[int]) -> Row:
    bucket, of_bucket = divmod(number, SIGNALS)
    return {
        "namespace": "client",
        "id": f"k{number}",
        "event": f"s{of_bucket % EVENTS}",
        "fields": json.dumps({"k": of_bucket // EVENTS}),
        "received_at": times[bucket] - 2 * SECOND,
        "depth": 0,
        "instant": times[bucket] - SECOND,
        "bucket": bucket + 1,
    }


def _entry(number: int, times: Sequence[int]) -> Row:
    """Done, but for the `LEFT` last ones: pending, held, dead in turn."""
    before, place = divmod(number - 1, RULES_FIRED)
    left = len(times) * RULES_FIRED - number < LEFT
    state = ("pending", "held", "dead")[number % 3] if left else "done"
    return {
        "number": number,
        "bucket": before + 1,
        "rule": rule_of(before + 1, place),
        "kind": "sql",
        "text": "INSERT INTO log SELECT k FROM event",
        "target": "log",
        "position": number,
        "depth": 1,
        "state": state,
        "attempts": 3,
        "error": None if state == "done" else "PERMISSION_DENIED",
        "target_version": number,
        "effect_version": number if state == "done" else None,
        "rows_written": FIRED if state == "done" else None,
        "place": number,
        "stored_at": times[before],
        "begun_at": times[before] + SECOND,
        "settled_at": times[before] + 2 * SECOND,
    }
