"""`enter` and `step` of the page's section 3, row by row.

A path is the number of the marker that it stands before, or (number, X, Y): a pair of path sets
inside the `&` or `-` of that number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.reference.eventscript.expand import (
    Action,
    And,
    But,
    Empty,
    Many,
    Marker,
    Optional,
    Or,
    Part,
    Some,
    Then,
)

Paths = frozenset[Any]
Matches = Callable[[Marker], bool]


@dataclass(frozen=True)
class Reach:
    """(paths, matched?, places reached)"""

    paths: Paths = frozenset()
    matched: bool = False
    places: frozenset[int] = frozenset()

    def __or__(self, other: Reach) -> Reach:
        """Both united."""
        return Reach(
            self.paths | other.paths,
            self.matched or other.matched,
            self.places | other.places,
        )

    def go_on(self, other: Reach) -> Reach:
        """Paths and places united, with the second's match."""
        return Reach(self.paths | other.paths, other.matched, self.places | other.places)

    @property
    def alive(self) -> bool:
        return bool(self.paths) or self.matched


NOTHING = Reach()
THROUGH = Reach(matched=True)


def enter(part: Part) -> Reach:
    match part:
        case Marker():
            return Reach(frozenset({part.number}))
        case Action():
            return Reach(matched=True, places=frozenset({part.number}))
        case Empty():
            return THROUGH
        case Then():
            first = enter(part.left)
            return first.go_on(enter(part.right)) if first.matched else first
        case Or():
            return enter(part.left) | enter(part.right)
        case Optional() | Many():
            return enter(part.item) | THROUGH
        case Some():
            return enter(part.item)
    return pair(part, enter(part.left), enter(part.right))


def step(part: Part, paths: Paths, matches: Matches) -> Reach:
    """The paths of `part` among `paths` take an event; `matches` tells which markers it fits."""
    match part:
        case Marker():
            if part.number in paths and matches(part):
                return Reach(matched=True, places=frozenset({part.number}))
            return NOTHING
        case Action() | Empty():
            return NOTHING
        case Then():
            first = step(part.left, paths, matches)
            if first.matched:
                first = first.go_on(enter(part.right))
            return first | step(part.right, paths, matches)
        case Or():
            return step(part.left, paths, matches) | step(part.right, paths, matches)
        case Optional():
            return step(part.item, paths, matches)
        case Some() | Many():
            first = step(part.item, paths, matches)
            return first | enter(part.item) | THROUGH if first.matched else first
    united = NOTHING
    for path in paths:
        if isinstance(path, tuple) and path[0] == part.number:
            _, x, y = path
            united |= pair(part, step(part.left, x, matches), step(part.right, y, matches))
    return united


def pair(part: And | But, left: Reach, right: Reach) -> Reach:
    """The rows of `R & S` and `R - S`; neither path nor match gives no places either."""
    if isinstance(part, And):
        goes_on = bool(left.paths) and bool(right.paths)
        matched = left.matched and right.matched
    else:
        goes_on = bool(left.paths)
        matched = left.matched and not right.matched
    if not goes_on and not matched:
        return NOTHING
    paths = frozenset({(part.number, left.paths, right.paths)}) if goes_on else frozenset()
    return Reach(paths, matched, left.places | right.places)


def markers(paths: Paths) -> frozenset[int]:
    """The markers that some path stands before, in pairs too."""
    found = set[int]()
    for path in paths:
        if isinstance(path, tuple):
            found |= markers(path[1]) | markers(path[2])
        else:
            found.add(path)
    return frozenset(found)


def size(paths: Paths) -> int:
    """How many paths there are, those in pairs included."""
    return sum(
        1 + size(path[1]) + size(path[2]) if isinstance(path, tuple) else 1 for path in paths
    )
