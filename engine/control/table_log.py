"""A table's Delta log on this machine: which versions it has, and since when. No Spark."""

from __future__ import annotations

import os
import re
import time
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tidegate.rules.model import Table

_COMMIT = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True, slots=True)
class Ahead:
    """How far a table is ahead of a version: its head, the commits after the version, and for how
    many seconds the first of them has been there. `first`: when it came, microseconds."""

    head: int
    commits: int
    seconds: float
    first: int | None


@dataclass(frozen=True, slots=True)
class TableLog:
    """The commit files of a log. `versions`: ascending, never empty."""

    folder: Path
    versions: tuple[int, ...]

    def instant(self, version: int) -> int | None:
        """When a version was committed, microseconds, by its file; None if the file is gone."""
        try:
            return os.stat(self.folder / f"{version:020}.json").st_mtime_ns // 1_000
        except OSError:
            return None

    def after(self, version: int) -> int | None:
        """The first version after another one; None if that is the last."""
        at = bisect_right(self.versions, version)
        return self.versions[at] if at < len(self.versions) else None

    def at(self, instant: int) -> int | None:
        """The last version that was committed at an instant or before; None before the first."""
        low, high = 0, len(self.versions)
        while low < high:
            middle = (low + high) // 2
            found = self.instant(self.versions[middle])
            if found is not None and found > instant:
                high = middle
            else:
                low = middle + 1
        return self.versions[low - 1] if low else None

    def ahead(self, version: int) -> Ahead:
        """How far it is ahead of a version."""
        later = len(self.versions) - bisect_right(self.versions, version)
        first = self.instant(self.versions[-later]) if later else None
        seconds = 0.0 if first is None else max(0.0, time.time() - first / 1e6)
        return Ahead(self.versions[-1], later, round(seconds, 1), first)


def log_of(table: Table) -> TableLog | None:
    """The log of a table; None where it is not on this machine, or empty."""
    parts = urlsplit(table.path or "")
    if table.path is None or parts.scheme not in ("", "file"):
        return None
    log = Path(unquote(parts.path) if parts.scheme else table.path, "_delta_log")
    try:
        names = os.listdir(log)
    except OSError:
        return None
    found = sorted(int(match[1]) for name in names if (match := _COMMIT.fullmatch(name)))
    return TableLog(log, tuple(found)) if found else None
