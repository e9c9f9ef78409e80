"""Which timed markers can be due at one instant, as far as the text shows (`eventscript.md` 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tidegate.engine.detect.scripts.places import Marker, Places
from tidegate.rules.eventscript import tree

_Due = tuple[Any, ...]


class Together:
    """Markers with equal operands are always due together: all operands are taken at the same
    instant. `elapse` is never due with `arrive`, and neither are two whose constants differ."""

    def __init__(self, places: Places) -> None:
        self._due: dict[int, _Due] = {
            part.number: _due(part.tree)
            for part in places.places
            if isinstance(part, Marker) and isinstance(part.tree, tree.Elapse | tree.Arrive)
        }

    def sets(self, timed: Sequence[int]) -> Iterator[frozenset[int]]:
        """Each set of the markers that may be due together, small ones first."""
        groups: dict[_Due, list[int]] = {}
        for place in timed:
            groups.setdefault(self._due[place], []).append(place)
        kinds = [*groups]
        waiting: list[tuple[int, ...]] = [(n,) for n in range(len(kinds))]
        for chosen in waiting:  # which grows meanwhile
            yield frozenset(place for n in chosen for place in groups[kinds[n]])
            waiting += [
                (*chosen, n)
                for n in range(chosen[-1] + 1, len(kinds))
                if all(_may_meet(kinds[n], kinds[m]) for m in chosen)
            ]


def _due(marker: tree.Elapse | tree.Arrive) -> _Due:
    """What says when a marker is due; a part that only running tells is no number."""
    if isinstance(marker, tree.Elapse):
        amount = marker.amount
        if isinstance(amount, tree.Literal):
            return "elapse", round(amount.value * marker.unit_micros)
        return "elapse", (amount, marker.unit_micros)
    if marker.instant is not None:
        return "instant", marker.instant
    return "clock", *(
        each.value if isinstance(each, tree.Literal) else each for each in marker.components
    )


def _may_meet(one: _Due, other: _Due) -> bool:
    """Whether the text leaves it open that two are due at one instant."""
    if (one[0] == "elapse") != (other[0] == "elapse"):
        return False
    if one[0] != other[0]:
        return True
    pairs = zip(one[1:], other[1:], strict=True)
    return not any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)
