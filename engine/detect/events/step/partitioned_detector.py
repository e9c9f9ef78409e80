"""A detector over state in partitions: a step reads and writes only those that it touches (G26).

Example: rule `a ; b` per k, 16 partitions. A row a(k=7) arrives, and 7 is of partition 3. The step
reads the parts `/3` and `/every` of all tables. It runs as if nothing else were carried, and writes
the parts that changed. The other fifteen partitions are neither read nor written. Where a step
touches all, nothing is read: the state is in hand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.state_parts import Shelf, loaded
from tidegate.engine.core.values import FOREVER, Batch, Carried, Stepped
from tidegate.engine.detect.events.graph.graph import Graph
from tidegate.engine.detect.events.graph.operators.detection import Detection
from tidegate.engine.detect.events.graph.operators.event import Event
from tidegate.engine.detect.events.state.held_back import check_held, is_held, released
from tidegate.engine.detect.events.state.partitions import (
    EVERY,
    GROWTH,
    Seen,
    count_of,
    due_of,
    earliest,
    partitions,
    wanted,
)
from tidegate.engine.detect.events.state.shares import reunited
from tidegate.engine.detect.events.state.tables import check
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.key_codes import select


class Partitioned:
    """A detector whose state is cut into `count_max` partitions at most."""

    def __init__(self, detector: Detector, count_max: int, *, adopted: bool = False) -> None:
        """`adopted`: what it will be given was left by a step of the same rulebook. The first step
        touches all else, and drops what another one has left."""
        self.detector = detector
        self._count_max = count_max
        self._spread = _spread(detector.graph)
        self._spread_timed = any(_uses_apart(detector.graph, timed=True))
        self._events_behind = frozenset(
            e for e in detector.events if EventKey.of(e).behind is not None
        )
        self._adopted = adopted
        self._seen = Seen()

    def step(
        self,
        carried: Carried,
        batches: Mapping[str, Batch],
        watermark: int,
        last: int | None = None,
        parked: Collection[str] = (),
        limit: int | None = None,
        shelf: Shelf | None = None,
        count: int | None = None,
    ) -> Stepped:
        """`Detector.step` on the partitions that are touched: by arrivals, by due timers, by
        instances that are too old. Arrivals above the watermark of rules that run behind are held
        back for them. A step that a limit stops is done again, whole, with fewer arrivals.
        `shelf`: of parts that lie in files; those that are touched are read. `count`: into so many
        partitions what is carried is cut; None: as its size says. Raises as `Shelf.read`."""
        stored = carried.tables
        if not self._adopted:
            check(stored)
            check_held(stored, self.detector.events)
        met = reunited(stored, shelf)
        tables = {name: table for name, table in met.items() if not is_held(name)}
        batches, held = released(stored, batches, self._events_behind, watermark)
        seen, asleep = self._seen.of(tables), self._asleep(parked)
        parts, before = seen.values(), count_of(tables.values())
        most = count
        if most is None:
            nodes = (p for p in parts if p.whole.startswith("node:"))
            most = wanted(before, nodes, self._count_max)
        due = {p.partition for p in parts if p.whole not in asleep and p.waits_until(watermark)}
        touched = None if most > before else self._touched(batches, due, before)
        if touched is None:
            read = Carried(loaded(tables, shelf), decoded=carried.decoded)
        else:
            some = {n: p.table for n, p in seen.items() if p.partition in touched}
            read = Carried(loaded(some, shelf))
        made = self.detector.step(read, batches, watermark, last, parked, limit, most)
        self._adopted = True
        if watermark == FOREVER:
            return made._replace(carried=Carried({}, frozenset(stored)))
        left = made.carried
        unread = (
            {} if touched is None else {n: t for n, t in tables.items() if n not in read.tables}
        )
        old = {name for name in stored if is_held(name)}
        changed = {n for n in old | held.keys() if held.get(n) is not stored.get(n)}
        if met is not stored:
            changed |= stored.keys() - met.keys()
            changed |= {name for name, table in met.items() if stored.get(name) is not table}
        known = left.decoded if touched is None else None
        left = Carried({**unread, **left.tables, **held}, left.changed | changed, known)
        return made._replace(carried=left)

    def next_due(self, carried: Carried, parked: Collection[str]) -> int | None:
        """The watermark at which something happens though nothing arrives: the first timer is due,
        but for rules that are parked, or something that was held back is let go."""
        asleep = self._asleep(parked)
        held = [due_of(table) for name, table in carried.tables.items() if is_held(name)]
        tables = {name: table for name, table in carried.tables.items() if not is_held(name)}
        parts = self._seen.of(tables).values()
        return earliest([*held, *(p.due for p in parts if p.whole not in asleep)])

    def _asleep(self, parked: Collection[str]) -> frozenset[str]:
        """The tables of the nodes that are not stepped when these rules are parked."""
        if not parked:
            return frozenset()
        return frozenset("node:" + digest for digest in self.detector.asleep(parked))

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
