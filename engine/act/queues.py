"""Open entries, by queue, in the order in which they are to run (G15, G17)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from tidegate.engine.core.entries import Entry


@dataclass(frozen=True, slots=True)
class Waiting:
    """An entry in its queue. `due`: the next attempt is not before this time, microseconds.
    `tried`: an attempt may have begun, perhaps in an earlier run, so the entry may have landed."""

    entry: Entry
    due: int = 0
    tried: bool = False

    @property
    def position(self) -> tuple[int, int, int]:
        return self.entry.position


class Queues:
    """The queues of open entries (`Entry.queue`), each in order of (place, order, number). Only the
    first entry of a queue may run. While it waits for a retry or is held, it blocks its queue, and
    no other.

        a: 3 (due in 2 s), 7      b: 4, 5      ->  4, then 5; 3 and 7 after two seconds

    Among the first entries, a later stage waits until all of the earlier stage were tried.

        a: 3 (stage 0)      b: 4 (stage 0)      c: 5 (stage 1)      ->  3 and 4 together, then 5
    """

    def __init__(self) -> None:
        self._queues: dict[str, list[Waiting]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def __iter__(self) -> Iterator[Waiting]:
        for queue in self._queues.values():
            yield from queue

    def clear(self) -> None:
        self._queues.clear()

    def put(self, waiting: Iterable[Waiting]) -> None:
        """Add entries, each at its place."""
        names = set()
        for one in waiting:
            self._queues.setdefault(one.entry.queue, []).append(one)
            names.add(one.entry.queue)
        for name in names:
            self._queues[name].sort(key=lambda w: w.position)

    def remove(self, entry: Entry) -> None:
        """Take an entry out, if it is there."""
        left = [w for w in self._queues.get(entry.queue, ()) if w.entry.number != entry.number]
        if left:
            self._queues[entry.queue] = left
        else:
            self._queues.pop(entry.queue, None)

    def next_due(self, now: int) -> int | None:
        """When the next queue becomes due; None if all are due."""
        heads = (queue[0] for queue in self._queues.values())
        return min((w.due for w in heads if w.due > now), default=None)

    def count_due(self, now: int) -> int:
        """How many entries there are in the queues whose first entry is due."""
        return sum(len(queue) for queue in self._queues.values() if queue[0].due <= now)

    def ready(self, now: int, running: Collection[Entry]) -> Iterator[Waiting]:
        """The entries that may run beside those that are `running`, in order. The caller adds an
        entry that it starts to `running` before it asks for the next."""
        heads = sorted((queue[0] for queue in self._queues.values()), key=lambda w: w.position)
        stages = [(w.entry.bucket, w.entry.turn.stage or 0) for w in heads if w.entry.ordered]
        first = min(stages, default=None)
        passed: list[Entry] = []
        for one in heads:
            entry = one.entry
            if one.due > now or any(entry.number == other.number for other in running):
                continue
            if entry.ordered and (entry.bucket, entry.turn.stage or 0) != first:
                continue
            if any(_waits(entry, other) for other in (*running, *passed)):
                passed.append(entry)
                continue
            yield one

    def beside(
        self,
        first: Waiting,
        now: int,
        running: Collection[Entry],
        joins: Callable[[Waiting], bool],
        most: int,
    ) -> list[Waiting]:
        """`first`, which is ready, and the entries that may run in its commit, in order; at most
        `most`. After an entry that joins, the next one of its queue may, too."""
        others = [queue for queue in self._queues.values() if queue[0] is not first]
        heads = [queue[0] for queue in others]
        found = [first]
        entries = [*running, first.entry]
        for head in self.ready(now, entries):
            if len(found) < most and head in heads and joins(head):
                found.append(head)
                entries.append(head.entry)
        left = [head.entry for head in heads if head not in found]
        for one in found[:]:
            for after in self._queues[one.entry.queue][1:]:
                free = after.due <= now and not any(_waits(after.entry, other) for other in left)
                if len(found) == most or not free or not joins(after):
                    break
                found.append(after)
        return sorted(found, key=lambda w: w.position)


def _waits(entry: Entry, other: Entry) -> bool:
    """Whether an entry waits for another one to end, because they exclude each other. Only detached
    entries wait for detached ones."""
    return (entry.turn.stage is None or other.turn.stage is not None) and entry.excludes(other)
