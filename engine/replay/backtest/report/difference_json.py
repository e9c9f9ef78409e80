"""The difference between two backtests as JSON lines, for programs.

A line is a firing that one of them has, or a pair of the same rule, key and end, but of other
constituents. In the order of the three kinds, and in each by end, rule, key and start:

    {"difference": "only", "in": "bank.yaml", "rule": "pay", "key": {"account_id": 7},
     "end": "2026-03-02T07:00:05Z", "start": "2026-03-02T07:00:01Z", "constituents": 4,
     "firing_id": "..", "otherwise": "condition_failed"}
    {"difference": "constituents", "rule": "pay", "key": {"account_id": 7}, "end": "..",
     "firings": [{"in": "bank.yaml", "start": "..", "constituents": 4, "firing_id": ".."},
                 {"in": "registered version 3", ..}]}

`otherwise`: what became of the same detection in the other, where it was detected there and did not
fire; null: it was not detected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pyarrow as pa

from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.printable import in_line
from tidegate.engine.replay.backtest.against import Difference

_CHUNK_ROWS = 5_000


def json_lines(found: Difference) -> Iterator[bytes]:
    """The lines, each with its newline."""
    labels = in_line(found.one.label), in_line(found.other.label)
    for label, table in zip(labels, (found.only_one, found.only_other), strict=True):
        for place, firing, otherwise in _rows(table, "otherwise"):
            line = {"difference": "only", "in": label, **place, **firing, "otherwise": otherwise}
            yield orjson.dumps(line) + b"\n"
    pairs = zip(_rows(found.differing_one), _rows(found.differing_other), strict=True)
    for (place, one, _), (_, other, _) in pairs:
        firings = [{"in": labels[0], **one}, {"in": labels[1], **other}]
        yield orjson.dumps({"difference": "constituents", **place, "firings": firings}) + b"\n"


def _rows(
    table: pa.Table, more: str | None = None
) -> Iterator[tuple[dict[str, Any], dict[str, Any], Any]]:
    """Each row as where it stands (rule, key, end), what else is told of it, and a further
    column."""
    for first in range(0, len(table), _CHUNK_ROWS):
        chunk = table.slice(first, _CHUNK_ROWS)
        ends, starts = (chunk[name].cast(pa.int64()).to_pylist() for name in ("end", "start"))
        names = ("rule", "key", "constituents", "firing_id")
        rules, keys, counts, ids = (chunk[name].to_pylist() for name in names)
        others = chunk[more].to_pylist() if more else [None] * len(chunk)
        for n, other in enumerate(others):
            key = None if keys[n] is None else orjson.Fragment(keys[n])
            place = {"rule": rules[n], "key": key, "end": json_text.instant(ends[n])}
            firing = {
                "start": json_text.instant(starts[n]),
                "constituents": counts[n],
                "firing_id": ids[n],
            }
            yield place, firing, other
