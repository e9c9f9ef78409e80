"""Small buckets under `detect: auto`, which the driver detects, beside those of `detect: driver`.

    python -m benchmarks.site [BUCKETS]

Both are taken by the engine's loop on a store on disk, from a table in memory, in turn. Seconds are
those of a core: how long a disk takes is no matter of the choice. Once beside next to nothing
carried, once beside many instances.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.figure import Figure
from tests.support.bench import Bench
from tests.support.executors import InProcess
from tests.support.make import BEGIN, SECOND
from tidegate.engine.store import SqlStore, open_store

BUCKETS, WARM = 400, 20
ROWS = 20
FEW, MANY = 0, 50_000
TARGET = 1.01
TEXT = """rulebook: loop
tables: {{t: {{path: /t, key: [id], start: earliest}}, out: {{path: /out}}}}
events: {{row: {{on: insert, table: t}}, gone: {{on: delete, table: t}}}}
settings: {{detect: {detect}, bucket_rows_max: 100000}}
rules:
  open: {{on: "not(gone)[row, [9 s]]", per: id}}
  kept: {{on: row ; gone, per: id}}
"""


class Side(Bench):
    """An engine's loop that carries an instance of so many rows."""

    def __init__(self, store: SqlStore, detect: str, carried: int) -> None:
        self.executors_beside = InProcess()
        store.of("loop").versions.register(TEXT.format(detect=detect), None)
        super().__init__(store, 0, TEXT.format(detect=detect))
        if carried:
            self.seconds(carried)

    def seconds(self, rows: int) -> float:
        """What a core takes from the next rows until there is nothing to take any more."""
        self.feed.commits += rows
        self.clock.at = BEGIN + self.feed.commits * SECOND - 1  # a second after the last
        begun = time.process_time()
        taken, by = 0, set[str]()
        while (report := self.loop.bucket()) is not None:
            taken += report.rows
            by.add(report.detected_by)
        seconds = time.process_time() - begun
        assert (taken, by) == (rows, {"driver"})
        return seconds


def run(folder: Path, buckets: int = BUCKETS) -> list[Figure]:
    return [_figure(folder / str(carried), carried, buckets) for carried in (FEW, MANY)]


def _figure(folder: Path, carried: int, buckets: int) -> Figure:
    """The median of the ratios of two that follow each other: what is carried grows."""
    folder.mkdir(parents=True)
    found: dict[str, list[float]] = {"driver": [], "auto": []}
    with ExitStack() as stack:
        sides = {}
        for detect in found:
            url = f"sqlite:///{folder / detect}.db"
            store = stack.enter_context(open_store(url, create=True))
            sides[detect] = Side(store, detect, carried)
        for number in range(WARM + buckets):
            for detect in sorted(found, reverse=bool(number % 2)):
                seconds = sides[detect].seconds(ROWS)
                if number >= WARM:
                    found[detect].append(seconds)
    middle = {detect: statistics.median(some) for detect, some in found.items()}
    name = f"site: buckets of {ROWS} rows beside {carried:,} carried, auto / driver"
    numbers = {f"ms_{detect}": 1e3 * seconds for detect, seconds in middle.items()}
    ratios = [a / d for a, d in zip(found["auto"], found["driver"], strict=True)]
    return Figure(name, statistics.median(ratios), TARGET, numbers)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for figure in run(Path(made), *map(int, sys.argv[1:])):
            print(figure)
