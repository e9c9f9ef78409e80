"""Detections -> firings: identity, depth, parameter relation (G6, G22)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidegate.engine.core.columns.ids import as_binary, as_hex, column_set, firing_ids, instant_ids
from tidegate.engine.core.parameters import INSTANT
from tidegate.engine.core.values import Batch, Detections, Firings, UInt64
from tidegate.engine.evaluate.relation import gather, parameter_relation
from tidegate.engine.evaluate.requirements import PreparedRule


def firings_of(rulebook: str, prepared: PreparedRule, detections: Detections) -> Firings:
    """The firings of one rule's detections, their conditions not yet asked (`none`)."""
    d = detections
    occurrences = _occurrence_ids(prepared, d)
    ids = firing_ids(rulebook, d.rule, d.keys, d.start, d.end, d.offsets, occurrences)
    key = prepared.shape.key
    table = pa.table(
        [
            as_binary(ids),
            *(d.keys[field.name].cast(field.type, safe=False) for field in key),  # exact in the id
            pa.array(d.start).cast(INSTANT),
            pa.array(d.end).cast(INSTANT),
            pa.array(_depths(d)),
            pa.repeat(pa.scalar("none"), len(d)),
            pa.array(np.diff(d.offsets).astype(np.int32)),
        ],
        names=[
            "firing_id",
            *key.names,
            "started_at",
            "detected_at",
            "depth",
            "condition",
            "constituents",
        ],
    )
    relation = parameter_relation(prepared.shape, d, as_hex(ids), prepared.wanted)
    return Firings(d.rule, table, relation)


def _occurrence_ids(prepared: PreparedRule, d: Detections) -> UInt64:
    digests = {event: column_set(prepared.id_columns.get(event, ())) for event in set(d.events)}

    def ids_of(event: str, batch: Batch) -> UInt64:
        if not batch.ids:  # a clock's, or ticks
            return instant_ids(batch.event, batch.time)
        return batch.ids_by(digests[event])

    ids: UInt64 = gather(d, ids_of, np.empty((len(d.event_row), 2), np.uint64))
    return ids


def _depths(d: Detections) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """1 + the largest depth among each detection's constituents."""
    depths = np.ones(len(d), np.int32)
    if any(batch.depth is not None for batch in d.batches.values()):
        zeros = np.zeros(len(d.event_row) + 1, np.int32)  # one more, for the last empty segment
        gather(d, _depth, zeros[:-1])
        filled = np.diff(d.offsets) > 0
        depths[filled] += np.maximum.reduceat(zeros, d.offsets[:-1])[filled]
    return depths


def _depth(_: str, batch: Batch) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return batch.depth if batch.depth is not None else np.zeros(len(batch), np.int32)
