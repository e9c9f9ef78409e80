"""The end of a step: carried instances and the occurrences that they refer to, as tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.values import Carried, Int64
from tidegate.engine.detect.events.occurrences.instances import Bools, Carry
from tidegate.engine.detect.events.occurrences.sources import CarriedParts
from tidegate.engine.detect.events.state import tables
from tidegate.engine.detect.events.step.frame import Frame


def carry_on(frame: Frame, carry: Mapping[str, Carry], stored: Carried) -> Carried:
    """The tables to carry on. Those of the step's nodes are written. Those of other nodes of the
    graph stay as they were. Those of nodes that have left the graph are dropped."""
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
        if node.census and len(known := frame.known(node.census)[0]):
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
    """The serials of the occurrences that carried instances refer to, by row, -1 = none; and the
    tables of these occurrences."""
    occurrences = frame.occurrences
    used, untouched = _used(frame, carry, kept, stored)
    serial = np.full(len(used), -1, dtype=np.int64)
    written = {"occ:" + event: stored.tables["occ:" + event] for event in untouched}
    for event, source in occurrences.sources.items():
        rows, old = source.rows(), frame.carried.get(event)
        if old is not None:
            serial[rows[: source.carried]] = old.serial
        following = old.next_serial if old else 0
        index = np.flatnonzero(used[rows])
        new = index[index >= source.carried]
        serial[rows[new]] = following + np.arange(len(new))
        if len(index):
            own, following = occurrences.own[rows[index]], following + len(new)
            written["occ:" + event] = tables.write_occurrences(
                source.batch, index, serial[rows[index]], own, following
            )
    names = pa.array([*occurrences.sources], pa.string())
    for rule, parts in occurrences.parts.items():
        if "occ:" + rule in written:
            whole = parts.take(np.flatnonzero(used[occurrences.sources[rule].rows()]))
            events = names.take(pa.array(occurrences.place_of(whole.row)))
            carried = CarriedParts(whole.start, whole.offsets, events, serial[whole.row])
            written["occ:" + rule] = tables.with_parts(written["occ:" + rule], carried)
    return serial, written


def _used(
    frame: Frame, carry: Mapping[str, Carry], kept: Mapping[str, pa.Table], stored: Carried
) -> tuple[Bools, set[str]]:
    """Marks the step's occurrences that something carried refers to. And the event types that have
    no part in the step, but are referred to by tables that stay as they are."""
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
    untouched = {event for event in referred if event not in frame.carried}
    for event in sorted(untouched):
        parts = tables.read_parts(stored.tables["occ:" + event])
        if parts is None:
            continue
        for inner in pc.unique(parts.event).to_pylist():
            mark = pc.equal(parts.event, inner).to_numpy(zero_copy_only=False)
            referred[inner].append(parts.serial[mark])
            untouched |= {inner} - frame.carried.keys()
    for event, serials in referred.items():
        if event in frame.carried:
            base, serial = occurrences.sources[event].base, frame.carried[event].serial
            for found in serials:
                used[base + np.searchsorted(serial, found)] = True
    for rule, whole in occurrences.parts.items():
        rows = occurrences.sources[rule].rows()
        used[whole.take(np.flatnonzero(used[rows])).row] = True
    return used, untouched
