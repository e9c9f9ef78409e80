"""The streams of a search: the occurrences that one key has not consumed at one instant."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidegate.engine.detect.events.graph.search.comparison import Entries

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Item:
    """One instance of a stream: an occurrence, or what is given."""

    start: int
    end: int
    entries: Entries

    def moved(self, shift: int) -> Entries:
        """Its entries with their roles moved up."""
        return tuple((role + shift, row) for role, row in self.entries) if shift else self.entries


@dataclass(frozen=True, slots=True)
class Streams:
    """By the number of the stream: occurrences by event type, what is given, and the intervals of
    what is only looked at; each in order of end."""

    events: Sequence[list[Item]]
    given: Sequence[list[Item]]
    looked: Sequence[list[Interval]]

    def nothing(self) -> Streams:
        """As many streams, empty."""
        return Streams(
            [[] for _ in self.events], [[] for _ in self.given], [[] for _ in self.looked]
        )

    def keep(self, held: Callable[[Item], bool]) -> None:
        """Drop all other items."""
        for stream in (*self.events, *self.given):
            stream[:] = filter(held, stream)

    def forget(self, oldest: int) -> None:
        """Drop what ended before an instant."""
        for stream in (*self.events, *self.given):
            if stream and stream[0].end < oldest:
                del stream[: bisect_left(stream, oldest, key=lambda item: item.end)]

    def move(self, now: int, coming: Streams, held: Callable[[Item], bool]) -> None:
        """Takes the items that end by `now` out of `coming`, whose streams are in descending order,
        and keeps those that are `held`."""
        for streams, later in ((self.events, coming.events), (self.given, coming.given)):
            for stream, source in zip(streams, later, strict=True):
                while source and source[-1].end <= now:
                    item = source.pop()
                    if held(item):
                        stream.append(item)
        for looked, waiting in zip(self.looked, coming.looked, strict=True):
            while waiting and waiting[-1][1] <= now:
                looked.append(waiting.pop())
