"""What the store answers at 1,000,000 buckets against 100: `status`, and where a firing is.

    python -m benchmarks.store [BUCKETS]

The rows are written in bulk, the runs of firing ids as so many commits leave them.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from benchmarks.figure import Figure, median_seconds
from tidegate.engine.core.state import StoredBucket
from tidegate.engine.core.values import Carried, Firings, Plan
from tidegate.engine.store import SqlStore, id_runs, open_store
from tidegate.engine.store import tables as t
from tidegate.engine.store.database import Database
from tidegate.engine.store.id_runs import Ids

FEW, MANY = 100, 1_000_000
FIRED, ROUNDS = 100_000, 5
FIRINGS = 3  # of one rule in each bucket
ASKED = 300  # times
BLOCK = 10_000
SECOND = 1_000_000
BOOK = "rulebook: bench\nevents: {e: {signal: {}}}\nrules: {r: {on: e}}\n"


def build(url: str, buckets: int) -> Ids:
    """A store of so many buckets, each with an entry that is done; the ids of its firings."""
    draw = np.random.default_rng(7)
    ids = np.frombuffer(draw.bytes(16 * FIRINGS * buckets), "S16")
    with open_store(url, create=True) as store:
        store.of("bench").versions.register(BOOK, None)
        store.of("bench").lease.acquire("benchmark", 1)
    database = Database(url)
    for first in range(1, buckets + 1, BLOCK):
        numbers = range(first, min(first + BLOCK, buckets + 1))
        with database.write() as connection:
            for table, row in ((t.buckets, _bucket), (t.firings, _firings), (t.outbox, _entry)):
                connection.execute(sa.insert(table), [{**_OF[table], **row(n)} for n in numbers])
    with database.write() as connection:
        _write_runs(connection, buckets, ids)
        counts = dict.fromkeys(("row_count", "detection_count", "entry_count"), buckets)
        zeros = {"rejected_count": 0, "adjusted_commits": 0}
        total = {"rulebook": "bench", "firing_count": buckets * FIRINGS, **counts, **zeros}
        connection.execute(sa.insert(t.totals), total)
        connection.execute(sa.update(t.meta).values(last_entry=buckets))
    database.close()
    return ids


_OF = {
    t.buckets: {"rulebook": "bench", "adjusted_commits": 0, "plan": "{}" * 200},
    t.firings: {
        "rulebook": "bench",
        "rule": "r",
        "ordinal": 0,
        "firing_count": FIRINGS,
        "first_id": "",
        "last_id": "",
        "firings": b"f" * 300,
        "relation": b"r" * 300,
    },
    t.outbox: {
        "rulebook": "bench",
        "rule": "r",
        "kind": "sql",
        "text": "INSERT INTO out SELECT * FROM event",
        "target": "out",
        "position": 0,
        "depth": 1,
        "state": "done",
        "attempts": 1,
        "app_id": "tidegate/s/bench/r",
    },
}


def _bucket(n: int) -> dict[str, int]:
    at = n * SECOND
    return {"bucket": n, "watermark_before": at - SECOND, "watermark": at, "now": at + 7}


def _firings(n: int) -> dict[str, int]:
    at = n * SECOND - 9
    return {"bucket": n, "first_detected_at": at, "last_detected_at": at}


def _entry(n: int) -> dict[str, int]:
    return {"number": n, "bucket": n, "place": n}


def _write_runs(connection: sa.Connection, buckets: int, ids: Ids) -> None:
    for first, last, level in _runs(buckets):
        numbers = np.repeat(np.arange(first, last + 1), FIRINGS)
        places = np.zeros(len(numbers), id_runs.PLACE)
        places["bucket"] = numbers
        some = ids[(first - 1) * FIRINGS : last * FIRINGS]
        id_runs.write(connection, "bench", (first, last), level, [some], places.take)


def _runs(buckets: int) -> Iterator[tuple[int, int, int]]:
    """(first bucket, last bucket, level) as so many commits leave them."""
    level = 0
    while FIRINGS * id_runs.FAN_OUT ** (level + 1) <= id_runs.MERGED_IDS_MAX:
        level += 1
    first = 1
    while first <= buckets:
        size = id_runs.FAN_OUT**level
        if first + size - 1 <= buckets:
            yield first, first + size - 1, level
            first += size
        else:
            level -= 1


def _questions(store: SqlStore, ids: Ids) -> dict[str, Iterator[Callable[[], object]]]:
    """By name, the same question again and again, with another id each time."""
    draw = np.random.default_rng(8)
    return {
        "status": (lambda: store.of("bench").status.shown() for _ in count()),
        "hit": (_find(store, bytes(draw.choice(ids)), True) for _ in count()),
        "miss": (_find(store, draw.bytes(16), False) for _ in count()),
    }


def _find(store: SqlStore, firing_id: bytes, known: bool) -> Callable[[], object]:
    def ask() -> None:
        with store.database.read() as connection:
            found = id_runs.find(connection, "bench", firing_id.ljust(16, b"\0").hex())
        if (found is None) is known:
            raise SystemExit("a firing is not where it is")

    return ask


def run(folder: Path, many: int = MANY) -> Figure:
    """The worst ratio of the medians at `many` buckets to those at `FEW`, asked in turn: what else
    the machine does slows both."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = (FEW, many)
    urls = {size: f"sqlite:///{folder / f'store_{size}.db'}" for size in sizes}
    ids = {size: build(url, size) for size, url in urls.items()}
    times: dict[tuple[str, int], list[float]] = defaultdict(list)
    with ExitStack() as stack:
        stores = {s: stack.enter_context(open_store(url, create=False)) for s, url in urls.items()}
        asked = {size: _questions(stores[size], ids[size]) for size in sizes}
        for name in ("status", "hit", "miss"):
            for _ in range(ASKED):
                for size in sizes:
                    times[name, size].append(median_seconds([next(asked[size][name])]))
    medians = {key: statistics.median(found) for key, found in times.items()}
    ratio = max(medians[name, many] / medians[name, FEW] for name, _ in medians)
    numbers = {f"{name} at {size:,}, ms": 1e3 * found for (name, size), found in medians.items()}
    return Figure(f"store: {many:,} buckets / {FEW}", ratio, 1.5, numbers)


