"""A rule's detections from several partitions, or its firings: each cut to the occurrences that it
refers to, and put together in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidegate.engine.core.columns.memory import give_back, of_one_value
from tidegate.engine.core.relation_files import RelationFiles, together
from tidegate.engine.core.state_parts import Shelf
from tidegate.engine.core.values import FIRING_COLUMNS, Detections, Firings, Int64
from tidegate.engine.detect.events.kernels.entries import Entries, take_entries
from tidegate.engine.detect.events.occurrences import batches, order
from tidegate.engine.detect.events.occurrences.comparison import united, whole


def compact(found: Detections) -> Detections:
    """The same with the occurrences alone that are constituents: what is sent elsewhere is no
    larger than what it says."""
    index, row = {}, found.event_row.copy()
    for code, event in enumerate(found.events):
        mine = found.event_code == code
        index[event], row[mine] = np.unique(found.event_row[mine], return_inverse=True)
    of = {event: found.batches[event] for event in found.events}
    used = None if found.used is None else compact(found.used)
    return replace(found, event_row=row, batches=batches.cut(of, index), used=used)


def merged(parts: Sequence[Detections]) -> Detections:
    """The detections of one rule in disjoint sets of keys, in order of (end, key, start, ..)."""
    if len(parts) == 1:
        return parts[0]
    keys = _keys([part.keys for part in parts])
    end = np.concatenate([part.end for part in parts])
    place = _places(keys, end)
    events = tuple(dict.fromkeys(event for part in parts for event in part.events))
    code = [np.array([*map(events.index, p.events)], np.int16)[p.event_code] for p in parts]
    row, of_events = [part.event_row.copy() for part in parts], {}
    for event in events:
        some = [n for n, part in enumerate(parts) if event in part.events]
        of_events[event], moved = batches.merged([parts[n].batches[event] for n in some])
        for n, at in zip(some, moved, strict=True):
            mine = parts[n].event_code == parts[n].events.index(event)
            row[n][mine] = at[parts[n].event_row[mine]]
    offsets, again = _again([part.offsets for part in parts], place)
    label = None
    if parts[0].label is not None:
        label = np.concatenate([part.label for part in parts if part.label is not None])[again]
    used = [part.used for part in parts if part.used is not None]
    return Detections(
        parts[0].rule,
        keys.take(place),
        np.concatenate([part.start for part in parts])[place],
        end[place],
        offsets,
        events,
        np.concatenate(code)[again],
        np.concatenate(row)[again],
        of_events,
        parts[0].labels,
        label,
        {name: _spans(parts, name, place) for name in parts[0].label_spans},
        merged(used) if used else None,
    )


def merged_firings(parts: list[Firings], shelf: Shelf | None) -> Firings:
    """The firings of one rule in disjoint sets of keys, in the same order. Where some have their
    rows in files of a shelf, all others go to one file more. Raises as `Shelf` does. What is in its
    new place is taken away from `parts`: there may be millions."""
    first = parts[0]
    if len(parts) == 1:
        return first
    here = [part for part in parts if not isinstance(part.relation, RelationFiles)]
    in_files = len(here) < len(parts)
    if in_files and here and shelf is not None:
        parts[:] = [part for part in parts if isinstance(part.relation, RelationFiles)]
        parts.append(merged_firings(here, None).on(shelf, always=True))
    if in_files:
        give_back()
    table = pa.concat_tables([part.firings for part in parts])
    place = _places(table.select(first.key_names), table["detected_at"].cast(pa.int64()).to_numpy())
    if in_files:
        relation, table = together([(part.relation, part.firings) for part in parts])
        parts.clear()
        columns = {name: table[name] for name in table.column_names}
        del table
        for name in columns:
            give_back()
            columns[name] = columns[name].take(pa.array(place))
            if name in FIRING_COLUMNS:  # most rules have one depth, one number of constituents
                columns[name] = of_one_value(columns[name])
        give_back()
        relation, table = relation.of_placed(pa.table(columns))
        return replace(first, firings=table, relation=relation, sources=None)
    _, again = _again([part.offsets for part in parts], place)
    relation, sources = (
        pa.concat_tables(some).take(pa.array(again))
        for some in ([p.relation for p in parts], [p.sources for p in parts])
    )
    return replace(first, firings=table.take(pa.array(place)), relation=relation, sources=sources)


def _places(keys: pa.Table, end: Int64) -> Int64:
    """The places of detections in order of (end, key); those of one key are in order already."""
    columns = [
        order.codes(column) if column.null_count else order.numbers(column)
        for column in reversed(keys.columns)
    ]
    places: Int64 = np.lexsort([*columns, end])
    return places


def _keys(parts: Sequence[pa.Table]) -> pa.Table:
    """The keys of all parts, in one type: that of numbers depends on the values."""
    names = parts[0].column_names
    return pa.table({name: whole(united([part.column(name) for part in parts])) for name in names})


def _again(offsets: Sequence[Int64], place: Int64) -> tuple[Int64, Int64]:
    """The offsets of the detections in their new places, and for each entry its old place."""
    sizes = np.concatenate([np.diff(part) for part in offsets])
    begin = np.concatenate([[0], np.cumsum(sizes)])
    row = np.arange(begin[-1])
    found = take_entries(Entries(begin, row, np.zeros(len(row), np.int16)), place)
    return found.offsets, found.row


def _spans(parts: Sequence[Detections], label: str, place: Int64) -> tuple[Int64, Int64]:
    start, end = (
        np.concatenate([part.label_spans[label][side] for part in parts])[place] for side in (0, 1)
    )
    return start, end
