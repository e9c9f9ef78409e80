"""Open entries, by queue, in the order in which they are to run (G15, G17)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from tidegate.engine.core.entries import Entry


@dataclass(frozen=True, slots=True)
class Waiting:
    """An entry in its queue. It is not tried before `due` (microseconds); `tried`: an attempt has
    begun, perhaps in an earlier run, so that it may have landed."""

    entry: Entry
    due: int = 0
    tried: bool = False

    @property
    def position(self) -> tuple[int, int, int]:
        return self.entry.turn.place, self.entry.turn.order, self.entry.number


class Queues:
    """A queue a rule, and one for its webhooks, ordered by (place, order, number). Only the first
    of a queue may run: an entry that waits for a retry, or is held, holds the later ones of its
    queue and nothing else.

        a: 3 (due in 2 s), 7      b: 4, 5      ->  4, then 5; 3 and 7 after two seconds

    Of the first entries, those of a later stage wait until all of an earlier one were tried.

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
        """When the first of those entries is due that are not due yet; None if there is none."""
        heads = (queue[0] for queue in self._queues.values())
        return min((w.due for w in heads if w.due > now), default=None)

    def count_due(self, now: int) -> int:
        """How many entries the queues have whose first one is due."""
        return sum(len(queue) for queue in self._queues.values() if queue[0].due <= now)

    def ready(self, now: int, running: Collection[Entry]) -> Iterator[Waiting]:
        """The entries that may run beside those that are `running`, in order. What has been taken
        is to be among these before the next one is asked for."""
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


def _waits(entry: Entry, other: Entry) -> bool:
    """Whether an entry waits for another to end. None waits for a detached one, except such: where
    both write a table, Delta lets one commit at a time."""
    return (entry.turn.stage is None or other.turn.stage is not None) and entry.excludes(other)
