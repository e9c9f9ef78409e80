"""How soon `why` tells of a firing, with 1,000,000 firings in the store: in this process (0.2 s at
most for 95 of 100), and as a command (1.5 s).

    python -m benchmarks.why [FIRINGS]

The firings are stored bucket by bucket, as an engine does: `FIRED` a rule and bucket. Each second
rule raises a signal, of which a firing of the next rule comes in the next bucket.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from benchmarks.figure import Figure, percentile
from tests.support import postgres
from tidegate.engine.core.columns.ids import as_binary, as_hex
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.state import StoredBucket
from tidegate.engine.core.statement import SignalStatement, SqlStatement
from tidegate.engine.core.values import Carried, Cursor, Firings, Plan, TableRange
from tidegate.engine.replay.why.ask import why
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store import tables as t

SHAPES = ((1_000, 1_000), (10, 100_000))  # rules, firings of each
FIRED = 100  # of a rule in a bucket
ASKED, COMMANDS = 200, 20
IN_PROCESS_SECONDS, COMMAND_SECONDS = 0.2, 1.5
SECOND = 1_000_000
BLOCK = 10_000
_UTC = pa.timestamp("us", "UTC")


def book(rules: int) -> str:
    """A rulebook of so many rules."""
    on = "on: a ; b, per: k, context: chronicle, if: count(*) > 1"
    lines = [
        "rulebook: bench",
        "tables: {t: {path: /t}, log: {path: /log}}",
        "events: {a: {on: insert, table: t}, b: {signal: {k: bigint}}, n: {signal: {k: bigint}}}",
        "rules:",
    ]
    for number in range(rules):
        pays = f"{{{on}, do: [{{signal: n}}, {{sql: INSERT INTO log SELECT k FROM event}}]}}"
        lines.append(f"  r{number}: {pays if number % 2 == 0 else '{on: n}'}")
    return "\n".join([*lines, ""])


def build(url: str, rules: int, firings: int) -> list[str]:
    """A store of so many firings of each rule. Returns some of their ids."""
    draw, some = random.Random(7), list[str]()
    with open_store(url, create=True) as store:
        store.of("bench").versions.register(book(rules), None)
        epoch = store.of("bench").lease.acquire("benchmark", 3_600)
        buckets = store.of("bench", epoch).buckets
        before: dict[int, list[str]] = {}
        for bucket in range(1, firings // FIRED + 1):
            fired, now = [], dict[int, list[str]]()
            for rule in range(rules):
                one = _fired(bucket, rule, before.get(rule - 1))
                fired.append(one)
                now[rule] = one.hex_ids().to_pylist()
                some += draw.sample(now[rule], 1)
            entries = [entry for rule in range(0, rules, 2) for entry in _entries(rule)]
            taken = StoredBucket(
                _plan(bucket), Carried(), {}, firings=tuple(fired), entries=tuple(entries)
            )
            buckets.commit(taken)
            _signals(store, bucket, [i for rule in range(0, rules, 2) for i in now[rule]])
            before = now
        _settle(store)
    return draw.sample(some, min(len(some), 2_000))


def _plan(bucket: int) -> Plan:
    at = bucket * SECOND
    cursor = Cursor("t", "id", bucket, at, '{"fields":[]}')
    ranges = (TableRange("t", bucket, bucket, {bucket: at}, cursor),)
    return Plan("bench", bucket, at - SECOND, at, now=at + 7, ranges=ranges)


def _fired(bucket: int, rule: int, causes: list[str] | None) -> Firings:
    """The firings of a rule in a bucket: those of an odd one came of signals, where there are
    some."""
    seed = np.random.default_rng((bucket, rule))
    ids = seed.integers(0, 2**63, (FIRED, 2)).astype(np.uint64)
    ends = pa.array(np.full(FIRED, bucket * SECOND)).cast(_UTC)
    deep = rule % 2 == 1 and causes is not None
    each = 1 if rule % 2 else 2
    columns = {
        "firing_id": as_binary(ids),
        **({} if rule % 2 else {"k": pa.array(np.arange(FIRED))}),
        "started_at": ends,
        "detected_at": ends,
        "depth": pa.array(np.full(FIRED, 2 if deep else 1, np.int32)),
        "condition": pa.array(["none" if rule % 2 else "held"] * FIRED),
        "constituents": pa.array(np.full(FIRED, each, np.int32)),
    }
    rows = pa.array(np.repeat(np.arange(FIRED), each))
    events = ["n"] * FIRED if rule % 2 else ["a", "b"] * FIRED
    relation = {
        "firing_id": as_hex(ids).take(rows),
        "event_type": pa.array(events),
        "label": pa.nulls(len(rows), pa.string()),
        "occurred_at": ends.take(rows),
        "started_at": ends.take(rows),
        "detected_at": ends.take(rows),
        "k": rows,
    }
    signals: list[str | None] = (
        [f"engine/{one}-0" for one in causes or []] if deep else [None] * FIRED
    )
    if not rule % 2:
        signals = [signal for n in range(FIRED) for signal in (None, f"client/{bucket}-{n}")]
    versions = [bucket if event == "a" else None for event in events]
    sources = {"version": pa.array(versions, pa.int64()), "signal": pa.array(signals, pa.string())}
    made = Firings(f"r{rule}", pa.table(columns), pa.table(relation))
    return replace(made, sources=pa.table(sources))


def _entries(rule: int) -> Iterator[Entry]:
    signal = SignalStatement({"k": "k"}, {"k": "bigint"}, ("k",), "n")
    yield Entry(f"r{rule}", signal)
    text = "INSERT INTO log SELECT k FROM event"
    yield Entry(f"r{rule}", SqlStatement(text, "log", action=1))


def _signals(store: SqlStore, bucket: int, ids: list[str]) -> None:
    rows = [
        {
            "rulebook": "bench",
            "namespace": "engine",
            "id": f"{one}-0",
            "event": "n",
            "fields": "{}",
            "received_at": bucket * SECOND,
            "depth": 1,
            "instant": bucket * SECOND,
            "bucket": bucket,
        }
        for one in ids
    ]
    with store.database.write() as connection:
        for at in range(0, len(rows), BLOCK):
            connection.execute(sa.insert(t.signals), rows[at : at + BLOCK])


def _settle(store: SqlStore) -> None:
    """All entries are done; those of SQL have a commit."""
    c = t.outbox.c
    with store.database.write() as connection:
        connection.execute(sa.update(t.outbox).values(state="done", attempts=1))
        made = sa.update(t.outbox).where(c.kind == "sql")
        connection.execute(made.values(effect_version=c.number, rows_written=FIRED))
        if not store.database.is_sqlite:
            connection.execute(sa.text("ANALYZE"))


def run(folder: Path, firings: int | None = None) -> list[Figure]:
    """For each database and shape, what it takes in this process and as a command."""
    folder.mkdir(parents=True, exist_ok=True)
    figures: list[Figure] = []
    for database, new_url in _databases(folder):
        for rules, each in SHAPES:
            of_each = each if firings is None else max(FIRED, firings // rules // FIRED * FIRED)
            url = new_url()
            begun = time.perf_counter()
            ids = build(url, rules, of_each)
            built = time.perf_counter() - begun
            figures += _figures(f"{database}, {rules:,} x {of_each:,}", url, ids, built)
    return figures


def _figures(name: str, url: str, ids: list[str], built: float) -> Iterator[Figure]:
    seconds = []
    with open_store(url, create=False) as store:
        for one in ids[:ASKED]:
            begun = time.perf_counter()
            why(store, None, one)
            seconds.append(time.perf_counter() - begun)
    high = percentile(seconds[1:], 0.95)
    numbers = {
        "p95, ms": 1e3 * high,
        "median, ms": 1e3 * percentile(seconds, 0.5),
        "first, ms": 1e3 * seconds[0],
        "built, s": built,
    }
    yield Figure(f"why: {name}, in process", high / IN_PROCESS_SECONDS, 1.0, numbers)
    seconds, cpu = [], sum(os.times()[2:4])
    for one in ids[-COMMANDS:]:
        begun = time.perf_counter()
        command = [sys.executable, "-m", "tidegate", "why", one, "--store", url]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - begun)
    high, cpu = percentile(seconds, 0.95), (sum(os.times()[2:4]) - cpu) / COMMANDS
    numbers = {"p95, s": high, "best, s": min(seconds), "of a processor, s": cpu}
    yield Figure(f"why: {name}, as a command", high / COMMAND_SECONDS, 1.0, numbers)


def _databases(folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    numbers = iter(range(100))
    yield "sqlite", lambda: f"sqlite:///{folder / f'why{next(numbers)}.db'}"
    with contextmanager(postgres.running)() as server, suppress(GeneratorExit):
        yield "postgresql", server.new_url


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        for figure in run(Path(temporary), int(sys.argv[1]) if len(sys.argv) > 1 else None):
            print(figure)
