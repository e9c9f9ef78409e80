"""The rows of a window, of one key: occurrences of the event types of `of`, each in its role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.reference.meaning import World, leaf_type
from tests.reference.values import Instance, Occurrence, Role
from tidegate.rules.expressions import nodes as x

Row = tuple[Role, Occurrence]


def rows_of(part: x.Expression, world: World) -> list[Row]:
    """Every row of a plain expression. One that stands in it twice counts once."""
    found = dict[Occurrence, Role]()
    for role, name in _leaves(part, ()):
        for occurrence in world.occurrences.get(name, ()):
            found.setdefault(occurrence, role)
    return [(role, occurrence) for occurrence, role in found.items()]


def _leaves(part: x.Expression, role: Role) -> Iterator[tuple[Role, object]]:
    if isinstance(part, x.Or):
        for number, operand in enumerate(part.parts):
            yield from _leaves(operand, (*role, number))
    elif isinstance(part, x.Labelled | x.Instant):
        yield from _leaves(part.part, role)
    else:
        yield role, leaf_type(part)


def in_row_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row[1].end, row[1].rank(), row[1].place(), row[0]))


def held(rows: Iterable[Row], end: int) -> Instance:
    """The detection that some rows are: from the first of them to `end`."""
    parameters = frozenset(rows)
    return Instance(min(o.end for _, o in parameters), end, parameters=parameters)