def firings(folder: Path) -> Figure:
    """One bucket's transaction with 100,000 firings of two constituents each, in half a second."""
    folder.mkdir(parents=True, exist_ok=True)
    seconds = []
    with open_store(f"sqlite:///{folder / 'firings.db'}", create=True) as store:
        buckets = store.of("bench", store.of("bench").lease.acquire("benchmark", 600)).buckets
        for bucket in range(1, ROUNDS + 1):
            at = bucket * 3_600 * SECOND
            plan = Plan("bench", bucket, at - 3_600 * SECOND, at, now=at)
            taken = StoredBucket(plan, Carried(), {}, firings=(_fired(bucket, at),))
            seconds.append(median_seconds([partial(buckets.commit, taken)]))
    middle = statistics.median(seconds)
    return Figure("store: a bucket of 100,000 firings, in half seconds", middle / 0.5, 1.0)


def _fired(bucket: int, at: int) -> Firings:
    """Firings a microsecond apart, before `at`."""
    draw = np.random.default_rng(bucket)
    ids = pa.array([draw.bytes(16) for _ in range(FIRED)], pa.binary(16))
    times = pa.array(np.arange(at - FIRED, at)).cast(pa.timestamp("us", "UTC"))
    ones = pa.array(np.ones(FIRED, np.int32))
    firings = pa.table(
        {
            "firing_id": ids,
            "k": pa.array(draw.integers(0, 10_000, FIRED)),
            "started_at": times,
            "detected_at": times,
            "depth": ones,
            "condition": pa.array(["held"] * FIRED),
            "constituents": pc.add(ones, ones),
        }
    )
    twice = pa.array(np.repeat(np.arange(FIRED), 2))
    relation = pa.table(
        {
            "firing_id": Firings("r", firings, firings).hex_ids().take(twice),
            "event_type": pa.array(["a", "b"] * FIRED),
            "occurred_at": times.take(twice),
            "amount": pa.array(draw.random(2 * FIRED)),
        }
    )
    return Firings("r", firings, relation)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(run(Path(temporary), int(sys.argv[1]) if len(sys.argv) > 1 else MANY))
