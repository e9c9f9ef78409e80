"""The components of an event graph: sets of rules that can be stepped apart from all others, by
partition of their key's hash.

A component has one key domain. Each of its event types is keyed by one set of columns, or is
broadcast to all keys. Rules that share nodes, or use each other as events, are in one. All other
rules are the driver's.

Example: `a ; b` and `a ; b ; c`, both per k, are one component, keyed a: k, b: k, c: k. Then
`a ; d` per m is another one, for a row of `a` is in the partition of its k for the first, of its m
for the second. And `d` without `per:` is the driver's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tidegate.engine.core.event_names import EventKey, whole_of
from tidegate.engine.detect.events.graph.graph import Graph, Node
from tidegate.engine.detect.events.graph.operators.detection import Detection
from tidegate.engine.detect.events.graph.operators.event import Event
from tidegate.rules.analysis.graph import uses_of
from tidegate.rules.model import Rulebook, ScriptEvent

Keyed = Mapping[str, tuple[str, ...] | None]
"""By event type its key columns; None: it is broadcast to all keys."""


@dataclass(frozen=True, slots=True)
class Component:
    """Rules that are stepped together, partition by partition. `events`: what they look at; with
    the beginning of an event type that one, too."""

    rules: tuple[str, ...]
    events: Keyed

    @property
    def digest(self) -> str:
        """Names it among those of a graph, and stays the same as long as its events do."""
        return hashlib.sha256(repr(sorted(self.events.items())).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Components:
    """The components of a graph; and by rule that is the driver's, why it is."""

    keyed: tuple[Component, ...]
    rest: Mapping[str, str]


def components(book: Rulebook, graph: Graph, late: Collection[str] = ()) -> Components:
    """The components of the rules of a rulebook whose graph this is. `late`: the rules that wait
    for late rows, where the graph does not say it."""
    reasons = _reasons(book, graph, late)
    groups: list[tuple[int | None, tuple[str, ...], dict[str, tuple[str, ...] | None]]] = []
    for group in _groups(graph):
        events, twice = _keyed(group, graph)
        first = next((rule for rule in group if rule in reasons), None)
        if first is None and twice:
            reasons |= dict.fromkeys(group, twice)
        elif first is not None:
            why = f"it shares nodes or detections with {first}, of which this holds: "
            reasons |= {r: why + reasons[first] for r in group if r not in reasons}
        else:
            domain = next(graph.domain(root) for root in _roots(group, graph))
            groups.append((domain, group, events))
    found: dict[int, tuple[int | None, Component]] = {}
    for domain, group, events in groups:
        place = next((n for n, (d, c) in found.items() if d == domain and _fit(c.events, events)),
                     len(found))  # fmt: skip
        rules, known = group, events
        if place in found:
            before = found[place][1]
            rules, known = (*before.rules, *group), {**before.events, **events}
        found[place] = domain, Component(rules, known)
    order = {rule: n for n, rule in enumerate(book.rules)}
    rest = {rule: reasons[rule] for rule in sorted(reasons, key=order.__getitem__)}
    return Components(tuple(component for _, component in found.values()), rest)


def keyed_everywhere(
    found: Components, graph: Graph, scripts: Iterable[tuple[str, bool]] = ()
) -> frozenset[str]:
    """The event types that have a key wherever they are looked at: none is broadcast, nor seen by a
    rule that is the driver's. What a rule that waits for late rows sees, arrives as all do.
    `scripts`: what these take, and whether by a key."""
    ways = [(e, columns is not None) for c in found.keyed for e, columns in c.events.items()]
    ways += scripts
    others = {event for event, keyed in ways if not keyed}
    for rule, events in graph.events.items():
        if EventKey.of(rule).event in found.rest:
            arriving = {str(replace(EventKey.of(event), behind=None)) for event in events}
            others |= {*arriving, *map(whole_of, arriving)}
    return frozenset(event for event, _ in ways) - others


def _fit(one: Keyed, other: Keyed) -> bool:
    """Whether no event type is keyed differently in the two."""
    return all(one[event] == columns for event, columns in other.items() if event in one)


def _groups(graph: Graph) -> list[tuple[str, ...]]:
    """The rules that share a node with a key or a set of known keys, or use each other. A rule that
    runs behind stands in the graph under several names; here it has the one that is written."""
    leader: dict[str, str] = {}

    def lead(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    for rule, root in graph.roots.items():
        own = lead(EventKey.of(rule).event)
        for used in graph.uses[rule]:
            leader[lead(EventKey.of(used).event)] = lead(own)
        for node in root.walk():
            if node.streams and not isinstance(node.shape, Event):
                leader[lead("node:" + node.digest)] = lead(own)
            if node.census:
                leader[lead(node.census)] = lead(own)
    groups: dict[str, dict[str, None]] = {}
    for rule in graph.roots:
        written = EventKey.of(rule).event
        groups.setdefault(lead(written), {})[written] = None
    return [tuple(group) for group in groups.values()]


def _roots(rules: Iterable[str], graph: Graph) -> Iterator[Node]:
    return (root for name, root in graph.roots.items() if EventKey.of(name).event in rules)


def _keyed(rules: Iterable[str], graph: Graph) -> tuple[dict[str, tuple[str, ...] | None], str]:
    """How some rules key the event types that they look at; and why that is no one way, else
    nothing."""
    events: dict[str, tuple[str, ...] | None] = {}
    for root in _roots(rules, graph):
        for node in root.walk():
            if not isinstance(node.shape, Event):
                continue
            event, columns = node.shape.event, node.shape.columns
            for name in (event, whole_of(event)):
                if events.setdefault(name, columns) != columns:
                    ways = sorted(_columns(way) for way in (columns, events[name]))
                    written = EventKey.of(event).written
                    return events, f"it keys {written} both {ways[0]} and {ways[1]}"
    return events, ""


def _columns(way: tuple[str, ...] | None) -> str:
    return "not at all" if way is None else "by " + ", ".join(way)


def _reasons(book: Rulebook, graph: Graph, late: Collection[str]) -> dict[str, str]:
    """By rule that is the driver's for itself, why."""
    found: dict[str, str] = {}
    for script in book.scripts.values():
        for event in uses_of(script, ()) if script.enabled else ():
            if event in book.rules:
                found.setdefault(event, f"script {script.name} takes what it detects")
    for name, root in graph.roots.items():
        rule = EventKey.of(name).event
        if not root.streams:
            found.setdefault(rule, "it has no `per:`")
        for event in sorted(graph.events[name]):
            key = EventKey.of(event)
            kind = book.events.get(key.event)
            if key.behind is not None or rule in late:
                found.setdefault(rule, "it waits for late rows (`lateness:`)")
            elif isinstance(kind, ScriptEvent) and kind.script in book.scripts:
                found.setdefault(rule, f"script {kind.script} emits {key.event}")
        for used in _used_apart(root, graph):
            found.setdefault(rule, f"it uses {used} by other keys")
            found.setdefault(used, f"{rule} uses it by other keys")
    return found


def _used_apart(root: Node, graph: Graph) -> Iterator[str]:
    """The rules, as written, that a rule uses by other keys than theirs."""
    for node in root.walk():
        shape = node.shape
        if isinstance(shape, Detection):
            columns = shape.columns
            if columns is None or not graph.same_keys((shape.rule, columns)):
                yield EventKey.of(shape.rule).event
