"""How much each rule and script carries: its instances, and the keys that have any."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.state_parts import FilePart
from tidegate.engine.core.values import Load
from tidegate.engine.detect.events.graph.graph import Graph
from tidegate.engine.detect.events.state.partitions import (
    EVERY,
    Tables,
    key_hash,
    part_name,
    place,
)
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.state.tables import key_columns

PartLoads = Mapping[tuple[tuple[str, ...], int], Load]
"""By some tables of nodes and a partition, what is carried in them there."""
_NOTHING = Load()


def tables_of(graph: Graph) -> dict[str, set[str]]:
    """By rule, the names of the tables of its nodes. A rule that runs behind, for late rows, stands
    in the graph under a name for each clock; these are counted for the rule as it was written."""
    found: dict[str, set[str]] = defaultdict(set)
    for rule, root in graph.roots.items():
        found[EventKey.of(rule).event] |= {f"node:{node.digest}" for node in root.walk()}
    return found


class Loads:
    """What each rule carries, counted: the instances in all nodes of its event graph, and the keys
    that have any; a script's are those of its keys. `carried_in`: by rule or script, the names of
    the tables that it carries. A part that is the same table as the last time is not counted again.

    Example: rules `r` and `s` share a node in which three instances of the keys 7 and 8 wait. It
    counts for both. In another node of `r` one more of key 8 waits: `r` carries four instances of
    two keys, `s` three of two. The occurrences that instances refer to count for nobody, nor do
    those that are held back for late rows.
    """

    def __init__(self, carried_in: Mapping[str, Collection[str]]) -> None:
        self._carried_in = {name: tuple(sorted(tables)) for name, tables in carried_in.items()}
        self._users: dict[str, set[tuple[str, ...]]] = {}
        for tables in self._carried_in.values():
            for table in tables:
                self._users.setdefault(table, set()).add(tables)
        self._seen = Parts()
        self._parts: dict[tuple[tuple[str, ...], int], Load] = {}
        self._sums: dict[tuple[str, ...], Load] = {}

    def of(self, tables: Tables, counted: PartLoads = MappingProxyType({})) -> dict[str, Load]:
        """By rule or script, what it carries in the parts `tables`. `counted`: where parts that are
        new lie in files, what was counted by who wrote them."""
        whole = Parts.of(tables, self._seen)
        own = Parts(
            {name: group for name, group in whole.groups.items() if name in self._users},
            {n: part for n, part in whole.rest.items() if n.rpartition("/")[0] in self._users},
        )
        places = map(place, own.written_since(self._seen))
        for some, partition in {(some, at) for name, at in places for some in self._users[name]}:
            new = counted.get((some, partition))
            if new is None:
                names = (part_name(name, partition) for name in some)
                new = _load([own[name] for name in names if name in own])
            old = self._parts.pop((some, partition), _NOTHING)
            if new != _NOTHING:
                self._parts[some, partition] = new
            instances, keys = self._sums.get(some, _NOTHING)
            self._sums[some] = Load(
                instances + new.instances - old.instances, keys + new.keys - old.keys
            )
        self._seen = own
        return {name: self._sums.get(some, _NOTHING) for name, some in self._carried_in.items()}


def counted_parts(graph: Graph, tables: Tables) -> PartLoads:
    """What is carried in each partition that is all in memory, but for that of every key."""
    groups = Parts.of(tables).groups
    found = dict[tuple[tuple[str, ...], int], Load]()
    for some in {tuple(sorted(own)) for own in tables_of(graph).values()}:
        own = [groups[whole] for whole in some if whole in groups]
        there = {p for group in own for p in group.filed.tolist()}
        for partition in {p for group in own for p in group.here} - there - {EVERY}:
            parts = [group.here[partition] for group in own if partition in group.here]
            found[some, partition] = _load(parts)
    return found


def _load(parts: Iterable[pa.Table]) -> Load:
    """Of parts of one partition: a key is in no other one. A part that lies in a file, and was not
    counted, is a script's: it has an instance a key."""
    some = [part for part in parts if len(part)]
    rows = sum(map(len, some))
    if any(isinstance(part, FilePart) for part in some):
        return Load(rows, rows)
    keyed = [columns for part in some if (columns := key_columns(part))]
    return Load(rows, _distinct(keyed) if keyed else 0)


def _distinct(keyed: Sequence[Sequence[pa.ChunkedArray]]) -> int:
    """How many keys there are in some tables, given their key columns."""
    if len(keyed) == 1 and len(keyed[0]) == 1 and not pa.types.is_nested(keyed[0][0].type):
        return int(pc.count_distinct(keyed[0][0], mode="all").as_py())  # hashing takes ten times
    return len(np.unique(np.concatenate([key_hash(columns) for columns in keyed])))
