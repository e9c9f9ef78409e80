"""The order of rules that fire in one bucket (G15): priority, `precedes` and `follows`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from heapq import heapify, heappop, heappush

from tidegate.rules.analysis.graph import reached
from tidegate.rules.model import Rule


def edges(rules: Mapping[str, Rule]) -> Iterator[tuple[str, str]]:
    """(earlier, later) of every `precedes` and `follows`, as written."""
    for rule in rules.values():
        yield from ((rule.name, later) for later in rule.precedes)
        yield from ((earlier, rule.name) for earlier in rule.follows)


def later_ones(rules: Mapping[str, Rule]) -> dict[str, frozenset[str]]:
    """By rule, those that come after it, through whatever others; what precedes none is left out.

    The transitive closure of `precedes` and `follows`: a partial order where it has no cycle.
    """
    direct: dict[str, list[str]] = {}
    for earlier, later in edges(rules):
        direct.setdefault(earlier, []).append(later)
    return {
        name: frozenset(reached(after, lambda other: direct.get(other, ())))
        for name, after in direct.items()
    }


def stages(fired: Collection[Rule], later: Mapping[str, Collection[str]]) -> dict[str, int]:
    """The stage of each rule that fired: those of one stage may overlap, the stages follow each
    other.

    `later`: `later_ones` of the whole rulebook, so that order holds through rules that did not
    fire. Kahn's algorithm, the greatest priority first. A rule has at least the priority of what
    it precedes; of equals, the one with the greater priority of its own is first. Names decide
    nothing.

    c precedes b, and b has the higher priority: c, b. A rule a without either comes after both,
    as if c were b's first half: {c: 0, b: 1, a: 2}.
    """
    own = {rule.name: rule.priority for rule in fired}
    ahead = {name: [n for n in later.get(name, ()) if n in own] for name in own}
    rank = {name: (-max(own[n] for n in (name, *ahead[name])), -own[name]) for name in own}
    waits = dict.fromkeys(own, 0)
    for names in ahead.values():
        for name in names:
            waits[name] += 1
    ready = [(rank[name], name) for name in own if not waits[name]]
    heapify(ready)
    found: dict[str, int] = {}
    stage = 0
    while ready:
        here, first = [], ready[0][0]
        while ready and ready[0][0] == first:
            here.append(heappop(ready)[1])
        for name in here:
            found[name] = stage
            for following in ahead[name]:
                waits[following] -= 1
                if not waits[following]:
                    heappush(ready, (rank[following], following))
        stage += 1
    return found
