"""One arriving row with 1,000,000 carried keys against 1,000: step, and commit to the store. And
the bytes that a carried instance takes there.

python -m benchmarks.state [KEYS]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from benchmarks.figure import Figure
from tidegate import rules
from tidegate.engine.core.values import Batch, Carried, Int64
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.engine.store import open_store
from tidegate.engine.store import tables as t
from tidegate.engine.store.buckets import save_carried
from tidegate.engine.store.database import Database
from tidegate.engine.store.shelf import Packed
from tidegate.rules.checks.gaps import SIMULATED

FEW, MANY = 1_000, 1_000_000
BLOCK = 100_000
ASKED = 100
BOOK = """
rulebook: state
events: {a: {signal: {k: bigint, v: bigint}}, b: {signal: {k: bigint, v: bigint}}}
rules: {RULES}
"""
ONE = ("a ; b",)
FIVE = ("a ; b", "a ; b within 1 d", "a ; b ; a within 2 d", "(a ; b) - a", "a and b")
BYTES_MAX = 200


class State:
    """Rules with an open `a` of every key, and the store that keeps them."""

    def __init__(self, folder: Path, keys: int, expressions: Sequence[str] = ONE) -> None:
        own = ", ".join(f"r{n}: {{on: {on}, per: k}}" for n, on in enumerate(expressions))
        text = BOOK.replace("RULES", own)
        book = rules.load(text, features=SIMULATED)
        detector = Detector(book, dict.fromkeys(book.rules, 0))
        self.detector = Partitioned(detector, book.settings.state_partitions)
        url = f"sqlite:///{folder / f'state_{keys}_{len(expressions)}.db'}"
        with open_store(url, create=True) as store:
            store.of("state").versions.register(text, None)
        self.database = Database(url)
        self.carried, self.watermark = Carried(), 0
        self.draw = np.random.default_rng(7)
        self.keys = keys
        for block in np.array_split(self.draw.permutation(keys), max(1, keys // BLOCK)):
            self.take("a", block)
        self.one()

    def one(self) -> float:
        """The seconds that a row of a random key takes."""
        return self.take("a", self.draw.integers(self.keys, size=1))

    def take(self, event: str, keys: Int64) -> float:
        at = np.arange(self.watermark + 1, self.watermark + 1 + len(keys))
        ids = np.stack([at, keys], axis=1).astype(np.uint64)
        table = pa.table({"k": keys, "v": keys})
        batch = Batch(event, at, np.arange(len(keys)), table, {"k": ids})
        begun = time.perf_counter()
        self.watermark = int(at[-1])
        _, self.carried, _ = self.detector.step(self.carried, {event: batch}, self.watermark)
        with self.database.write() as connection:
            left = self.carried
            here = {name: Packed.of(table) for name, table in left.written.items()}
            save_carried(connection, "state", left, here, {})
        return time.perf_counter() - begun


def run(folder: Path, many: int = MANY) -> Figure:
    """The ratio of the medians at `many` keys to those at `FEW`, asked in turn: what else
    the machine does slows both."""
    folder.mkdir(parents=True, exist_ok=True)
    states = {keys: State(folder, keys) for keys in (FEW, many)}
    seconds: dict[int, list[float]] = {keys: [] for keys in states}
    for _ in range(ASKED):
        for keys, state in states.items():
            seconds[keys].append(state.one())
    medians = {keys: statistics.median(found) for keys, found in seconds.items()}
    for state in states.values():
        state.database.close()
    numbers = {f"{keys:,} keys, ms": 1e3 * found for keys, found in medians.items()}
    return Figure(f"state: a row with {many:,} keys / {FEW:,}", medians[many] / medians[FEW], 2.0,
                  numbers)  # fmt: skip


def instance_bytes(folder: Path, keys: int = MANY) -> Figure:
    """What the store keeps for a carried instance: five rules, every second key half matched."""
    folder.mkdir(parents=True, exist_ok=True)
    state = State(folder, keys, FIVE)
    for block in np.array_split(np.arange(0, keys, 2), max(1, keys // BLOCK)):
        state.take("b", block)
    with state.database.read() as connection:
        kept = connection.execute(sa.select(sa.func.sum(sa.func.length(t.carried.c.arrow))))
        total = int(kept.scalar_one())
    state.database.close()
    nodes = [n for n in state.carried.tables if n.startswith("node:")]
    instances = sum(len(state.carried.tables[name]) for name in nodes)
    numbers = {"bytes": total / instances, "instances": float(instances)}
    name = f"state: bytes a carried instance / {BYTES_MAX}"
    return Figure(name, total / instances / BYTES_MAX, 1.0, numbers)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        size = int(sys.argv[1]) if len(sys.argv) > 1 else MANY
        print(run(Path(temporary), size))
        print(instance_bytes(Path(temporary), size))
