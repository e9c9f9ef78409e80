"""The triggering graph: which rules can make which rules detect, as far as the texts show (G22)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.rules.analysis.graph import table_events, tangles
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.model import Change, Rule, Rulebook, SignalAction, TableEvent
from tidegate.rules.sql.statement import rule_writes

if TYPE_CHECKING:
    from tidegate.rules.sql.writes import Writes

TRIGGERS_MAX = 10_000  # edges that are shown

_Way = tuple[str, str, tuple[str, ...]]
_RULE = "rule"


@dataclass(frozen=True, slots=True)
class Trigger:
    """The rule `rule` may make the rule `triggers` detect, by an event of type `event`. `kind`:
    `table` or `signal` (`rule` writes or raises `through`), `action` (`through` is the beginning,
    end or failure of its action), or `rule` (the detection itself is the event)."""

    rule: str
    kind: str  # table | signal | action | rule
    through: str
    event: str
    triggers: str


@dataclass(frozen=True, slots=True)
class TriggerCycle:
    """Rules that can trigger each other, or one that can trigger itself: a strongly connected
    component. `through`: the tables, signals and edges of actions between them."""

    rules: tuple[str, ...]
    through: tuple[str, ...]


class Triggers:
    """The edges, in the rulebook's order.

    An UPDATE, or the UPDATE of a MERGE, triggers `on: update, of: [..]` only if it sets one of
    these columns. `written`: by rule, the rulebook's tables that its statements write.
    """

    def __init__(self, book: Rulebook) -> None:
        self._book = book
        self._writes = {
            name: [*rule_writes(rule.reaction, book)] for name, rule in book.rules.items()
        }
        declared = {name.lower(): name for name in book.tables}
        self.written = {
            name: dict.fromkeys(declared[each.table] for each in found)
            for name, found in self._writes.items()
        }
        self._declared = declared
        self._users: dict[str, list[str]] = {}
        self._edges: dict[str, dict[str, None]] = {}
        for name, rule in book.rules.items():
            for used in dict.fromkeys(self._used(rule)):
                self._users.setdefault(used, []).append(name)
        self._by_table: dict[str, list[TableEvent]] = {}
        for event in table_events(book):
            if event.name in self._users:
                self._by_table.setdefault(event.table, []).append(event)
        self._raised: dict[Hashable, tuple[str, ...]] = {}

    def edges(self, only: str | None = None) -> tuple[tuple[Trigger, ...], int]:
        """The first `TRIGGERS_MAX` edges, and how many more there are. `only`: the edges from and
        to this rule. A rule with `ignore_own: true` is not triggered by its own writes."""
        to_only = {name: [only] for name, users in self._users.items() if only in users}
        found: list[Trigger] = []
        more = 0
        for rule in self._book.rules.values():
            users = self._users if only in (None, rule.name) else to_only
            for kind, through, events in dict.fromkeys(self._ways(rule)):
                for event in events:
                    named = users.get(event, ())
                    if rule.pattern.ignore_own and kind == "table":
                        named = [user for user in named if user != rule.name]
                    shown = named[: TRIGGERS_MAX - len(found)]
                    found += [Trigger(rule.name, kind, through, event, user) for user in shown]
                    more += len(named) - len(shown)
        return tuple(found), more

    def among(self, rules: Collection[str]) -> frozenset[tuple[str, str]]:
        """The edges between some rules, from and to each of them."""
        found: set[tuple[str, str]] = set()
        for name in rules:
            for kind, _, events in dict.fromkeys(self._ways(self._book.rules[name])):
                named = {user for event in events for user in self._users.get(event, ())}
                if kind == "table" and self._book.rules[name].pattern.ignore_own:
                    named.discard(name)
                found.update((name, user) for user in named if user in rules)
        return frozenset(found)

    def loops(self) -> tuple[TriggerCycle, ...]:
        """The strongly connected components, in the order of their rules. A rule that only triggers
        itself, by writes that it ignores, is none."""
        follows: dict[Hashable, Collection[Hashable]] = {}
        said: dict[Hashable, str] = {}
        for event, users in self._users.items():
            follows[event] = [(_RULE, user) for user in users]
        for rule in self._book.rules.values():
            ways = [*dict.fromkeys(self._ways(rule))]
            follows.update((way, way[2]) for way in ways)
            follows[_RULE, rule.name] = ways
            said.update((way, _said(*way[:2])) for way in ways if way[0] != _RULE)
        found = []
        for group in tangles(follows):
            inside = {*group}
            rules = sorted(name for name in self._book.rules if (_RULE, name) in inside)
            through = sorted({said[node] for node in group if node in said})
            tables = all(way.startswith("table ") for way in through)
            if not (len(rules) == 1 and tables and self._book.rules[rules[0]].pattern.ignore_own):
                found.append(TriggerCycle(tuple(rules), tuple(through)))
        return tuple(sorted(found, key=lambda loop: loop.rules))

    def _used(self, rule: Rule) -> Iterator[str]:
        """The event types, rules and edges of actions that a rule's expression names."""
        for node in rule.pattern.on.walk():
            if isinstance(node, x.Edge) and node.name in self._book.rules:
                edge = format_expression(node)
                self._edges.setdefault(node.name, {})[edge] = None
                yield edge
            elif isinstance(node, x.Name | x.Edge):
                yield node.name

    def _ways(self, rule: Rule) -> Iterator[_Way]:
        """(kind, through, event types) of what a rule raises."""
        for each in self._writes[rule.name]:
            yield "table", self._declared[each.table], self._events_of(each)
        for action in (*rule.reaction.actions, *rule.reaction.otherwise):
            if isinstance(action, SignalAction):
                yield "signal", action.event, (action.event,)
        for edge in self._edges.get(rule.name, ()):
            yield "action", edge, (edge,)
        yield _RULE, rule.name, (rule.name,)

    def _events_of(self, writes: Writes) -> tuple[str, ...]:
        """The event types that a statement raises."""
        alike = (writes.table, writes.changes, writes.columns)
        if alike not in self._raised:
            events = self._by_table.get(self._declared[writes.table], ())
            self._raised[alike] = tuple(e.name for e in events if _raises(writes, e))
        return self._raised[alike]


def _raises(writes: Writes, event: TableEvent) -> bool:
    if event.change is Change.CHANGE or event.change.is_commit:
        return True
    if event.change is not Change.UPDATE or not event.of:
        return event.change in writes.changes
    columns = writes.columns
    of = {column.lower() for column in event.of}
    return Change.UPDATE in writes.changes and (columns is None or not columns.isdisjoint(of))


def _said(kind: str, through: str) -> str:
    return through if kind == "action" else f"{kind} {through}"
