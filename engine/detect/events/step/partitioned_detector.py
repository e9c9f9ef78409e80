"""A detector over state in partitions: a step reads and writes only those that it touches (G26).

Example: rule `a ; b` per k, 16 partitions. A row a(k=7) arrives, and 7 is of partition 3. The step
reads the parts `/3` and `/every` of all tables. It runs as if nothing else were carried, and writes
the parts that changed. The other fifteen partitions are neither read nor written, so what nodes
with keys carry of every key stays: a key of these may need it. Where a step touches all, nothing is
read: the state is in hand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.state_parts import Shelf, loaded
from tidegate.engine.core.values import FOREVER, Batch, Carried, Stepped
from tidegate.engine.detect.events.graph.graph import Graph, Node
from tidegate.engine.detect.events.graph.operators.detection import Detection
from tidegate.engine.detect.events.graph.operators.event import Event
from tidegate.engine.detect.events.state.held_back import check_held, released
from tidegate.engine.detect.events.state.partitions import (
    EVERY,
    GROWTH,
    due_of,
    earliest,
    partitions,
    wanted,
)
from tidegate.engine.detect.events.state.parts import Parts
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
        graph = detector.graph
        needing = _needing_all(graph)
        self._resting = frozenset(EventKey.of(rule).event for rule in needing)
        """The rules to which nothing happens in a step of some partitions."""
        self._spread = _spread(graph).union(*(graph.events[rule] for rule in needing))
        used = {*_uses_apart(graph)}.union(*(graph.uses[rule] for rule in needing))
        self._spread_timed = any(graph.roots[rule].timed for rule in used | needing)
        self._patient = self._asleep(() if self._spread_timed else self._resting)
        """Of those the nodes, where time changes nothing of them: what is too old goes when all
        partitions are touched."""
        self._events_behind = frozenset(
            e for e in detector.events if EventKey.of(e).behind is not None
        )
        self._adopted = adopted
        self._known = Parts()

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
        stored = self._parts(carried)
        if not self._adopted:
            check(stored)
            check_held(stored, self.detector.events)
        tables = reunited(stored, shelf)
        batches, held = released(stored, batches, self._events_behind, watermark)
        before = tables.count
        most = wanted(before, tables.largest, self._count_max) if count is None else count
        due = tables.waiting(watermark, self._patient | self._asleep(parked))
        touched = None if most > before else self._touched(batches, due, before)
        some = tables.named(touched)
        known = carried.decoded if touched is None else None
        read = Carried(loaded(some, shelf), decoded=known)
        of_some = touched is not None
        old = [whole.removeprefix("node:") for whole in tables.old(watermark)]
        if of_some:
            parked = self._resting.union(parked)
        made = self.detector.step(
            read, batches, watermark, last, parked, limit, most, of_some=of_some, old=old
        )
        self._adopted = True
        if watermark == FOREVER:
            return made._replace(carried=Carried({}, frozenset(stored)))
        left = made.carried
        new = {name: table for name, table in left.tables.items() if some.get(name) is not table}
        kept = tables.with_(new, some.keys() - left.tables.keys())
        after, known = Parts(kept.groups, held), left.decoded if touched is None else None
        changed = left.changed
        if held or stored.rest:  # what is kept apart has a table of shares in the rest
            changed |= tables.beside(held).differing(stored)
        return made._replace(carried=Carried(after, changed, known))

    def next_due(self, carried: Carried, parked: Collection[str]) -> int | None:
        """The watermark at which something happens though nothing arrives: the first timer is due,
        but for rules that are parked, or something that was held back is let go."""
        tables = self._parts(carried)
        held = map(due_of, tables.rest.values())
        return earliest([*held, tables.due(self._asleep(parked))])

    def _parts(self, carried: Carried) -> Parts:
        self._known = Parts.of(carried.tables, self._known)
        return self._known

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


def _needing_all(graph: Graph) -> frozenset[str]:
    """The rules that need to know all keys of a rule: they use it by other keys or by none, or use
    such a rule. What they carry depends on where later detections of all these keys may start.

    Example: `r: a ; b` per k, `s: x ; r`. An a of key 1 waits for its b. Of the x's, `s` carries
    the latest, and the latest before that a.
    """
    found = set[str]()
    for rule, root in graph.roots.items():  # each after those that it uses
        for node in root.walk():
            shape = node.shape
            if isinstance(shape, Detection) and (
                shape.rule in found or (_apart(graph, shape) and _begins(graph.roots[shape.rule]))
            ):
                found.add(rule)
    return frozenset(found)


def _begins(root: Node) -> bool:
    """Whether some key of a rule may have begun what it detects later."""
    return bool(root.streams) and not root.point


def _apart(graph: Graph, shape: Detection) -> bool:
    """Whether a rule's detections are seen by other keys than its own, or by none."""
    return shape.columns is None or not graph.same_keys((shape.rule, shape.columns))


def _uses_apart(graph: Graph) -> Iterator[str]:
    """The rules that a keyed rule uses by other keys than theirs."""
    for root in graph.roots.values():
        for node in root.walk() if root.streams else ():
            if isinstance(node.shape, Detection) and _apart(graph, node.shape):
                yield node.shape.rule
