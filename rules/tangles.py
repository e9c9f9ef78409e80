"""Strongly connected parts of a directed graph: what can reach each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping


def tangles(follows: Mapping[str, Collection[str]]) -> Iterator[tuple[str, ...]]:
    """The strongly connected components, Tarjan's algorithm without recursion: O(nodes + edges).

    `follows`: by node, those that an edge leads to. A component of one node is given only if an
    edge leads from the node to itself.
    """
    number: dict[str, int] = {}  # in order of arrival
    low: dict[str, int] = {}  # the lowest number that is reached and still open
    open_: dict[str, None] = {}
    for root in follows:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        open_[root] = None
        way = [(root, iter(follows[root]))]
        while way:
            node, ahead = way[-1]
            fresh = None
            for target in ahead:
                if target not in number:
                    fresh = target
                    break
                if target in open_:
                    low[node] = min(low[node], number[target])
            if fresh is not None:
                number[fresh] = low[fresh] = len(number)
                open_[fresh] = None
                way.append((fresh, iter(follows.get(fresh, ()))))
                continue
            way.pop()
            if way:
                above = way[-1][0]
                low[above] = min(low[above], low[node])
            if low[node] == number[node]:
                yield from _closed(node, open_, follows)


def _closed(
    node: str, open_: dict[str, None], follows: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, ...]]:
    """Take the component that began with `node` off the open nodes."""
    found = []
    while node in open_:
        found.append(open_.popitem()[0])
    if len(found) > 1 or node in follows.get(node, ()):
        yield tuple(found)
