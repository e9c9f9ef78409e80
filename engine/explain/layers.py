"""A layered drawing of a graph (Sugiyama): columns from left to right, few crossings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tidegate.engine.explain.picture import Arrow, Picture

_SWEEPS = 6


@dataclass(frozen=True, slots=True)
class Layers:
    """columns: ids from left to right, each column from top to bottom; beside those of boxes, ids
    of the places where long arrows pass. routes[n]: the ids along arrow n, from end to end; empty
    for an arrow that points back."""

    columns: tuple[tuple[str, ...], ...]
    routes: tuple[tuple[str, ...], ...]


def layers(picture: Picture) -> Layers:
    """A box stands behind all that point to it; arrows that close a cycle point back. Within a
    column the order follows the mean place of the neighbours, to and fro."""
    level = _levels(picture)
    routes = tuple(_route(arrow, number, level) for number, arrow in enumerate(picture.arrows))
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    columns: list[list[str]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for id_, at in level.items():
        columns[at].append(id_)
    for route in routes:
        for source, target in pairwise(route):
            before.setdefault(target, []).append(source)
            after.setdefault(source, []).append(target)
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        for column in columns if forward else reversed(columns):
            _sort(column, before if forward else after, _places(columns))
    return Layers(tuple(map(tuple, columns)), routes)


def _route(arrow: Arrow, number: int, level: dict[str, int]) -> tuple[str, ...]:
    """The ids along an arrow; those between its ends are put into their levels."""
    first, last = level[arrow.source], level[arrow.target]
    if last <= first:
        return ()
    passed = {f"{number}:{at}": at for at in range(first + 1, last)}
    level.update(passed)
    return (arrow.source, *passed, arrow.target)


def _levels(picture: Picture) -> dict[str, int]:
    """The longest way from a box that nothing points to, cycles cut where they are met; such a box
    itself stands close to what it points to."""
    before: dict[str, list[str]] = {box.id: [] for box in picture.boxes}
    after: dict[str, list[str]] = {box.id: [] for box in picture.boxes}
    for arrow in picture.arrows:
        if arrow.source != arrow.target:
            before[arrow.target].append(arrow.source)
            after[arrow.source].append(arrow.target)
    level: dict[str, int] = {}
    open_: set[str] = set()

    def visit(id_: str) -> int:
        if id_ not in level:
            open_.add(id_)
            ahead = [visit(source) for source in before[id_] if source not in open_]
            open_.discard(id_)
            level[id_] = 1 + max(ahead, default=-1)
        return level[id_]

    for id_ in before:
        visit(id_)
    for id_, sources in before.items():
        if not sources and after[id_]:
            level[id_] = max(0, min(level[target] for target in after[id_]) - 1)
    return level


def _places(columns: Sequence[Sequence[str]]) -> dict[str, float]:
    """How far down its column each box stands, from 0 to 1."""
    return {
        id_: (place + 0.5) / len(column) for column in columns for place, id_ in enumerate(column)
    }


def _sort(
    column: list[str], neighbours: Mapping[str, list[str]], places: Mapping[str, float]
) -> None:
    def wanted(id_: str) -> float:
        near = [places[other] for other in neighbours.get(id_, ())]
        return sum(near) / len(near) if near else places[id_]

    column.sort(key=wanted)
