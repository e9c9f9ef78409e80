"""A rule's instances -> its detections."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from engine.detector.frame import Frame
from engine.detector.instances import Instances
from engine.detector.kernels import TICK_RANK
from engine.detector.keys import Keys
from engine.detector.occurrences import TICK, Occurrences
from engine.values import Detections, Int64
from rules import expression as x
from rules.model import Rule

ABSENT = -(2**63)
"""Start and end of a label that has no part in a detection."""


def build(rule: Rule, found: Instances, keys: Keys, frame: Frame) -> Detections:
    """The detections in order of end, key, start, constituents; each occurrence once."""
    occurrences = frame.occurrences
    found = _sorted(found, keys, occurrences)
    owner = np.repeat(np.arange(len(found)), np.diff(found.offsets))
    shown = np.flatnonzero(np.array(list(_shown(rule.on)))[found.role])
    if TICK in occurrences.sources:
        shown = _by_name(shown, owner, found, occurrences)
    first = np.ones(len(shown), dtype=np.bool_)
    first[1:] = (np.diff(found.row[shown]) != 0) | (np.diff(owner[shown]) != 0)
    shown = shown[first]
    row, role = found.row[shown], found.role[shown]
    offsets = np.zeros(len(found) + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner[shown], minlength=len(found)), out=offsets[1:])
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


def _by_name(shown: Int64, owner: Int64, found: Instances, occurrences: Occurrences) -> Int64:
    """Entries in order of (time, event type, parameters), ticks among the others by their name."""
    row = found.row[shown]
    place = sum(name < "tick" for name in occurrences.sources if name != TICK)
    rank = occurrences.rank[row]
    rank = np.where(rank == TICK_RANK, (place << 40) - 1, rank)
    return shown[np.lexsort((row, rank, occurrences.time[row], owner[shown]))]


def _sorted(found: Instances, keys: Keys, occurrences: Occurrences) -> Instances:
    """By (end, key, start, constituents), these as lists, a prefix first."""
    if (found.end[1:] > found.end[:-1]).all():
        return found
    sizes = np.diff(found.offsets)
    first = np.full(len(found), -1)
    first[sizes > 0] = occurrences.rank[found.row[found.offsets[:-1][sizes > 0]]]
    columns = (first, found.start, keys.ranks(found.key), found.end)
    order = np.lexsort(columns)
    same = np.logical_and.reduce([np.diff(column[order]) == 0 for column in columns])
    same &= (sizes[order][1:] > 1) & (sizes[order][:-1] > 1)
    for run in np.split(np.arange(len(order)), np.flatnonzero(~same) + 1) if same.any() else ():
        if len(run) > 1:
            order[run] = sorted(order[run], key=lambda i: _constituents(found, i, occurrences))
    return found.take(order)


def _constituents(found: Instances, i: int, occurrences: Occurrences) -> list[tuple[int, ...]]:
    rows = dict.fromkeys(found.row[found.offsets[i] : found.offsets[i + 1]].tolist())
    return [(int(occurrences.time[row]), int(occurrences.rank[row])) for row in rows]


def _roles(e: x.Expression, inside: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The labels around each event of an expression, from the left, outermost first."""
    if isinstance(e, x.Labelled):
        inside = (*inside, e.label)
    if isinstance(e, x.Name | x.Clock | x.Cron):
        yield inside
    for operand in e.operands():
        yield from _roles(operand, inside)
    if isinstance(e, x.Periodic | x.PeriodicStar):
        yield inside


def _shown(e: x.Expression, shown: bool = True) -> Iterator[bool]:
    """For each event of an expression, from the left: is it a parameter? a and c of `A*`, `P*` are
    used, but are none."""
    if isinstance(e, x.Name | x.Clock | x.Cron):
        yield shown
    windows = isinstance(e, x.AperiodicStar | x.PeriodicStar)
    for operand in e.operands():
        within = isinstance(e, x.AperiodicStar) and operand is e.part
        yield from _shown(operand, shown and (within or not windows))
    if isinstance(e, x.Periodic | x.PeriodicStar):
        yield shown


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
