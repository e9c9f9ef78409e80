"""How a rule's expression is chosen among: what `Choice` needs to know."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.engine.detector.calendar import longest
from tidegate.engine.detector.contexts import tree as t
from tidegate.engine.detector.contexts.choice import Choice
from tidegate.engine.detector.contexts.instants import Where
from tidegate.engine.detector.contexts.reading import Streams, names, silent
from tidegate.engine.detector.contexts.selection import Selecting, selecting
from tidegate.rules import expression as x
from tidegate.rules.model import Context, Selection, Settings


def chosen(
    context: Context | Selection,
    expression: x.Expression,
    tree: t.Tree,
    streams: Streams,
    lasting: frozenset[str],
    limits: Settings,
) -> Choice:
    """The choice in `context` among the instances of an expression, read as `tree`. The detections
    of the rules in `lasting` are no instants."""
    how: Context | Selecting = (
        selecting(context, tree, _pair_horizon(expression, lasting))
        if isinstance(context, Selection)
        else context
    )
    nodes = [*t.walk(tree)]
    counted = {
        name for part in streams.given if isinstance(part, x.Every | x.Nth) for name in names(part)
    }
    return Choice(
        how,
        tree,
        (*streams.roles, *streams.given_roles),
        len(streams.events),
        len(streams.looked),
        _where(how, tree, len(streams.events)),
        _passing(tree, streams) if isinstance(how, Context) else frozenset(),
        frozenset(role for role, name in enumerate(names(expression)) if name in counted),
        silent(expression),
        frozenset((n.opener, n.closer) for n in nodes if isinstance(n, t.Aperiodic)),
        horizon(expression, lasting) if isinstance(how, Context) else None,
        limits.carried_per_key_max,
        limits.search_steps_max,
    )


def _number(leaf: t.Leaf, events: int) -> int:
    return leaf.stream + events * isinstance(leaf, t.Given)


def _where(how: Context | Selecting, tree: t.Tree, events: int) -> Where:
    """What is used up may change where a window of `A*` or `P*` ends; a selection at the end of
    its span looks there."""
    if isinstance(how, Selecting) and how.at_end is not None:
        leaves = {_number(leaf, events) for leaf in tree.leaves()}
        return Where(tuple((number, (how.at_end,)) for number in sorted(leaves)), True)
    if not any(isinstance(node, t.Window) for node in t.walk(tree)):
        return Where()
    return Where(tuple(dict.fromkeys((_number(leaf, events), p) for leaf, p in t.ends(tree))))


def _passing(tree: t.Tree, streams: Streams) -> frozenset[int]:
    """The streams whose occurrences only ever end an instance."""
    events = len(streams.events)
    lasting = {_number(leaf, events) for leaf in tree.lasting()}
    return frozenset(range(events + len(streams.given))) - lasting


def horizon(e: x.Expression, lasting: frozenset[str]) -> int | None:
    """How long an instance can be, at most; None: there is no such bound."""
    match e:
        case x.Within(part=part, duration=duration):
            inner = horizon(part, lasting)
            return longest(duration) if inner is None else min(longest(duration), inner)
        case x.Labelled(part=part) | x.Minus(part=part) | x.Aperiodic(part=part):
            return horizon(part, lasting)
        case (
            x.Seq(first=opener, then=x.Own(duration=duration))
            | x.Not(opener=opener, closer=x.Own(duration=duration))
            | x.AperiodicStar(opener=opener, closer=x.Own(duration=duration))
            | x.PeriodicStar(opener=opener, closer=x.Own(duration=duration))
        ):
            inner = horizon(opener, lasting)
            return None if inner is None else inner + longest(duration)
        case x.Or(parts=parts):
            return _longest(parts, lasting)
        case x.Name(name=name) if name in lasting:
            return None
        case x.Name() | x.Clock() | x.Cron() | x.Plus() | x.Periodic():
            return 0
    return None


def _longest(parts: Iterable[x.Expression], lasting: frozenset[str]) -> int | None:
    spans = [horizon(part, lasting) for part in parts]
    known = [span for span in spans if span is not None]
    return max(known) if len(known) == len(spans) else None


def _pair_horizon(e: x.Expression, lasting: frozenset[str]) -> tuple[int, int] | None:
    """How long a pair and its operands can be; None: there is no such bound."""
    core = e
    while isinstance(core, x.Within | x.Minus | x.Labelled):
        core = core.part
    pair, operand = horizon(e, lasting), _longest(core.operands(), lasting)
    return None if pair is None or operand is None else (pair, operand)
