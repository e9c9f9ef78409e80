"""The columns that a rule's conditions read of its occurrences before it detects: its `where`, and
the `fire` and `rearm` of a window.

Example: `avg(celsius) > 80` over a window of [oven, kiln] reads celsius of oven and of kiln.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.rules.algebra.named_parts import named_parts, parts_of
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions import windows as w
from tidegate.rules.model import Pattern


def conditions_of(pattern: Pattern) -> tuple[w.Asked, ...]:
    """The conditions of a window over its rows; none for another expression."""
    on = pattern.on
    if not isinstance(on, w.Crossing):
        return ()
    return (on.fire, on.rearm) if on.rearm else (on.fire,)


def aggregates_of(pattern: Pattern) -> Iterator[p.Aggregate]:
    """The aggregates of columns in the conditions of a window."""
    for asked in conditions_of(pattern):
        yield from (one for one in p.aggregates(asked.tree) if one.column != p.EVERY_ROW)


def asked_columns(pattern: Pattern) -> Iterator[tuple[p.Column, str]]:
    """Each column with an event type that it is read of."""
    if pattern.where:
        parts = named_parts(pattern.on)
        for column in p.columns(pattern.where.tree):
            for part in parts_of(column, parts):
                yield column, part.event
    for aggregate in aggregates_of(pattern):
        for event in sorted(x.names_in(pattern.on)):
            yield aggregate.of_rows, event
