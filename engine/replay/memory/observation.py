"""What has happened in a world, as Python values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.compute as pc

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import DAMPED, Batch, Firings, Rejected
from tidegate.engine.replay.cases.world import Shown

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OWN = {"firing_id", "label", "started_at", "detected_at"}


def moment(micros: int) -> datetime:
    """An instant as UTC."""
    return _EPOCH + timedelta(microseconds=micros)


def firings(
    stored: Mapping[tuple[int, str], Firings], planned: Mapping[int, int]
) -> Mapping[str, Sequence[Shown]]:
    """By rule, its firings in order of detection. `stored`: by bucket and rule. `planned`: by
    bucket, when it was planned."""
    found: dict[str, list[Shown]] = {}
    for (bucket, rule), fired in sorted(stored.items()):
        found.setdefault(rule, []).extend(_of_bucket(fired, planned[bucket]))
    return found


def _of_bucket(fired: Firings, now: int) -> Iterator[Shown]:
    rows, ids = python_rows(fired.firings), fired.hex_ids().to_pylist()
    bounds, constituents = fired.offsets, _constituents(fired)
    for n, row in enumerate(rows):
        own = constituents[bounds[n] : bounds[n + 1]]
        yield {
            "firing_id": ids[n],
            "key": {name: row[name] for name in fired.key_names},
            "start": row["started_at"],
            "at": row["detected_at"],
            "fired_at": moment(now),
            "constituents": [one for one in own if one["event"] is not None],
            "condition": row["condition"],
            "damped": row.get(DAMPED),
            "depth": row["depth"],
        }


def _constituents(fired: Firings) -> list[dict[str, Any]]:
    relation = fired.rows
    labels = [label for label in pc.unique(relation["label"]).to_pylist() if label is not None]
    hidden = _OWN | {f"{label}_{side}" for label in labels for side in ("start", "end")}
    names = [name for name in relation.column_names if name not in hidden]
    shown = {"event_type": "event", "occurred_at": "time"}
    own = relation.select(names).rename_columns([shown.get(name, name) for name in names])
    return python_rows(own)


def occurrences(batch: Batch) -> list[Shown]:
    """The occurrences of a batch, each with its time."""
    fields = batch.table.take(batch.row)
    rows = python_rows(fields) if fields.num_columns else [{}] * len(batch.time)
    return [
        {"time": moment(time), **row} for time, row in zip(batch.time.tolist(), rows, strict=True)
    ]


def rejections(rejected: Iterable[Rejected]) -> list[Shown]:
    return [{"event": one.event, "reason": one.reason, "row": one.row} for one in rejected]


def dead(entries: Iterable[Entry]) -> list[Shown]:
    return [
        {
            "rule": entry.rule,
            "kind": entry.kind,
            "error": entry.progress.error,
            "attempts": entry.progress.attempts,
        }
        for entry in entries
        if entry.state == "dead"
    ]
