"""Strongly connected parts of a directed graph: what can reach each other."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


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
