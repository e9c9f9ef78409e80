"""The node of an expression whose choice is searched for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.operators import every
from tidegate.engine.detect.events.graph.roles import roles
from tidegate.engine.detect.events.graph.search.candidate_instants import Where
from tidegate.engine.detect.events.graph.search.choice import Choice
from tidegate.engine.detect.events.graph.search.pruning import Looking
from tidegate.engine.detect.events.graph.search.selection import Selecting, selecting
from tidegate.engine.detect.events.graph.search.sifted import Sifted, without
from tidegate.engine.detect.events.graph.search.streams import (
    Looked,
    Reading,
    ends,
    lasting,
    leaves,
)
from tidegate.rules.algebra.points import reach_micros
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Context, Selection

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


def nested(
    e: x.Expression, context: Context | Selection, build: Builder, *, few: bool = False
) -> Node:
    """The choice among the instances of an expression without labels. `few`: the last occurrences
    are all that matters (`search.latest`)."""
    bare = without(e)
    root = build.operand(bare, None)
    reading = Reading(roles(e))
    shape = _choice(e, context, reading, build, few=few)
    # a window may have opened long before what stands in it
    horizon = None if shape.windows else shape.horizon_micros
    operands = (
        *(_stream(read, build) for read in reading.streams),
        *(build.operand(part, horizon) for part in reading.looked),
    )
    operands = build.alike((root, *operands), horizon)[1:]
    found = build.make(
        bare,
        shape,
        operands if shape.where.paths else (*operands, root),
        root.keys,
        horizon,
        point=root.point,
        timed=root.timed or shape.where.from_start,
        apart=root.apart,
    )
    return replace(found, roles=root.roles)


def asked(e: Sifted, build: Builder, _: int | None) -> Node:
    """The node of a part with a condition, inside an expression that is detected in `restricted`.
    Every assignment must be looked at, for the greatest of an operand may not be one that is
    left."""
    return nested(e, Context.RESTRICTED, build)


def _stream(read: str | x.Expression, build: Builder) -> Node:
    """The node of a stream: all rows of an event type, as points if it is `instant` of one; all
    that `every` gives at an instant."""
    if isinstance(read, str):
        return build.event(read, all_rows=True)
    if isinstance(read, x.Instant):
        return build.rows(read, None)
    if isinstance(read, x.Every):
        return every.node(read, build, None, all_rows=True)
    return build.operand(read, None)


def _choice(
    e: x.Expression, context: Context | Selection, reading: Reading, build: Builder, *, few: bool
) -> Choice:
    tree = reading.read(e)
    e = without(e)
    lengthy = [n for n in x.names_in(e) if n in build.roots and not build.roots[n].point]
    longest = reach_micros(e, lengthy)
    how: Context | Selecting = (
        selecting(context, tree, build.zone, _of_pair(e, longest, lengthy))
        if isinstance(context, Selection)
        else context
    )
    passing = frozenset[int]()
    if isinstance(how, Context):
        kept = {leaf.stream for leaf in lasting(tree)}
        passing = frozenset(range(len(reading.streams))) - kept
    events = [role.event for role in reading.roles]
    counted = [part for part in reading.streams if isinstance(part, x.Every | x.Nth)]
    names = {role.event for part in counted for role in roles(part)}
    return Choice(
        how,
        tree,
        build.zone,
        tuple(reading.streams.values()),
        len(reading.looked),
        _where(how, tree),
        passing,
        frozenset(n for n, role in enumerate(reading.roles) if role.event in names),
        frozenset(n for n, role in enumerate(reading.roles) if not role.parameter),
        frozenset(_looking(tree)),
        longest if isinstance(how, Context) else None,
        tuple(events.index(event) for event in events),
        build.settings.carried_per_key_max,
        build.settings.search_steps_max,
        few,
    )


def _looking(tree: x.Expression) -> Iterator[Looking]:
    """What opens and closes each `A(a, b, c)`."""
    for node in tree.walk():
        match node:
            case x.Aperiodic(opener=Looked(stream=opener), closer=Looked(stream=closer)):
                yield opener, closer
            case x.Aperiodic(opener=Looked(stream=opener), closer=x.Own(duration=length)):
                yield opener, length


def _where(how: Context | Selecting, tree: x.Expression) -> Where:
    """What is consumed may change where a window of `A*` or `P*` ends; a selection at the end of
    its span looks there."""
    if isinstance(how, Selecting) and how.at_end is not None:
        numbers = {leaf.stream for leaf in leaves(tree)}
        return Where(tuple((number, (how.at_end,)) for number in sorted(numbers)), True)
    if not any(isinstance(node, x.AperiodicStar) for node in tree.walk()):
        return Where()
    return Where(tuple(dict.fromkeys((leaf.stream, path) for leaf, path in ends(tree))))


def _of_pair(
    e: x.Expression, longest: int | None, lengthy: Collection[str]
) -> tuple[int, int] | None:
    """How far back a pair and its operands can reach; None: there is no such bound."""
    while isinstance(e, x.Within | x.Minus):
        e = e.part
    operands = [reach_micros(operand, lengthy) for operand in e.operands()]
    known = [length for length in operands if length is not None]
    return (longest, max(known)) if longest is not None and len(known) == len(operands) else None
