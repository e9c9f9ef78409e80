"""Cycles of a directed graph of names, as they are shown to whoever wrote them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from tidegate.rules.analysis.graph import tangles

CYCLES_MAX = 20  # that are shown among names which can all reach each other


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
