"""A rule's instances -> its detections."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from engine.detector.frame import Frame
from engine.detector.instances import Instances
from engine.detector.keys import Keys
from engine.values import Detections, Int64
from rules import expression as x
from rules.model import Rule

ABSENT = -(2**63)
"""Start and end of a label that has no part in a detection."""


def build(rule: Rule, found: Instances, keys: Keys, frame: Frame) -> Detections:
    """The detections in order of end, key, start, constituents; each occurrence once."""
    occurrences = frame.occurrences
    found = _sorted(found, keys, occurrences.rank)
    owner = np.repeat(np.arange(len(found)), np.diff(found.offsets))
    first = np.ones(len(owner), dtype=np.bool_)
    first[1:] = (found.row[1:] != found.row[:-1]) | (owner[1:] != owner[:-1])
    row, role = found.row[first], found.role[first]
    offsets = np.zeros(len(found) + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner[first], minlength=len(found)), out=offsets[1:])
    event = occurrences.event_of(row)
    bases = np.array([source.base for source in occurrences.sources.values()], dtype=np.int64)
    roles = list(_roles(rule.on, ()))
    labels = tuple(dict.fromkeys(label for inside in roles for label in inside))
    innermost = np.array([labels.index(r[-1]) if r else -1 for r in roles], dtype=np.int16)
    return Detections(
        rule.name,
        pa.table(keys.values(found.key), names=list(rule.key_names)),
        found.start,
        found.end,
        offsets,
        tuple(occurrences.sources),
        event.astype(np.int16),
        row - bases[event],
        {name: source.batch for name, source in occurrences.sources.items()},
        labels,
        innermost[role] if labels else None,
        {label: _span(label, roles, found, owner, occurrences.time) for label in labels},
    )


def _sorted(found: Instances, keys: Keys, rank: Int64) -> Instances:
    """By (end, key, start, constituents). Only instances of one occurrence can agree in the first
    three (`unrestricted` over event types), so that the rank of the first decides."""
    if (found.end[1:] > found.end[:-1]).all():
        return found
    first = rank[found.row[found.offsets[:-1]]]
    return found.take(np.lexsort((first, found.start, keys.ranks(found.key), found.end)))


def _roles(e: x.Expression, inside: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The labels around each event of an expression, from the left, outermost first."""
    if isinstance(e, x.Labelled):
        inside = (*inside, e.label)
    if isinstance(e, x.Name):
        yield inside
    for operand in e.operands():
        yield from _roles(operand, inside)


def _span(
    label: str, roles: list[tuple[str, ...]], found: Instances, owner: Int64, time: Int64
) -> tuple[Int64, Int64]:
    """The interval of what is labelled, in each detection."""
    labelled = np.array([label in inside for inside in roles])[found.role]
    start = np.full(len(found), 2**63 - 1)
    end = np.full(len(found), ABSENT)
    np.minimum.at(start, owner[labelled], time[found.row[labelled]])
    np.maximum.at(end, owner[labelled], time[found.row[labelled]])
    start[end == ABSENT] = ABSENT
    return start, end
