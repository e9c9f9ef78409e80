"""The node of an expression whose choice is searched for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.operators import every
from tidegate.engine.detect.events.graph.roles import roles
from tidegate.engine.detect.events.graph.search.candidate_instants import Where
from tidegate.engine.detect.events.graph.search.choice import Choice
from tidegate.engine.detect.events.graph.search.pruning import Looking
from tidegate.engine.detect.events.graph.search.selection import Selecting, selecting
from tidegate.engine.detect.events.graph.search.streams import (
    After,
    Given,
    Leaf,
    Looked,
    Reading,
    ends,
    lasting,
    leaves,
)
from tidegate.rules.algebra.transformation import transform
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Context, Selection

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


def nested(
    e: x.Expression, context: Context | Selection, build: Builder, *, few: bool = False
) -> Node:
    """The choice among the instances of an expression without labels. `few`: the last occurrences
    are all that matters (`search.latest`)."""
    root = build.operand(e, None)
    reading = Reading(build.zone, roles(e))
    shape = _choice(e, context, reading, build, few=few)
    # a window may have opened long before what stands in it
    horizon = None if shape.windows else shape.horizon_micros
    operands = (
        *(build.event(name, all_rows=True) for name in reading.events),
        *(_given(part, build) for part in reading.given),
        *(build.operand(part, horizon) for part in reading.looked),
    )
    operands = build.alike((root, *operands), horizon)[1:]
    found = build.make(
        e,
        shape,
        operands if shape.where.paths else (*operands, root),
        root.keys,
        horizon,
        point=root.point,
        timed=root.timed or shape.where.from_start,
        apart=root.apart,
    )
    return replace(found, roles=root.roles)


def _given(e: x.Expression, build: Builder) -> Node:
    """What is the same whatever is consumed; all that `every` gives at an instant."""
    if isinstance(e, x.Every):
        return every.node(e, build, None, all_rows=True)
    return build.operand(e, None)


def _choice(
    e: x.Expression, context: Context | Selection, reading: Reading, build: Builder, *, few: bool
) -> Choice:
    tree = reading.read(e)
    events = len(reading.events)
    lengthy = [n for n in x.names_in(e) if n in build.roots and not build.roots[n].point]
    longest = _length(e, lengthy)
    how: Context | Selecting = (
        selecting(context, tree, _of_pair(e, longest, lengthy))
        if isinstance(context, Selection)
        else context
    )
    passing = frozenset[int]()
    if isinstance(how, Context):
        kept = {_number(leaf, events) for leaf in lasting(tree)}
        passing = frozenset(range(events + len(reading.given))) - kept
    counted = [part for part in reading.given if isinstance(part, x.Every | x.Nth)]
    names = {role.event for part in counted for role in roles(part)}
    return Choice(
        how,
        tree,
        (*reading.events.values(), *reading.given.values()),
        events,
        len(reading.looked),
        _where(how, tree, events),
        passing,
        frozenset(n for n, role in enumerate(reading.roles) if role.event in names),
        frozenset(n for n, role in enumerate(reading.roles) if not role.parameter),
        frozenset(_looking(tree)),
        longest if isinstance(how, Context) else None,
        build.settings.carried_per_key_max,
        build.settings.search_steps_max,
        few,
    )


def _number(leaf: Leaf, events: int) -> int:
    return leaf.stream + events * isinstance(leaf, Given)


def _looking(tree: x.Expression) -> Iterator[Looking]:
    """What opens and closes each `A(a, b, c)`."""
    for node in tree.walk():
        match node:
            case x.Aperiodic(opener=Looked(stream=opener), closer=Looked(stream=closer)):
                yield opener, closer
            case x.Aperiodic(opener=Looked(stream=opener), closer=After() as after):
                yield opener, after


def _where(how: Context | Selecting, tree: x.Expression, events: int) -> Where:
    """What is consumed may change where a window of `A*` or `P*` ends; a selection at the end of
    its span looks there."""
    if isinstance(how, Selecting) and how.at_end is not None:
        numbers = {_number(leaf, events) for leaf in leaves(tree)}
        return Where(tuple((number, (how.at_end,)) for number in sorted(numbers)), True)
    if not any(isinstance(node, x.AperiodicStar) for node in tree.walk()):
        return Where()
    return Where(tuple(dict.fromkeys((_number(leaf, events), path) for leaf, path in ends(tree))))


def _length(e: x.Expression, lengthy: Iterable[str]) -> int | None:
    """How long an instance can be, at most; None: there is no such bound."""
    return transform(e, rules=frozenset(lengthy)).length_micros


def _of_pair(
    e: x.Expression, longest: int | None, lengthy: Iterable[str]
) -> tuple[int, int] | None:
    """How long a pair and its operands can be; None: there is no such bound."""
    while isinstance(e, x.Within | x.Minus):
        e = e.part
    operands = [_length(operand, lengthy) for operand in e.operands()]
    known = [length for length in operands if length is not None]
    return (longest, max(known)) if longest is not None and len(known) == len(operands) else None
