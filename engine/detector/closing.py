"""What a step leaves behind: carried instances and the occurrences that they refer to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from engine.detector import carried as tables
from engine.detector.frame import Frame
from engine.detector.instances import Carry
from engine.values import Carried, Int64


def carry_on(frame: Frame, carry: Mapping[str, Carry], stored: Carried) -> Carried:
    """The tables to carry on: those of the step's nodes as they are now, those of the other nodes
    as they were, those of nodes that are no longer in the graph left out."""
    graph = frame.graph
    kept = {
        name: table
        for name, table in stored.tables.items()
        if (name.startswith("node:") and name[5:] in graph.nodes and name[5:] not in carry)
        or name in graph.censuses
    }
    serial, written = _occurrences(frame, carry, kept, stored)
    for digest, slots in carry.items():
        if any(len(part) for part in slots):
            node = frame.nodes[digest]
            written["node:" + digest] = tables.write_carry(
                node, slots, frame.keys(node), frame.unseen(node), serial
            )
    for node in frame.nodes.values():
        if node.census and len(known := frame.known[node.census][0]):
            written[node.census] = tables.write_keys(frame.keys(node), known)
    for name, table in written.items():
        old = stored.tables.get(name)
        kept[name] = old if old is not None and old.equals(table) else table
    changed = {
        name for name in {*kept, *stored.tables} if kept.get(name) is not stored.tables.get(name)
    }
    return Carried(kept, frozenset(changed))


def _occurrences(
    frame: Frame, carry: Mapping[str, Carry], kept: Mapping[str, pa.Table], stored: Carried
) -> tuple[Int64, dict[str, pa.Table]]:
    """Serials for the step's occurrences that carried instances refer to, and their tables."""
    occurrences = frame.occurrences
    used = np.zeros(len(occurrences.time), dtype=np.bool_)
    for slots in carry.values():
        for part in slots:
            used[part.row] = True
    referred: dict[str, list[Int64]] = defaultdict(list)
    for name, table in kept.items():
        if name.startswith("node:"):
            for event, found in tables.serials_of(table, frame.graph.nodes[name[5:]].roles).items():
                referred[event].append(found)
    serial = np.full(len(used), -1, dtype=np.int64)
    written: dict[str, pa.Table] = {}
    for event, source in occurrences.sources.items():
        rows = slice(source.base, source.base + len(source.batch))
        own, old = serial[rows], frame.carried.get(event)
        if old is not None:
            own[: source.carried] = old.serial
            for found in referred.pop(event, []):
                used[source.base + np.searchsorted(old.serial, found)] = True
        following = old.next_serial if old else 0
        index = np.flatnonzero(used[rows])
        new = index[index >= source.carried]
        own[new] = following + np.arange(len(new))
        if len(index):
            rank = occurrences.rank[rows][index] & ((1 << 40) - 1)
            written["occ:" + event] = tables.write_occurrences(
                source.batch, index, own[index], rank, following + len(new)
            )
    for event in referred:
        written["occ:" + event] = stored.tables["occ:" + event]
    return serial, written
