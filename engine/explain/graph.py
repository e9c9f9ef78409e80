"""The nodes of the detector's event graph, as `explain` shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tidegate.engine.core.event_names import EventKey
from tidegate.engine.detect.events.graph import graph as running
from tidegate.engine.detect.events.graph.components import components
from tidegate.engine.detect.events.graph.flat import flat_node
from tidegate.engine.detect.events.graph.flat.assignment_node import Assignments
from tidegate.engine.detect.events.graph.flat.window_node import Windows
from tidegate.engine.detect.events.graph.operators.broadcast import Repeated
from tidegate.engine.detect.events.graph.operators.detection import Detection
from tidegate.engine.detect.events.graph.operators.event import Event
from tidegate.engine.detect.events.graph.operators.holding import Turn
from tidegate.engine.detect.events.graph.operators.single_events import AtOnce
from tidegate.engine.detect.events.graph.search.choice import Choice
from tidegate.engine.detect.events.graph.search.selection import Selecting
from tidegate.engine.detect.events.step.compile import compile_book
from tidegate.engine.explain.model import Node
from tidegate.rules.algebra.amount import ENDLESS, NOTHING, Amount
from tidegate.rules.algebra.forms import Flat, Nested, forms
from tidegate.rules.algebra.storage import Stored, Used, chosen_among, store, stored
from tidegate.rules.analysis.graph import lateness_micros, reached
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.model import Context, Rulebook, Selection

_OPERATORS: Mapping[type[x.Expression], str] = {
    x.Or: "or",
    x.And: "and",
    x.AnyOf: "any",
    x.AnyRepeat: "any",
    x.Seq: ";",
    x.BoundedSeq: ";",
    x.Minus: "without",
    x.Within: "within",
    x.Not: "not",
    x.Aperiodic: "A",
    x.AperiodicStar: "A*",
    x.Periodic: "P",
    x.PeriodicStar: "P*",
    x.Plus: "+",
    x.Nth: "[i]",
    x.Instant: "instant",
    x.Every: "every",
    x.Clock: "at",
    x.Cron: "cron",
    w.Tumbling: "window",
    w.Sliding: "window",
    w.Session: "session",
    w.Crossing: "over",
    w.Holding: "holds",
    w.Resolution: "holds",
}
ID_DIGITS = 12


class Nodes:
    """The event graph that `run` and `simulate` build. Disabled rules are in it, too. `used`: the
    rules that other rules use as events."""

    def __init__(self, book: Rulebook, used: Mapping[str, Used]) -> None:
        self._book = book
        self._used = used
        rules = {
            name: rule if rule.enabled else replace(rule, enabled=True)
            for name, rule in book.rules.items()
        }
        _, self._graph = compile_book(replace(book, rules=rules), dict.fromkeys(rules, 0), {})
        self._stored: dict[str, Stored] = {}
        self._rules: dict[str, dict[str, None]] = {}
        self._repeats: dict[str, set[str]] = {}
        self.searched: set[str] = set()
        """The rules with a node that searches."""
        self.scanned: set[str] = set()
        """The rules whose `where` is asked in a scan."""
        for rule, root in self._graph.roots.items():
            for node in root.walk():
                self._rules.setdefault(node.digest, {})[EventKey.of(rule).event] = None
                if isinstance(node.shape, Repeated):
                    self._repeats.setdefault(EventKey.of(rule).event, set()).update(_events(node))
                if isinstance(node.shape, Choice):
                    self.searched.add(rule)
                if isinstance(node.shape, Assignments):
                    self.scanned.add(rule)
        self.roots = {name: _id(root) for name, root in self._graph.roots.items()}
        """The id of each rule's node."""
        self.rest = components(book, self._graph, lateness_micros(book)).rest
        """The rules that are detected by no partition of a key, and why."""

    def nodes(self) -> tuple[Node, ...]:
        """All nodes; operands come first."""
        return tuple(self._shown(node) for node in self._graph.nodes.values())

    def repeated(self, rule: str) -> list[str]:
        """The events that a rule repeats for each key, for which it remembers all keys."""
        return sorted(self._repeats.get(rule, ()))

    def below(self, root: str) -> set[str]:
        """The ids of a node and of all that it needs."""
        operands = {node.id: node.operands for node in self.nodes()}
        return {*reached([root], operands.__getitem__)}

    def _shown(self, node: running.Node) -> Node:
        instances, occurrences = self._amounts(node)
        whole = instances + occurrences
        return Node(
            _id(node),
            _operator(node),
            format_expression(_written(_expression(node))),
            _operands(node),
            tuple(self._rules[node.digest]),
            {EventKey.of(event).written: columns for event, columns in sorted(node.streams)},
            node.horizon_micros,
            instances.maximum,
            occurrences.maximum,
            None if whole.endless else whole.span_micros,
            isinstance(node.shape, Choice),
        )

    def _amounts(self, node: running.Node) -> tuple[Amount, Amount]:
        """How much a node stores: instances, and the occurrences in them."""
        shape = node.shape
        if isinstance(shape, Repeated | AtOnce | Turn):
            return NOTHING, NOTHING
        if not isinstance(shape, flat_node.Flat | Windows | Choice):
            stored = self._node(node)
            return stored.instances, stored.occurrences
        found = forms(_expression(node), dict(node.streams), self._book.rules)
        match found.of(Selection() if isinstance(shape.context, Selecting) else shape.context):
            case Flat(kept=(_, _) as kept) | Nested(kept=(_, _) as kept):
                return kept
        return (ENDLESS.within(node.horizon_micros),) * 2

    def _node(self, node: running.Node) -> Stored:
        if node.digest not in self._stored:
            operands = [self._node(operand) for operand in node.operands]
            if isinstance(node.shape, Repeated | Turn):
                self._stored[node.digest] = operands[0]
            elif isinstance(node.shape, Choice):  # of what closes windows (S4)
                inner = stored(_expression(node), self._used)
                self._stored[node.digest] = chosen_among(inner)
            elif not operands:
                self._stored[node.digest] = stored(_expression(node), self._used)
            else:
                made = store(_expression(node), operands, node.horizon_micros)
                self._stored[node.digest] = made
        return self._stored[node.digest]


