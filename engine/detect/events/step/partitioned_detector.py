"""A detector over state in partitions: a step reads and writes only those that it touches (G26).

Example: rule `a ; b` per k, 16 partitions. A row a(k=7) arrives, and 7 is of partition 3. The step
joins the parts `/3` and `/every` of all tables. It runs as if nothing else were carried, and writes
the parts that changed. The other fifteen partitions are neither read nor written.

The number of partitions grows with the state. It is one for the first few thousand instances, and
four times as many whenever a part has grown too large, up to `state_partitions`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.values import FOREVER, Batch, Carried, Stepped
from tidegate.engine.detect.events.graph.graph import Graph, Node
from tidegate.engine.detect.events.graph.operators.detection import Detection
from tidegate.engine.detect.events.graph.operators.event import Event
from tidegate.engine.detect.events.graph.timers import Timed
from tidegate.engine.detect.events.state.held_back import check_held, is_held, released
from tidegate.engine.detect.events.state.partitions import (
    EVERY,
    Parts,
    Tables,
    count_of,
    cut,
    due_of,
    earliest,
    grouped,
    join,
    part_name,
    partitions,
    place,
    saying_due,
    with_serials,
)
from tidegate.engine.detect.events.state.tables import check, numbers, read_spans
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.key_codes import select

ROWS_MAX = 4_000
"""The most rows of a node's part: one with more is cut into `GROWTH`, up to `state_partitions`."""
GROWTH = 4
_LATE = 8
"""An instance is dropped once it is older than its horizon by an eighth of it. Were it dropped at
the horizon itself, a partition with many instances would be touched in every step."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A carried part as it was last seen: the digest of its node (empty for occurrences and keys),
    its number of rows, the watermarks at which its first timer is due and its oldest instance is
    dropped for its age. Of what is held back, when the first is let go."""

    table: pa.Table
    node: str
    partition: int
    rows: int
    timer: int
    old: int


