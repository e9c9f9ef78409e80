"""One arriving row with 1,000,000 carried keys against 1,000: step, and commit to the store.

python -m benchmarks.state [KEYS]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.figure import Figure
from tidegate import rules
from tidegate.engine.detector.detector import Detector
from tidegate.engine.detector.partitioned import Partitioned
from tidegate.engine.store import open_store
from tidegate.engine.store.buckets import save_carried
from tidegate.engine.store.database import Database
from tidegate.engine.values import Batch, Carried, Int64
from tidegate.rules.unbuilt import SIMULATED

FEW, MANY = 1_000, 1_000_000
BLOCK = 100_000
ASKED = 100
BOOK = """
rulebook: state
events: {a: {signal: {k: bigint, v: bigint}}, b: {signal: {k: bigint, v: bigint}}}
rules: {r: {on: a ; b, per: k}}
"""


class State:
    """A rule with an open `a` of every key, and the store that keeps it."""

    def __init__(self, folder: Path, keys: int) -> None:
        book = rules.load(BOOK, features=SIMULATED)
        self.detector = Partitioned(Detector(book, {"r": 0}), book.settings.state_partitions)
        url = f"sqlite:///{folder / f'state_{keys}.db'}"
        with open_store(url, create=True) as store:
            store.register("state", BOOK, None)
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
            save_carried(connection, "state", self.carried)
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


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(run(Path(temporary), int(sys.argv[1]) if len(sys.argv) > 1 else MANY))
