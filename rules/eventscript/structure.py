"""Checks of a whole regular expression: how many places it has, and what runs in circles."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from tidegate.rules.errors import Problem
from tidegate.rules.eventscript import tree as t
from tidegate.rules.eventscript.regexes import below


def size(node: t.Regex) -> int:
    """Markers and blocks, each as often as counts repeat it (`eventscript.md` 3: `R{i,}` is
    i - 1 copies and `R+`)."""
    if isinstance(node, t.Repeat):
        copies = max(1, node.low) if node.high is None else node.high
        return copies * size(node.item)
    return sum(map(size, below(node))) or int(not below(node))


class _Ends(NamedTuple):
    """Of a part: in how many ways places follow each other in it, how many of its places can be the
    first and the last, and whether it can be left out."""

    ways: int
    first: int
    last: int
    empty: bool


def followers(node: t.Regex) -> int:
    """How many pairs of places follow each other without an event between, counts expanded: what
    the text leads to from all places together. `((A())?){n}` has n * (n - 1) / 2."""
    return _ends(node).ways


def _ends(node: t.Regex) -> _Ends:
    parts = [_ends(each) for each in below(node)]
    if isinstance(node, t.Repeat):
        return _repeated(parts[0], node.low, node.high) if parts else _Ends(0, 0, 0, True)
    if isinstance(node, t.Sequence):
        return reduce(_joined, parts)
    if not parts:
        return _Ends(0, 1, 1, isinstance(node, t.Act))
    ways, first, last = (sum(each[n] for each in parts) for n in range(3))
    return _Ends(ways, first, last, any(each.empty for each in parts))


def _joined(one: _Ends, other: _Ends) -> _Ends:
    return _Ends(
        one.ways + other.ways + one.last * other.first,
        one.first + (other.first if one.empty else 0),
        other.last + (one.last if other.empty else 0),
        one.empty and other.empty,
    )


def _repeated(item: _Ends, low: int, high: int | None) -> _Ends:
    count = max(1, low) if high is None else high
    pairs = count * (count - 1) // 2 if item.empty else count - 1
    ways = count * item.ways + (pairs + (high is None)) * item.first * item.last
    ends = count if item.empty or high is not None else 1
    return _Ends(
        ways,
        item.first * (count if item.empty else 1),
        item.last * (ends if item.empty else min(ends, count - low + 1)),
        item.empty or low == 0,
    )


def endless(node: t.Regex) -> list[Problem]:
    """Blocks that lead to themselves without an event (the cyclic check of section 4.2)."""
    found: list[Problem] = []
    _silent(node, found)
    return list(dict.fromkeys(found))


def _silent(node: t.Regex, found: list[Problem]) -> tuple[t.Act, ...] | None:
    """The blocks on ways through `node` on which no event is taken; None where there is none. `&`
    and `-` are read as `|`."""
    if isinstance(node, t.Act):
        return (node,)
    parts = [_silent(each, found) for each in below(node)]
    known = [each for each in parts if each is not None]
    together = tuple(act for each in known for act in each)
    if isinstance(node, t.Repeat):
        if node.high is None:
            found.extend(_problem(act, node) for act in together)
        return together if known or node.low == 0 else None
    if isinstance(node, t.Sequence):
        return together if len(known) == len(parts) else None
    return together if known else None


def _problem(act: t.Act, repeat: t.Repeat) -> Problem:
    place = repeat.place
    message = (
        "this block leads to itself without an event,"
        f" by what repeats at {place.line}:{place.column}"
    )
    hint = "let every round take an event: (A() { .. })*"
    return Problem("endless", message, act.place, hint)