class Partitioned:
    """A detector whose state is cut into `count_max` partitions at most."""

    def __init__(self, detector: Detector, count_max: int) -> None:
        self.detector = detector
        self._count_max = count_max
        self._spread = _spread(detector.graph)
        self._spread_timed = any(_uses_apart(detector.graph, timed=True))
        self._names = _names(detector.graph)
        self._events_behind = frozenset(
            e for e in detector.events if EventKey.of(e).behind is not None
        )
        self._adopted = False  # the first step drops what another rulebook has left
        self._parts: dict[str, _Part] = {}
        self._left: tuple[Carried, Tables] | None = None  # by the last step, and its tables whole

    def step(
        self,
        carried: Carried,
        batches: Mapping[str, Batch],
        watermark: int,
        last: int | None = None,
        parked: Collection[str] = (),
        limit: int | None = None,
    ) -> Stepped:
        """`Detector.step` on the partitions that are touched: by arrivals, by due timers, by
        instances that are too old. Arrivals above the watermark of rules that run behind are held
        back for them. A step that a limit stops is done again, whole, with fewer arrivals."""
        graph = self.detector.graph
        stored = carried.tables
        if not self._adopted:
            check(stored)
            check_held(stored, self.detector.events)
        tables = {name: table for name, table in stored.items() if not is_held(name)}
        batches, held = released(stored, batches, self._events_behind, watermark)
        count = count_of(tables)
        asleep = self.detector.asleep(parked)
        largest, due = self._looked_over(tables, watermark, asleep)
        wanted = _wanted(count, largest, self._count_max)
        touched = None if wanted > count else self._touched(batches, due, count)
        read = grouped(tables) if touched is None else self._read(tables, touched)
        whole = touched is None and self._left is not None and self._left[0] is carried
        before = self._left[1] if whole and self._left else join(graph, read)
        made = self.detector.step(Carried(before), batches, watermark, last, parked, limit)
        self._adopted = True
        if watermark == FOREVER:
            return made._replace(carried=Carried({}, frozenset(carried.tables)))
        after = made.carried.tables
        if wanted > 1:
            after = with_serials(before, after)
        parts = cut(graph, before, after, wanted, anew=wanted > count)
        kept = _replaced(tables, read, self._saying_due(parts))
        old = carried.tables.keys() - tables.keys()
        changed = {n for n in old | held.keys() if held.get(n) is not carried.tables.get(n)}
        left = Carried({**kept.tables, **held}, kept.changed | changed)
        self._left = (left, after) if touched is None else None
        return made._replace(carried=left)

    def _saying_due(self, parts: Parts) -> Parts:
        """The parts of nodes with the watermark at which the first of their timers is due."""
        found = dict(parts)
        for name, some in parts.items():
            node = self.detector.graph.nodes.get(name.removeprefix("node:"))
            if node and isinstance(node.shape, Timed):
                behind = self.detector.behind_micros(node.digest)
                due = {p: node.shape.due(read_spans(node, part)) for p, part in some.items()}
                found[name] = {
                    p: saying_due(
                        part, min(int(due[p].min(initial=FOREVER)) + behind, FOREVER), len(due[p])
                    )
                    for p, part in some.items()
                }
        return found

    def next_due(self, carried: Carried, parked: Collection[str]) -> int | None:
        """The watermark at which something happens though nothing arrives: the first timer is due,
        but for rules that are parked, or something that was held back is let go."""
        asleep = self.detector.asleep(parked)
        parts = (self._part(name, table) for name, table in carried.tables.items())
        return earliest(part.timer for part in parts if part.node not in asleep)

    def passed_over(
        self,
        carried: Carried,
        batches: Mapping[str, Batch],
        watermark: int,
        parked: Collection[str],
    ) -> dict[str, int]:
        """How many occurrences each parked rule does not see in a step from what was carried."""
        if not parked:
            return {}
        arrived, _ = released(carried.tables, batches, self._events_behind, watermark)
        return self.detector.passed_over(parked, arrived)

    def _looked_over(
        self, tables: Tables, watermark: int, asleep: Collection[str]
    ) -> tuple[int, set[int]]:
        """The rows of the largest part; the partitions in which a timer is due, or something is too
        old, but for nodes that are `asleep`. What was seen of a part is known until it is another
        table."""
        seen: dict[str, _Part] = {}
        largest, due = 0, set()
        for name, table in tables.items():
            part = seen[name] = self._part(name, table)
            largest = max(largest, part.rows)
            if part.node in asleep:
                continue
            if min(part.timer, FOREVER if part.partition == EVERY else part.old) <= watermark:
                due.add(part.partition)
        self._parts = seen
        return largest, due

    def _part(self, name: str, table: pa.Table) -> _Part:
        known = self._parts.get(name)
        if known is not None and known.table is table:
            return known
        if is_held(name):
            return _Part(table, "", EVERY, 0, due_of(table), FOREVER)
        whole, partition = place(name)
        node = self.detector.graph.nodes.get(whole.removeprefix("node:"))
        if node is None or not len(table):
            found = _Part(table, "", partition, 0, FOREVER, FOREVER)
        else:
            found = _Part(
                table, node.digest, partition, len(table), due_of(table), _old(node, table)
            )
        self._parts[name] = found
        return found

    def _touched(
        self, batches: Mapping[str, Batch], due: Collection[int], count: int
    ) -> frozenset[int] | None:
        """The partitions that a step touches; None for all."""
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
    """The number of partitions wanted: more once a part has grown too large."""
    while count < most and largest > ROWS_MAX:
        count, largest = min(count * GROWTH, most), largest // GROWTH
    return count


def _replaced(tables: Tables, read: Parts, parts: Parts) -> Carried:
    """The carried tables with `parts` in place of what was read of them."""
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
    """The names of all tables that may be carried, before they are cut."""
    roles = {role for node in graph.nodes.values() for role in node.roles}
    events = sorted(roles.union(*graph.events.values()))
    return (
        *("node:" + digest for digest in graph.nodes),
        *graph.censuses,
        *("occ:" + event for event in events),
    )


def _spread(graph: Graph) -> frozenset[str]:
    """The event types of which one occurrence may touch all partitions. They are the broadcasts of
    keyed rules, and the events of a rule that another rule uses by other keys."""
    found = {
        node.shape.event
        for root in graph.roots.values()
        for node in (root.walk() if root.streams else ())
        if isinstance(node.shape, Event) and node.shape.columns is None
    }
    return frozenset(found).union(*(graph.events[rule] for rule in _uses_apart(graph)))


def _uses_apart(graph: Graph, *, timed: bool = False) -> Iterator[str]:
    """The rules that a keyed rule uses by other keys than theirs; `timed`: those with timers."""
    for root in graph.roots.values():
        for node in root.walk() if root.streams else ():
            shape = node.shape
            if not isinstance(shape, Detection) or (timed and not graph.roots[shape.rule].timed):
                continue
            if shape.columns is None or not graph.same_keys((shape.rule, shape.columns)):
                yield shape.rule


def _old(node: Node, table: pa.Table) -> int:
    """When the oldest instance that a node carries is dropped for its age."""
    if node.horizon_micros is None:
        return FOREVER
    age = node.horizon_micros + node.horizon_micros // _LATE
    return int(numbers(table, "start").min()) + age
