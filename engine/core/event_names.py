"""Event types as values: those that the rulebook declares, and those that the engine adds. It adds
edges of commits, updates and actions (S10), ticks, the ends of what rules hold, and event types for
`ignore_own: true` (G22).

Example: `r: {on: row, ignore_own: true}`. The engine adds the event type `row but of r`: the
occurrences of `row` without the changes that actions of r committed. Rule r then reads that event
type. Its occurrences keep the name and the ids of `row`. Other rules still see all of `row`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from tidegate.rules.analysis.graph import used_in
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.parser import unlabelled
from tidegate.rules.model import Pattern, Rulebook, SignalEvent, TableEvent

_BY, _BUT = " by ", " but of "
_KEPT_MAX = 65_536


class Edge(StrEnum):
    """Which part of a commit, update or action an event type is. NONE: the whole, or the end of a
    commit or an update."""

    TICK = "[tick]"  # of a `P` or `P*`, whose expression stands in place of an event type
    BEGIN = "[begin]"  # of a commit or an update
    BEGIN_OF = "begin_of"  # of a rule's action, as are the next two
    END_OF = "end_of"
    FAILED = "failed"
    RESOLVED = "resolved"  # of what a rule holds
    NONE = ""

    @property
    def prefix(self) -> str:
        return f"{self} " if self in (*_OF_ACTIONS.values(), Edge.RESOLVED) else self.value


@dataclass(frozen=True, slots=True)
class EventKey:
    """An event type, or a rule that is used as one.

    `event`: its name in the rulebook. `edge`: which part of it. `but_of`: a rule whose own changes
    are left out. `behind`: so many microseconds its watermark lies behind the bucket's, None: it is
    the bucket's (see `held_back`).

    The text is its name in mappings of occurrences, in carried tables and in digests. Example:
    `end_of pay`, `row but of r`.
    """

    event: str
    but_of: str = ""
    behind: int | None = None
    edge: Edge = Edge.NONE

    def __str__(self) -> str:
        but_of = _BUT + self.but_of if self.but_of else ""
        behind = "" if self.behind is None else f"{_BY}{self.behind}"
        return f"{self.edge.prefix}{self.event}{but_of}{behind}"

    @staticmethod
    @lru_cache(_KEPT_MAX)
    def of(text: str) -> EventKey:
        """The event type of a text."""
        edge = next(edge for edge in Edge if text.startswith(edge.prefix))
        event = text.removeprefix(edge.prefix)
        if edge is Edge.TICK:
            return EventKey(event, edge=edge)
        event, _, behind = event.partition(_BY)
        event, _, but_of = event.partition(_BUT)
        return EventKey(event, but_of, int(behind) if behind else None, edge)

    @property
    def public(self) -> EventKey:
        """The event type as other rules have it."""
        return EventKey(self.event, edge=self.edge)

    @property
    def shown(self) -> str:
        """The name of its occurrences. The beginning of `e` is shown as `e`."""
        if self.edge is Edge.TICK:
            return "tick"
        return self.event if self.edge is Edge.BEGIN else str(self.public)

    @property
    def written(self) -> str:
        """Its name in an expression, such as `begin_of paid`."""
        edge = Edge.BEGIN_OF if self.edge is Edge.BEGIN else self.edge
        return str(EventKey(self.event, edge=edge))


def as_written(e: x.Expression) -> x.Expression:
    """An expression with its event types under the names that a rulebook has for them."""
    if isinstance(e, x.Name):
        return x.Name(EventKey.of(e.name).written)
    return x.with_operands(e, [as_written(operand) for operand in e.operands()])


_OF_ACTIONS: Mapping[type[x.Edge], Edge] = {
    x.BeginOf: Edge.BEGIN_OF,
    x.EndOf: Edge.END_OF,
    x.Failed: Edge.FAILED,
}


def tick_type(e: x.Periodic | x.PeriodicStar) -> str:
    """The event type of the ticks of a `P` or `P*`: equal trees tick together (S6)."""
    return str(EventKey(format_expression(unlabelled(e)), edge=Edge.TICK))


def is_tick(event: str) -> bool:
    return event.startswith(Edge.TICK)


@lru_cache(_KEPT_MAX)
def shown_name(event: str) -> str:
    """The name that occurrences of an event type show."""
    return EventKey.of(event).shown


def beginning(event: str) -> str:
    """The event type of the beginning of a commit or an update."""
    return str(EventKey(event, edge=Edge.BEGIN))


def whole_of(event: str) -> str:
    """The event type whose beginning this one is; else it itself."""
    key = EventKey.of(event)
    return str(replace(key, edge=Edge.NONE)) if key.edge is Edge.BEGIN else event


def action_edges(book: Rulebook) -> dict[str, str]:
    """The rule of each edge of an action, by the edge's event type. Example: `end_of pay` is of
    `pay`. Its parameters are the key columns of that rule."""
    return {
        str(EventKey(rule.name, edge=edge)): rule.name
        for rule in book.rules.values()
        if rule.reaction.actions
        for edge in _OF_ACTIONS.values()
    }


def begun(book: Rulebook) -> tuple[str, ...]:
    """The event types whose beginning some rule names."""
    named = (node for rule in book.rules.values() for node in rule.pattern.on.walk())
    names = {node.name for node in named if isinstance(node, x.BeginOf)}
    return tuple(name for name in book.events if name in names)


def edge_micros(book: Rulebook, event: str) -> int:
    """By how many microseconds an event type begins before its instant and ends after it."""
    kind = book.events.get(event)
    return int(isinstance(kind, TableEvent) and kind.change.is_commit)


def with_edges(book: Rulebook, of: Collection[str]) -> Rulebook:
    """The rulebook with event types for the edges of the event types and rules in `of`. The end of
    an event type is its plain name. The edges of a rule are those of its action."""
    begins = {
        beginning(name): replace(kind, name=beginning(name))
        for name in begun(book)
        if isinstance(kind := book.events[name], TableEvent)
    }
    rules = {
        name: replace(rule, pattern=_named(rule.pattern, book, of))
        for name, rule in book.rules.items()
    }
    return replace(book, events={**book.events, **begins}, rules=rules)


def _named(pattern: Pattern, book: Rulebook, of: Collection[str]) -> Pattern:
    on = _plain(pattern.on, book, of)
    if on is pattern.on:
        return pattern
    per = dict(pattern.per)
    for node in pattern.on.walk():
        if isinstance(node, x.Resolved):
            continue
        if isinstance(node, x.Edge) and node.name in pattern.per and node.name in of:
            per[_edge_type(node, book)] = pattern.per[node.name]
    for unnamed in (book.rules.keys() & per.keys()) - used_in(on, book.rules).keys():
        del per[unnamed]
    return replace(pattern, on=on, per=per)


def _plain(e: x.Expression, book: Rulebook, of: Collection[str]) -> x.Expression:
    if isinstance(e, x.Resolved):
        return e
    if isinstance(e, x.Edge):
        return x.Name(_edge_type(e, book)) if e.name in of else e
    return x.with_operands(e, [_plain(operand, book, of) for operand in e.operands()])


def _edge_type(edge: x.Edge, book: Rulebook) -> str:
    if edge.name not in book.events:
        return str(EventKey(edge.name, edge=_OF_ACTIONS[type(edge)]))
    return beginning(edge.name) if isinstance(edge, x.BeginOf) else edge.name


def with_resolutions(book: Rulebook) -> Rulebook:
    """The rulebook with a rule, named `resolved r`, for the end of what each rule r holds, if some
    rule names it; that names the new one then."""
    ends = {
        node.name: str(EventKey(node.name, edge=Edge.RESOLVED))
        for rule in book.rules.values()
        for node in rule.pattern.on.walk()
        if isinstance(node, x.Resolved)
    }
    rules = {
        name: replace(rule, pattern=_ending(rule.pattern, ends)) if ends else rule
        for name, rule in book.rules.items()
    }
    for name, end in ends.items():
        of = book.rules.get(name)
        if of is not None and isinstance(on := of.pattern.on, w.Holding):
            resolution = w.Resolution(on.begun, on.ended, on.length, on.keep)
            rules[end] = replace(of, name=end, pattern=replace(of.pattern, on=resolution))
    return replace(book, rules=rules)


def _ending(pattern: Pattern, ends: Mapping[str, str]) -> Pattern:
    """A pattern with `resolved r` as a name of its own."""
    on = _ended(pattern.on, ends)
    if on is pattern.on:
        return pattern
    named = x.names_in(on)
    keyed = {**pattern.per, **{end: pattern.per.get(name) for name, end in ends.items()}}
    per = {name: columns for name, columns in keyed.items() if columns and name in named}
    return replace(pattern, on=on, per=per)


def _ended(e: x.Expression, ends: Mapping[str, str]) -> x.Expression:
    if isinstance(e, x.Resolved):
        return x.Name(ends[e.name])
    return x.with_operands(e, [_ended(operand, ends) for operand in e.operands()])


def without_own(book: Rulebook) -> Rulebook:
    """The rulebook with event types for the rules that ignore their own changes (`row but of r`).
    `with_edges` comes first. A rule that is used as an event stays as it is."""
    events = dict(book.events)
    rules = dict(book.rules)
    for rule in book.rules.values():
        if rule.pattern.ignore_own:
            seen = {
                name: str(replace(EventKey.of(name), but_of=rule.name))
                for name in x.names_in(rule.pattern.on)
                if _of_table(book, name)
            }
            events |= {new: replace(book.events[name], name=new) for name, new in seen.items()}
            per = {seen.get(event, event): names for event, names in rule.pattern.per.items()}
            on = _renamed(rule.pattern.on, seen)
            pattern = replace(rule.pattern, on=on, per=per, ignore_own=False)
            rules[rule.name] = replace(rule, pattern=pattern)
    return replace(book, events=events, rules=rules)


def _of_table(book: Rulebook, name: str) -> bool:
    event = book.events.get(name)
    return isinstance(event, TableEvent) or (
        isinstance(event, SignalEvent) and event.from_table is not None
    )


def _renamed(e: x.Expression, seen: dict[str, str]) -> x.Expression:
    if isinstance(e, x.Name):
        return x.Name(seen.get(e.name, e.name))
    return x.with_operands(e, [_renamed(operand, seen) for operand in e.operands()])
