"""A detector over state in partitions: a step reads and writes those that it touches (G26).

Example: rule `a ; b` per k, 16 partitions. A row a(k=7) arrives, and 7 is of partition 3. The step
joins `/3` and `/every` of all tables, runs on them as if nothing else was carried, and writes what
changed of them. The other fifteen are neither read nor written.

How many partitions there are follows from what is carried: one for the first few thousand
instances, four times as many whenever one has grown too large, `state_partitions` at most.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.detector.carried import check
from tidegate.engine.detector.codes import select
from tidegate.engine.detector.contexts.choice import Choice
from tidegate.engine.detector.detector import FOREVER, Detector
from tidegate.engine.detector.flat.window_node import Windows
from tidegate.engine.detector.graph import Graph, Node
from tidegate.engine.detector.operators.aperiodic_until import AperiodicStarUntil
from tidegate.engine.detector.operators.detection import Detection
from tidegate.engine.detector.operators.event import Event
from tidegate.engine.detector.operators.periodic import Periodic
from tidegate.engine.detector.operators.periodic_star import PeriodicStar
from tidegate.engine.detector.operators.plus import Plus
from tidegate.engine.detector.operators.until import Until
from tidegate.engine.detector.parts import (
    EVERY,
    Parts,
    Tables,
    count_of,
    cut,
    grouped,
    join,
    part_name,
    partitions,
    place,
)
from tidegate.engine.values import Batch, Carried, Detections
from tidegate.rules import expression as x
from tidegate.rules.transform import shortest_micros

ROWS_MAX = 4_000
"""A node's part with more rows is cut into `GROWTH` parts, if there may be so many."""
GROWTH = 4
_LATE = 8
"""What is too old is dropped once it is older by an eighth: else a partition in which something
happens all the time would be touched at every instant for that alone."""
_NOT_DUE = FOREVER


@dataclass(frozen=True, slots=True)
class _Part:
    """A carried table as it was last seen: its rows, and when something happens to it next."""

    table: pa.Table
    partition: int
    rows: int
    due: int


class Partitioned:
    """A detector whose state is cut into `count_max` partitions at most."""

    def __init__(self, detector: Detector, count_max: int) -> None:
        self.detector = detector
        self._count_max = count_max
        self._spread = _spread(detector.graph)
        self._spread_timed = any(_uses_apart(detector.graph, timed=True))
        self._names = _names(detector.graph)
        self._adopted = False  # the first step drops what another rulebook has left
        self._parts: dict[str, _Part] = {}

    def step(
        self,
        carried: Carried,
        batches: Mapping[str, Batch],
        watermark: int,
        last: int | None = None,
        parked: Collection[str] = (),
    ) -> tuple[tuple[Detections, ...], Carried]:
        """`Detector.step`, on the partitions alone that arrivals, timers that are due, or instances
        that are too old touch."""
        graph, tables = self.detector.graph, carried.tables
        if not self._adopted:
            check(tables)
        count = count_of(tables)
        largest, due = self._looked_over(tables, watermark)
        wanted = _wanted(count, largest, self._count_max)
        touched = None if wanted > count else self._touched(batches, due, count)
        read = grouped(tables) if touched is None else self._read(tables, touched)
        before = join(graph, read)
        found, after = self.detector.step(Carried(before), batches, watermark, last, parked)
        self._adopted = True
        if watermark == FOREVER:
            return found, Carried({}, frozenset(tables))
        parts = cut(graph, before, after.tables, wanted, anew=wanted > count)
        return found, _replaced(tables, read, parts)

    def _looked_over(self, tables: Tables, watermark: int) -> tuple[int, set[int]]:
        """The rows of the largest part; the partitions in which a timer is due, or something is too
        old. What was seen of a part is known until it is another table."""
        seen: dict[str, _Part] = {}
        largest, due = 0, set()
        for name, table in tables.items():
            part = self._parts.get(name)
            if part is None or part.table is not table:
                part = self._seen(name, table)
            seen[name] = part
            largest = max(largest, part.rows)
            if part.due <= watermark:
                due.add(part.partition)
        self._parts = seen
        return largest, due

    def _seen(self, name: str, table: pa.Table) -> _Part:
        whole, partition = place(name)
        node = self.detector.graph.nodes.get(whole.removeprefix("node:"))
        if node is None:
            return _Part(table, partition, 0, _NOT_DUE)
        return _Part(table, partition, len(table), _due(node, table, partition))

    def _touched(
        self, batches: Mapping[str, Batch], due: Collection[int], count: int
    ) -> frozenset[int] | None:
        """The partitions that something happens to; None for all."""
        arriving = {event for event, batch in batches.items() if len(batch)}
        if not self._adopted or count == 1 or arriving & self._spread:
            return None
        if EVERY in due or (due and self._spread_timed):
            return None
        found = {EVERY, *due}
        for event, columns in self.detector.graph.domains:
            if event in arriving:
                batch = batches[event]
                if len(batch) > GROWTH * count:
                    return None
                rows = batch.table.take(batch.row)
                found |= {*partitions(select(rows, columns), count).tolist()}
        return frozenset(found) if len(found) <= count else None

    def _read(self, tables: Tables, touched: Collection[int]) -> Parts:
        """The parts of the partitions touched."""
        found: Parts = {}
        for name in self._names:
            names = {partition: part_name(name, partition) for partition in sorted(touched)}
            parts = {p: tables[part] for p, part in names.items() if part in tables}
            if parts:
                found[name] = parts
        return found