def _id(node: running.Node) -> str:
    return node.digest[:ID_DIGITS]


def _events(node: running.Node) -> Iterator[str]:
    """The events and rules that a node sees, as they are written."""
    for each in node.walk():
        if isinstance(each.shape, Event):
            yield EventKey.of(each.shape.event).written
        elif isinstance(each.shape, Detection):
            yield EventKey.of(each.shape.rule).written


def _operands(node: running.Node) -> tuple[str, ...]:
    if isinstance(node.shape, Detection):
        return (node.shape.root[:ID_DIGITS],)
    return tuple(_id(operand) for operand in node.operands)


def _expression(node: running.Node) -> x.Expression:
    """The expression that a node detects; for a node of an event type, its name."""
    if node.expression is not None:
        return node.expression
    if isinstance(node.shape, Repeated):
        return _expression(node.operands[0])
    return x.Name(node.roles[0])


def _written(e: x.Expression) -> x.Expression:
    """An expression of the graph with the names of event types that rules use."""
    if isinstance(e, x.Name):
        return x.Name(EventKey.of(e.name).written)
    return x.with_operands(e, [_written(operand) for operand in e.operands()])


def _operator(node: running.Node) -> str:
    shape = node.shape
    if isinstance(shape, flat_node.Flat | Windows | Choice):
        return str(shape.context) if isinstance(shape.context, Context) else "select"
    if isinstance(shape, AtOnce):
        return "cumulative"
    if isinstance(shape, Repeated):
        return "every key"
    if isinstance(shape, Turn):
        return "resolved" if shape.resolved else "fires"
    if isinstance(shape, Detection):
        return "rule"
    if isinstance(shape, Event) and shape.all_rows:
        return "every row"
    return _OPERATORS.get(type(_expression(node)), "event")
