"""How long the values of the console's pages take, with 1,000 rules and 1,000,000 firings in the
store: the first page 0.3 s at most, each other one 0.5 s.

    python -m benchmarks.console [FIRINGS]

The store is made by bulk INSERT: buckets of a month, `RULES_FIRED` rules in each, `FIRED` firings
of each of these; hours, sizes, signals, commits and requests of the same month; entries that are
done, pending, held and dead.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from benchmarks.figure import Figure, percentile
from tests.support import postgres
from tidegate.engine.control.console import (
    audit,
    firings,
    overview,
    rule,
    rules,
    sources,
    stuck,
)
from tidegate.engine.core.columns.ids import as_binary, as_hex
from tidegate.engine.core.keeping import DAY_MICROS, Keeping
from tidegate.engine.core.values import Firings
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store import tables as t
from tidegate.engine.store.blobs import firings_to_columns
from tidegate.engine.store.hours import HOUR_MICROS
from tidegate.rules.model import Rulebook

RULES, FIRINGS = 1_000, 1_000_000
RULES_FIRED, FIRED = 100, 10  # in a bucket, of each of them
TABLES, EVENTS = 10, 10
BLOCK = 10_000
TIMES = 7
OVERVIEW_SECONDS, PAGE_SECONDS = 0.3, 0.5
MONTH = 30 * DAY_MICROS
NAME = "bench"
_UTC = pa.timestamp("us", "UTC")


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


def build(url: str, count: int) -> Rulebook:
    """A store of so many firings."""
    with open_store(url, create=True) as store:
        store.of(NAME).versions.register(book(), None)
        epoch = store.of(NAME).lease.acquire("m1-1/7/1-a", 3_600)
        kept = [Keeping(f"t{n}", 30 * DAY_MICROS, 7 * DAY_MICROS) for n in range(TABLES)]
        store.of(NAME, epoch).keepings.tell(kept)
        now = store.wall()
        for table, rows in _tables(count // (RULES_FIRED * FIRED), now):
            _insert(store, table, rows)
        if not store.database.is_sqlite:
            with store.database.write() as connection:
                connection.execute(sa.text("ANALYZE"))
        return store.rulebooks()[NAME].known()


def _insert(store: SqlStore, table: sa.Table, rows: Iterator[Mapping[str, Any]]) -> None:
    block: list[dict[str, Any]] = []
    for row in rows:
        block.append({"rulebook": NAME, **row})
        if len(block) == BLOCK:
            _write(store, table, block)
            block = []
    _write(store, table, block)


def _write(store: SqlStore, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        with store.database.write() as connection:
            connection.execute(sa.insert(table), rows)


def _tables(buckets: int, now: int) -> Iterator[tuple[sa.Table, Iterator[dict[str, Any]]]]:
    times = [now - MONTH + (n + 1) * MONTH // buckets for n in range(buckets)]
    hours = range(now - now % HOUR_MICROS - MONTH, now, HOUR_MICROS)
    names = [f"r{n}" for n in range(RULES)]
    counts = {"fired": 7, "condition_failed": 2, "damped": 1, "dead": 0}
    yield t.buckets, (_bucket(n, at) for n, at in enumerate(times, 1))
    yield t.firings, _firings(times)
    yield t.totals, iter([{**dict.fromkeys(_COUNTS, buckets), "adjusted_commits": 3}])
    yield (
        t.rule_totals,
        ({"rule": r, "firing_count": 1_000, "fired": 700, "condition_failed": 200,
          "last_fired_at": now} for r in names),
    )  # fmt: skip
    yield t.rule_hours, ({"hour": h, "rule": r, **counts} for h in hours for r in names)
    sizes = {"instances": 40, "keys": 9}
    yield t.rule_sizes, ({"hour": h, "rule": r, **sizes} for h in hours for r in names[:500])
    carries = {"carried_instances": 40, "carried_keys": 9, "digest": "d"}
    yield t.activations, ({"rule": r, "instant": now - MONTH, **carries} for r in names)
    yield t.damped_totals, ({"rule": r, "kind": "cooldown", "firing_count": 100} for r in names)
    yield (
        t.cursors,
        ({"table_name": f"t{n}", "table_id": "i", "version": buckets, "instant": times[-1],
          "schema": "{}"} for n in range(TABLES)),
    )  # fmt: skip
    yield (
        t.commits,
        ({"table_name": f"t{n}", "instant": at, "version": v, "bucket": v,
          "logged": at - 1 if n == 0 and v > buckets - 3 else None}
         for v, at in enumerate(times, 1) for n in range(TABLES)),
    )  # fmt: skip
    yield t.signals, (_signal(n, times) for n in range(100 * buckets))
    yield t.outbox, (_entry(n, times) for n in range(1, RULES_FIRED * buckets + 1))
    yield (
        t.rejected,
        ({"bucket": n, "ordinal": m, "event": "e1", "source": "t1", "reason": "time is null",
          "fields": "{}"} for n in range(1, buckets + 1) for m in range(10)),
    )  # fmt: skip
    yield (
        t.controls,
        ({"kind": "disable", "subject": f"r{n % RULES}", "asked_at": times[n % buckets],
          "bucket": 1 + n % buckets, "asked_by": f"user{n % 7}@m1"} for n in range(10 * buckets)),
    )  # fmt: skip
    parts = (f"node:d{n}/{m}" for n in range(RULES) for m in range(4))
    empty = {"arrow": b"", "due": None, "timers": 0, "row_count": 10}
    yield t.carried, ({"name": name, **empty} for name in parts)


_COUNTS = ("row_count", "detection_count", "firing_count", "entry_count", "rejected_count")


def _bucket(number: int, at: int) -> dict[str, Any]:
    seconds = {f"seconds_{stage}": 0.1 for stage in t.STAGES}
    return {
        "bucket": number,
        "watermark_before": at - 2_000_000,
        "watermark": at - 1_000_000,
        "now": at,
        "adjusted_commits": 0,
        "plan": "{}",
        **dict.fromkeys(_COUNTS[:-1], RULES_FIRED * FIRED),
        "rejected_count": 10,
        **seconds,
    }


def _firings(times: Sequence[int]) -> Iterator[dict[str, Any]]:
    """`RULES_FIRED` rules in each bucket, in turn. They share the ids of their firings."""
    for number, at in enumerate(times, 1):
        ends = pa.array(np.full(FIRED, at - 1_000_000)).cast(_UTC)
        ids = np.stack([np.arange(FIRED), np.full(FIRED, number)], 1).astype(np.uint64)
        shared = {
            "bucket": number,
            "firing_count": FIRED,
            "first_detected_at": at - 1_000_000,
            "last_detected_at": at - 1_000_000,
            "first_id": ids[0].tobytes().hex(),
            "last_id": ids[-1].tobytes().hex(),
            **firings_to_columns(_fired(ids, ends)),
        }
        for n in range(RULES_FIRED):
            yield {**shared, "rule": f"r{(number * RULES_FIRED + n) % RULES}", "ordinal": n}


def _fired(ids: np.ndarray[Any, Any], ends: pa.Array) -> Firings:
    twice = pa.array(np.repeat(np.arange(FIRED), 2))
    columns = {
        "firing_id": as_binary(ids),
        "k": pa.array(np.arange(FIRED)),
        "started_at": ends,
        "detected_at": ends,
        "depth": pa.array(np.ones(FIRED, np.int32)),
        "condition": pa.array(["none"] * FIRED),
        "constituents": pa.array(np.full(FIRED, 2, np.int32)),
    }
    relation = {
        "firing_id": as_hex(ids).take(twice),
        "event_type": pa.array(["e1", "s1"] * FIRED),
        "label": pa.nulls(2 * FIRED, pa.string()),
        "occurred_at": ends.take(twice),
        "started_at": ends.take(twice),
        "detected_at": ends.take(twice),
        "k": twice,
    }
    return Firings("r", pa.table(columns), pa.table(relation))


def _signal(number: int, times: Sequence[int]) -> dict[str, Any]:
    bucket = number // 100
    return {
        "namespace": "client",
        "id": f"k{number}",
        "event": f"s{number % EVENTS}",
        "fields": '{"k": 7}',
        "received_at": times[bucket] - 2_000_000,
        "depth": 0,
        "instant": times[bucket] - 2_000_000,
        "bucket": bucket + 1,
    }


def _entry(number: int, times: Sequence[int]) -> dict[str, Any]:
    """Done, but for 1,000 of the last ones: pending, held, dead in turn."""
    bucket = (number - 1) // RULES_FIRED
    left = len(times) * RULES_FIRED - number < 1_000
    state = ("pending", "held", "dead")[number % 3] if left else "done"
    return {
        "number": number,
        "bucket": bucket + 1,
        "rule": f"r{((bucket + 1) * RULES_FIRED + (number - 1) % RULES_FIRED) % RULES}",
        "kind": "sql",
        "text": "INSERT INTO log SELECT k FROM event",
        "target": "log",
        "position": number,
        "depth": 1,
        "state": state,
        "attempts": 3,
        "error": None if state == "done" else "PERMISSION_DENIED",
        "target_version": number,
        "place": number,
        "stored_at": times[bucket],
    }


PAGES: Mapping[str, Callable[..., Any]] = {
    "overview": overview.page,
    "rules": rules.page,
    "rules, by dead": partial(rules.page, sort="-dead", page="3"),
    "rule": partial(rule.page, rulebook=NAME, rule="r7"),
    "firings": firings.page,
    "firings of a rule": partial(firings.page, rule="r7"),
    "firings of a key": partial(firings.page, key="k=3"),
    "firings of no key": partial(firings.page, key="k=99"),
    "firings, held": partial(firings.page, state="held"),
    "stuck": stuck.page,
    "sources": sources.page,
    "audit": audit.page,
    "audit of one": partial(audit.page, by="user3@m1", page="2"),
}


def measured(url: str, known: Rulebook) -> dict[str, list[float]]:
    """How long each page took, each of `TIMES` times."""
    found: dict[str, list[float]] = {}
    with open_store(url, create=False) as store:
        for name, page in PAGES.items():
            for _ in range(TIMES):
                begun = time.perf_counter()
                page(store, {NAME: known}, store.wall())
                found.setdefault(name, []).append(time.perf_counter() - begun)
    return found


def run(folder: Path, count: int = FIRINGS) -> list[Figure]:
    """For each database and page, the median."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = []
    for database, url in _databases(folder):
        begun = time.perf_counter()
        known = build(url, count)
        built = time.perf_counter() - begun
        for name, seconds in measured(url, known).items():
            most = OVERVIEW_SECONDS if name == "overview" else PAGE_SECONDS
            median = percentile(seconds, 0.5)
            numbers = {"median, ms": 1e3 * median, "first, ms": 1e3 * seconds[0], "built, s": built}
            figures.append(Figure(f"console: {database}, {name}", median / most, 1.0, numbers))
    return figures


def _databases(folder: Path) -> Iterator[tuple[str, str]]:
    yield "sqlite", f"sqlite:///{folder / 'console.db'}"
    with contextmanager(postgres.running)() as server, suppress(GeneratorExit):
        yield "postgresql", server.new_url()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        for figure in run(Path(temporary), int(sys.argv[1]) if len(sys.argv) > 1 else FIRINGS):
            ms = ", ".join(f"{name} {number:,.1f}" for name, number in figure.numbers.items())
            print(f"{figure.name}: {ms}{'' if figure.met else ' MISSED'}")
