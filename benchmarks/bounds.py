"""What the detector carries per key, counted against the static bound, and its memory over time.

    python -m benchmarks.bounds [OCCURRENCES]

Random histories: every state of a small pattern comes up again and again, so the greatest one is
seen. Each expression has a history of its own, so many occurrences long.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.figure import Figure
from tidegate import rules
from tidegate.engine.core.values import Batch, Carried
from tidegate.engine.detect.events.kernels.columns import LAST
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.algebra.bound import Bound, Bounds

EXPRESSIONS = (
    "a ; b",
    "a and b",
    "a ; b ; c within 1 s",
    "(a ; b) - c",
    "a ; (b and c)",
    "(a and b) ; (a and c)",
    "a ; ((b ; c) within 30 ms)",
    "(a and b and c) within 1 s - (b ; b)",
    "any(2, a, b, c)",
    "any(3, a*)",
    "not(d)[a, b and c]",
    "A(a, b ; c, d)",
    "every(4, a or b)",
)
EVENTS = "abcd"
SHARES = (0.32, 0.32, 0.32, 0.04)  # d, which takes away what has been gathered, is rare
KEYS = 100
BUCKETS = 200


@dataclass(frozen=True, slots=True)
class Measured:
    """The most that one key, and the key with the least, carried; `grown_mb`: the peak of the
    process's memory after a tenth of the history, against that at its end."""

    expression: str
    bound: Bound
    instances: tuple[int, int]
    occurrences: tuple[int, int]
    grown_mb: float

    @property
    def exact(self) -> bool:
        """Whether every key reached the bound, and none went beyond it."""
        bound = self.bound
        return {*self.instances} == {bound.instances_max} and {*self.occurrences} == {
            bound.occurrences_max
        }


def measure(expression: str, occurrences: int) -> Measured:
    """Detect over a random history, count after every bucket."""
    text = "".join(f"  {event}: {{signal: {{k: bigint}}}}\n" for event in EVENTS)
    on = f"{{on: '{expression}', per: k}}"
    book = rules.load(f"rulebook: bounds\nevents:\n{text}rules:\n  r: {on}\n")
    detector = Detector(book, {"r": 0})
    carried = Carried()
    most = np.zeros((2, KEYS), dtype=np.int64)
    early_mb = 0.0
    for number, (batches, watermark) in enumerate(_buckets(occurrences)):
        carried = detector.step(carried, batches, watermark)[1]
        most = np.maximum(most, _counts(carried))
        if number <= BUCKETS // 10:
            early_mb = _peak_mb()
    (instances, entries), grown = most, _peak_mb() - early_mb
    return Measured(
        expression,
        Bounds(book.rules).of_rule(book.rules["r"]),
        (int(instances.min()), int(instances.max())),
        (int(entries.min()), int(entries.max())),
        grown,
    )


def _buckets(occurrences: int) -> Iterator[tuple[dict[str, Batch], int]]:
    draw = np.random.default_rng(7)
    size = occurrences // BUCKETS
    for number in range(BUCKETS):
        time = (number * size + np.arange(size)) * 100
        event = draw.choice(len(EVENTS), size, p=SHARES)
        table = pa.table({"k": draw.integers(0, KEYS, size)})
        rows = [np.flatnonzero(event == i) for i in range(len(EVENTS))]
        batches = {n: Batch(n, time[row], row, table) for n, row in zip(EVENTS, rows, strict=True)}
        yield batches, int(time[-1])


def _counts(carried: Carried) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Instances, and occurrences in them, of each key."""
    found = np.zeros((2, KEYS), dtype=np.int64)
    for name, table in carried.tables.items():
        if name.startswith("node:"):
            key = table["k0"].to_numpy()
            stored = table["end"].to_numpy() != LAST
            sizes = table["times"].combine_chunks().value_lengths().to_numpy()
            np.add.at(found[0], key[stored], 1)
            np.add.at(found[1], key[stored], sizes[stored])
    return found


def _peak_mb() -> float:
    unit = 1024 if sys.platform == "linux" else 1024 * 1024  # KiB there, bytes on macOS
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def run(occurrences: int = 1_000_000) -> Figure:
    """How many expressions do not carry exactly their bound: none."""
    found = [measure(expression, occurrences) for expression in EXPRESSIONS]
    numbers = {f"`{m.expression}` carried": float(m.instances[1]) for m in found}
    numbers |= {f"`{m.expression}` bound": float(m.bound.instances_max or 0) for m in found}
    numbers["memory grown, MB"] = max(m.grown_mb for m in found)
    wrong = sum(not m.exact for m in found)
    return Figure("bounds: expressions that carry other than their bound", wrong, 0, numbers)


if __name__ == "__main__":
    given = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for one in EXPRESSIONS:
        m = measure(one, given)
        bound = (m.bound.instances_max, m.bound.occurrences_max)
        print(f"{one:40} {m.instances} {m.occurrences} {bound} {m.grown_mb:.1f} MB", flush=True)
