"""Occurrences and detections as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from tests.support.rulebooks import SCHEMAS
from tidegate.engine.core.columns.ids import column_set
from tidegate.engine.core.parameters import parameter_schema
from tidegate.engine.core.values import Batch, Detections
from tidegate.rules.model import Rule, Rulebook


def batch(
    book: Rulebook,
    event: str,
    rows: Sequence[Mapping[str, Any]],
    times: Sequence[int],
    *,
    depth: Sequence[int] | None = None,
    sets: Sequence[Sequence[str]] = ((),),
) -> Batch:
    """Occurrences in order of time; each id is made of the time alone."""
    table = pa.Table.from_pylist(list(rows), schema=parameter_schema(book, event, SCHEMAS))
    ids = np.stack(
        [np.array(times, np.uint64), np.full(len(times), crc32(event.encode()), np.uint64)], 1
    )
    return Batch(
        event,
        np.array(times, np.int64),
        np.arange(len(times)),
        table,
        {column_set(columns): ids for columns in sets},
        None if depth is None else np.array(depth, np.int32),
    )


def detections(
    of: Rule,
    batches: Sequence[Batch],
    found: Sequence[Sequence[tuple[str, int]]],
    *,
    keys: pa.Table | None = None,
    labels: Sequence[str] = (),
    label: Sequence[int] | None = None,
    times: Sequence[tuple[int, int]] = (),
    spans: Mapping[str, Any] | None = None,
) -> Detections:
    """One detection for each list of (event type, occurrence); `times` where it has none."""
    events = tuple(b.event for b in batches)
    by_name = {b.event: b for b in batches}
    entries = [entry for one in found for entry in one]
    at = [
        [int(by_name[event].time[row]) for event, row in one] or list(times[n])
        for n, one in enumerate(found)
    ]
    return Detections(
        of.name,
        keys if keys is not None else pa.table({}),
        np.array([min(one) for one in at], np.int64),
        np.array([max(one) for one in at], np.int64),
        np.cumsum([0, *map(len, found)]).astype(np.int64),
        events,
        np.array([events.index(event) for event, _ in entries], np.int16),
        np.array([row for _, row in entries], np.int64),
        by_name,
        tuple(labels),
        None if label is None else np.array(label, np.int16),
        spans or {},
    )
