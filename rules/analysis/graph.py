"""Directed graphs of names: strongly connected parts, which can reach each other; and cycles, as
they are shown to whoever wrote them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
CYCLES_MAX = 20  # that are shown among names which can all reach each other


def tangles(follows: Mapping[T, Collection[T]]) -> Iterator[tuple[T, ...]]:
    """The strongly connected components, Tarjan's algorithm without recursion: O(nodes + edges).

    `follows`: by node, those that an edge leads to. A component of one node is given only if an
    edge leads from the node to itself.
    """
    number: dict[T, int] = {}  # in order of arrival
    low: dict[T, int] = {}  # the lowest number that is reached and still open
    open_: dict[T, None] = {}
    for root in follows:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        open_[root] = None
        way = [(root, iter(follows[root]))]
        while way:
            node, ahead = way[-1]
            for target in ahead:
                if target not in number:
                    number[target] = low[target] = len(number)
                    open_[target] = None
                    way.append((target, iter(follows.get(target, ()))))
                    break
                if target in open_:
                    low[node] = min(low[node], number[target])
            else:
                way.pop()
                if way:
                    above = way[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == number[node]:
                    yield from _closed(node, open_, follows)


def _closed(
    node: T, open_: dict[T, None], follows: Mapping[T, Collection[T]]
) -> Iterator[tuple[T, ...]]:
    """Take the component that began with `node` off the open nodes."""
    found = []
    while node in open_:
        found.append(open_.popitem()[0])
    if len(found) > 1 or node in follows.get(node, ()):
        yield tuple(found)


def cycles(follows: Mapping[str, Collection[str]]) -> Iterator[tuple[str, ...]]:
    """The first cycles of each tangle, from a name to itself, in the order of `follows`.

    `follows`: by name, those that an edge leads to.
    """
    at = {name: number for number, name in enumerate(follows)}
    found = [sorted(tangle, key=at.__getitem__) for tangle in tangles(follows)]
    for tangle in sorted(found, key=lambda names: at[names[0]]):
        inside = {*tangle}
        yield from _of(
            {name: [other for other in follows[name] if other in inside] for name in tangle}, at
        )


def _of(follows: dict[str, list[str]], at: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """The first cycles among names all of which can reach each other."""
    for _ in range(CYCLES_MAX):
        try:
            TopologicalSorter(follows).prepare()
            return
        except CycleError as error:
            cycle = list(reversed(error.args[1]))
        first = min(cycle[:-1], key=at.__getitem__)
        turned = cycle.index(first)
        yield (*cycle[turned:-1], *cycle[:turned], first)
        del follows[first]  # breaks it, to find the next one
