"""How far a table on this machine's disk is ahead of its cursor, seen without Spark."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tidegate.rules.model import Table

_COMMIT = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True, slots=True)
class Ahead:
    """A table's head; how many commits stand after a version, the first of them for how long."""

    head: int
    commits: int
    seconds: float


def ahead(table: Table, version: int) -> Ahead | None:
    """What stands after `version`; None where the log cannot be seen: no path, or a remote one."""
    parts = urlsplit(table.path or "")
    if table.path is None or parts.scheme not in ("", "file"):
        return None
    log = Path(unquote(parts.path) if parts.scheme else table.path, "_delta_log")
    try:
        names = os.listdir(log)
        found = sorted(int(match[1]) for name in names if (match := _COMMIT.fullmatch(name)))
        later = [number for number in found if number > version]
        first = os.stat(log / f"{later[0]:020}.json").st_mtime if later else time.time()
    except OSError:
        return None
    if not found:
        return None
    return Ahead(found[-1], len(later), round(max(0.0, time.time() - first), 1))
