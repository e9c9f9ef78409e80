"""What a benchmark hands back: named numbers, one of which is held against a target."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """A ratio of one run, its target (at most), and the numbers it is made of."""

    name: str
    ratio: float
    target: float
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def met(self) -> bool:
        return self.ratio <= self.target


def median_seconds(runs: Sequence[Callable[[], object]]) -> float:
    """Runs each once, in order, and gives the median of the times they took."""
    times = []
    for run in runs:
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def percentile(values: Sequence[float], share: float) -> float:
    """The value at `share` (0 to 1) of the sorted values, nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def rulebook(folder: Path, name: str, text: str) -> Path:
    """Writes a rulebook into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.yaml"
    file.write_text(f"rulebook: {name}\n{text}", encoding="utf-8")
    return file
