"""A rule's instances -> its detections in the order of the output, with their constituents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.engine.core.event_names import is_tick, shown_name
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.roles import roles
from tidegate.engine.detect.events.kernels import table_rows
from tidegate.engine.detect.events.kernels.columns import Ranks
from tidegate.engine.detect.events.kernels.detection_order import Lists, in_order
from tidegate.engine.detect.events.kernels.entries import (
    Entries,
    put,
    repeats,
    take_entries,
    ticks_among,
)
from tidegate.engine.detect.events.occurrences.instances import Bools, Instances, Int16, points
from tidegate.engine.detect.events.occurrences.keys import Keys
from tidegate.engine.detect.events.occurrences.occurrences import Occurrences
from tidegate.engine.detect.events.occurrences.sources import Parts
from tidegate.rules.model import Pattern, Rule


@dataclass(frozen=True, slots=True)
class Shown:
    """Detections in order of (end, key, start, constituents).

    The constituents of detection i are the entries offsets[i]:offsets[i + 1], each occurrence once,
    in order of (time, event type, parameters). Entry e is occurrence row[e] in role[e]. In place of
    an occurrence that is a rule's detection stand the constituents of that (S8).
    """

    found: Instances
    offsets: Int64
    row: Int64
    role: Int16

    def __len__(self) -> int:
        return len(self.found)

    def rearranged(self, at: Int64, source: Int64) -> Shown:
        """The same with the detections at `source` in the places `at`, which ascend. Both are the
        same runs of simultaneous detections, each in another order."""
        found = self.found
        key, start = found.key.copy(), found.start.copy()
        key[at], start[at] = found.key[source], found.start[source]
        whole = shown = rearranged(Entries(self.offsets, self.row, self.role), at, source)
        if found.row is not self.row:
            whole = rearranged(Entries(found.offsets, found.row, found.role), at, source)
        return Shown(Instances(key, start, found.end, *whole), *shown)


def rearranged(entries: Entries, at: Int64, source: Int64) -> Entries:
    """The entries with those of the instances at `source` in the places `at`, which ascend. Both
    are the same runs of instances, each in another order."""
    out = Entries(entries.offsets.copy(), entries.row.copy(), entries.role.copy())
    put(entries, at, source, out)
    return out


def show(pattern: Pattern, found: Instances, keys: Keys, occurrences: Occurrences) -> Shown:
    """The detections that a rule's instances are."""
    parameters = np.array([role.parameter for role in roles(pattern.on)])
    return _sorted(_showing(found, parameters, occurrences), keys, occurrences)


def every_role(shown: Shown, occurrences: Occurrences) -> Shown:
    """The same detections with the occurrences of all roles, also of those without parameters."""
    return _showing(shown.found, _all_roles(shown.found.role), occurrences)


def _all_roles(role: Int16) -> Bools:
    return np.ones(int(role.max(initial=0)) + 1, dtype=np.bool_)


def _showing(found: Instances, roles: Bools, occurrences: Occurrences) -> Shown:
    """Detections with their entries in some roles."""
    offsets, row, role = found.offsets, found.row, found.role
    if not roles.all() or repeats(offsets, row):
        offsets, row, role = table_rows.listed(offsets, row, role, roles)
    places = [place for place, e in enumerate(occurrences.sources) if e in occurrences.parts]
    used = places and np.isin(occurrences.place_of(row), places).any()
    ticks = any(map(is_tick, occurrences.sources))
    among = ticks and ticks_among(offsets, row, Ranks(occurrences.time, occurrences.rank))
    if not used and not among:
        return Shown(found, offsets, row, role)
    owner = np.repeat(np.arange(len(found)), np.diff(offsets))
    if used:
        index, row = _primitive(row, occurrences)
        role, owner = role[index], owner[index]
    own, name, time = _order(row, occurrences)
    order = np.lexsort((role, row, own, name, time, owner))
    offsets = np.zeros(len(found) + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=len(found)), out=offsets[1:])
    role = role[order]
    return Shown(found, *table_rows.listed(offsets, row[order], role, _all_roles(role)))