def _wanted(count: int, largest: int, most: int) -> int:
    """Into how many partitions the state is to be cut: more once a part has grown too large."""
    while count < most and largest > ROWS_MAX:
        count, largest = min(count * GROWTH, most), largest // GROWTH
    return count


def _replaced(tables: Tables, read: Parts, parts: Parts) -> Carried:
    """The tables with those parts instead of what was read of them."""
    kept = dict(tables)
    changed = set()
    for whole, new in parts.items():
        old = read.get(whole, {})
        for partition in old.keys() | new.keys():
            name = part_name(whole, partition)
            if partition not in new:
                del kept[name]
            elif partition in old and old[partition].equals(new[partition], check_metadata=True):
                continue
            else:
                kept[name] = new[partition]
            changed.add(name)
    return Carried(kept, frozenset(changed))


def _names(graph: Graph) -> tuple[str, ...]:
    """Of all tables that may be carried, before they are cut."""
    roles = {role for node in graph.nodes.values() for role in node.roles}
    events = sorted(roles.union(*graph.events.values()))
    return (
        *("node:" + digest for digest in graph.nodes),
        *graph.censuses,
        *("occ:" + event for event in events),
    )


def _spread(graph: Graph) -> frozenset[str]:
    """The event types of which one occurrence may concern all keys of a rule: broadcasts beside
    keyed ones, and what a rule looks at that is used by other keys than its own."""
    found = {
        node.shape.event
        for root in graph.roots.values()
        for node in (root.walk() if root.streams else ())
        if isinstance(node.shape, Event) and node.shape.columns is None
    }
    return frozenset(found).union(*(graph.events[rule] for rule in _uses_apart(graph)))


def _uses_apart(graph: Graph, *, timed: bool = False) -> Iterator[str]:
    """The rules that a keyed rule uses by other keys than theirs; the timed ones alone."""
    for root in graph.roots.values():
        for node in root.walk() if root.streams else ():
            shape = node.shape
            if not isinstance(shape, Detection) or (timed and not graph.roots[shape.rule].timed):
                continue
            if shape.columns is None or not graph.same_keys((shape.rule, shape.columns)):
                yield shape.rule


def _due(node: Node, table: pa.Table, partition: int) -> int:
    """When something happens to a part's instances though nothing arrives: the first timer is due,
    or the oldest is so old that it is dropped."""
    if not len(table):
        return _NOT_DUE
    found = [_NOT_DUE]
    if node.timed:
        wait = _wait(node)
        found.append(-FOREVER if wait is None else pc.min(table.column("end")).as_py() + wait)
    if node.horizon_micros is not None and partition != EVERY:
        age = node.horizon_micros + node.horizon_micros // _LATE
        found.append(pc.min(table.column("start")).as_py() + age)
    return min(found)


def _wait(node: Node) -> int | None:
    """The least time from the end of an instance to what it gives by itself; None: not known."""
    match node.shape:
        case Plus():
            return 0  # it carries the instant itself
        case Until(duration=duration) | AperiodicStarUntil(duration=duration):
            return shortest_micros(duration)
        case Periodic(period=duration) | PeriodicStar(own=x.Duration() as duration):
            return shortest_micros(duration)
        case Choice() | Windows():
            return None
        case _:
            return _NOT_DUE
