"""Open entries, by rule, in the order in which they are to run (G15, G17)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidegate.engine.entries import Entry


@dataclass(frozen=True, slots=True)
class Waiting:
    """An entry in its queue. It is not tried before `due` (microseconds); `tried`: an attempt has
    begun, perhaps in an earlier run, so that it may have landed."""

    entry: Entry
    due: int = 0
    tried: bool = False


class Queues:
    """A queue a rule, ordered by (place, number). Only the first of a queue may run: an entry that
    waits for a retry, or is held, holds the later ones of its rule and nothing else.

        a: 3 (due in 2 s), 7      b: 4, 5      ->  next is 4, then 5; 3 and 7 after two seconds
    """

    def __init__(self) -> None:
        self._by_rule: dict[str, list[Waiting]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_rule.values()))

    def __iter__(self) -> Iterator[Waiting]:
        for queue in self._by_rule.values():
            yield from queue

    def clear(self) -> None:
        self._by_rule.clear()

    def put(self, waiting: Iterable[Waiting]) -> None:
        """Add entries, each at its place."""
        rules = set()
        for one in waiting:
            self._by_rule.setdefault(one.entry.rule, []).append(one)
            rules.add(one.entry.rule)
        for rule in rules:
            self._by_rule[rule].sort(key=lambda w: (w.entry.place, w.entry.number))

    def remove(self, entry: Entry) -> None:
        """Take an entry out, if it is there."""
        left = [w for w in self._by_rule.get(entry.rule, ()) if w.entry.number != entry.number]
        if left:
            self._by_rule[entry.rule] = left
        else:
            self._by_rule.pop(entry.rule, None)

    def next(self, now: int) -> Waiting | None:
        """Of the first entries of all queues that are due, the one with the least place."""
        due = (queue[0] for queue in self._by_rule.values() if queue[0].due <= now)
        return min(due, key=lambda w: (w.entry.place, w.entry.number), default=None)