def occur(rule: Rule, shown: Shown, keys: Keys, occurrences: Occurrences) -> Instances:
    """Adds a rule's detections as occurrences (S8); returns them as instances by its own keys."""
    found = shown.found
    names = keys.by_name(rule.pattern.key_names) if rule.pattern.key_names else keys
    columns = (names.ranks(found.key), found.start, found.end)
    order = np.lexsort(columns)
    differs = np.logical_or.reduce([np.diff(column[order]) != 0 for column in columns])
    alike = np.flatnonzero(~differs)
    differs[alike] = _differ(shown, order[alike], order[alike + 1], occurrences)
    own = np.empty(len(found), dtype=np.int64)
    own[order] = np.concatenate([[0], np.cumsum(differs)])[: len(order)]
    parts = Parts(found.start, shown.offsets, shown.row)
    rows = occurrences.add_detections(rule.name, found.end, own, parts)
    single = points(found.key, found.end, rows)
    return Instances(single.key, found.start, single.end, single.offsets, rows, single.role)


def _primitive(row: Int64, occurrences: Occurrences) -> tuple[Int64, Int64]:
    """The rows, with a rule's detection replaced by its constituents: for each the place in `row`
    that it comes from, and the row."""
    index, rows = [], []
    place = occurrences.place_of(row)
    for number, event in enumerate(occurrences.sources):
        mine = np.flatnonzero(place == number)
        if event in occurrences.parts:
            parts = occurrences.parts[event].take(occurrences.index_of(row[mine]))
            index.append(np.repeat(mine, np.diff(parts.offsets)))
            rows.append(parts.row)
        else:
            index.append(mine)
            rows.append(row[mine])
    return np.concatenate(index), np.concatenate(rows)


def _order(row: Int64, occurrences: Occurrences) -> tuple[Int64, Int64, Int64]:
    """The columns that order constituents, the last first, as `np.lexsort` takes them: time, event
    type (of a tick its name), parameters."""
    names = [shown_name(e) for e in occurrences.sources]
    inside = sorted({*names})
    number = np.array([inside.index(name) for name in names], dtype=np.int64)
    name = number[occurrences.place_of(row)] if len(row) else row
    return occurrences.own[row], name, occurrences.instants(row)


def _sorted(shown: Shown, keys: Keys, occurrences: Occurrences) -> Shown:
    """The detections in order of (end, key, start, constituents), see `kernels.detection_order`.

    `b ; a` in `continuous`, with two equal b's in rows 0 and 1 and an a in row 2: [0, 2], [1, 2].
    """
    found = shown.found
    same = found.end[1:] == found.end[:-1]
    if not same.any():
        return shown
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    ranks, instants = keys.ranks(found.key[tied]), np.cumsum(~same[tied[1:] - 1])
    instant_and_key = np.append(0, instants) * (ranks.max() + 1) + ranks
    if (instant_and_key[1:] > instant_and_key[:-1]).all():
        return shown
    order = np.argsort(instant_and_key, kind="stable")
    place = tied[order]
    again = np.diff(instant_and_key[order]) == 0
    several = np.flatnonzero(np.append(again, False) | np.append(False, again))
    if len(several):
        begins = np.flatnonzero(~np.append(False, again)[several])
        at, bounds = place[several], np.append(begins, len(several))
        place[several] = at[in_order(_lists(shown, at, occurrences), bounds)]
    return shown if (place == tied).all() else shown.rearranged(tied, place)


def _lists(shown: Shown, at: Int64, occurrences: Occurrences) -> Lists:
    """The detections at some places."""
    offsets, row, _ = take_entries(Entries(shown.offsets, shown.row, shown.role), at)
    own, name, time = _order(row, occurrences)
    return Lists(shown.found.start[at], offsets, row, time, name, own)


def _differ(shown: Shown, left: Int64, right: Int64, occurrences: Occurrences) -> Bools:
    """Whether the constituents of the detections at `left` and `right` differ, by value, pair by
    pair."""
    count = np.diff(shown.offsets)
    differs: Bools = count[left] != count[right]
    alike = np.flatnonzero(~differs)
    entries = Entries(shown.offsets, shown.row, shown.role)
    offsets, one, _ = take_entries(entries, left[alike])
    _, other, _ = take_entries(entries, right[alike])
    columns = zip(_order(one, occurrences), _order(other, occurrences), strict=True)
    apart = np.logical_or.reduce([a != b for a, b in columns])
    owner = np.repeat(alike, np.diff(offsets))
    differs[owner[apart]] = True
    return differs
