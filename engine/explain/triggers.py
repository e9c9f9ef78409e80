"""The triggering graph: which rules can make which rules detect, as far as the texts show."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence

from tidegate.engine.explain.model import Trigger
from tidegate.rules import expression as x
from tidegate.rules.model import (
    Action,
    Change,
    Rule,
    Rulebook,
    SignalAction,
    Sql,
    TableEvent,
)
from tidegate.rules.sqlwords import Word, sql_words
from tidegate.rules.tableevents import table_events
from tidegate.rules.tangles import tangles

_CHANGES = {
    "insert": {Change.INSERT},
    "update": {Change.UPDATE},
    "delete": {Change.DELETE},
}


TRIGGERS_MAX = 10_000  # edges that are shown


class Triggers:
    """The edges, in the rulebook's order. A statement's target and kind are taken from its words:
    what a view or a procedure would write is not seen. `written`: by rule, the rulebook's tables
    that its statements write, and how."""

    def __init__(self, book: Rulebook) -> None:
        self._book = book
        self.written = {name: written(rule, book) for name, rule in book.rules.items()}
        self._users: dict[str, list[str]] = {}
        for name, rule in book.rules.items():
            for used in dict.fromkeys(_used(rule)):
                self._users.setdefault(used, []).append(name)
        self._of_table: dict[tuple[str, frozenset[Change]], tuple[str, ...]] = {}

    def edges(self, only: str | None = None) -> tuple[tuple[Trigger, ...], int]:
        """The first `TRIGGERS_MAX`, and how many more there are; `only`: from and to one rule."""
        to_only = {name: [only] for name, users in self._users.items() if only in users}
        found: list[Trigger] = []
        more = 0
        for rule in self._book.rules.values():
            users = self._users if only in (None, rule.name) else to_only
            for kind, through, events in self._ways(rule):
                for event in events:
                    named = users.get(event, ())
                    shown = named[: TRIGGERS_MAX - len(found)]
                    found += [Trigger(rule.name, kind, through, event, user) for user in shown]
                    more += len(named) - len(shown)
        return tuple(found), more

    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """Groups of rules that can trigger each other, or themselves."""
        follows: dict[Hashable, Collection[Hashable]] = {}
        follows.update(self._users.items())
        for rule in self._book.rules.values():
            ahead: list[Hashable] = list(self._users.get(rule.name, ()))
            for kind, through, events in self._ways(rule):
                if kind == "table":
                    follows[through, events] = events
                    ahead.append((through, events))
                elif kind == "signal":
                    ahead.append(through)
            follows[rule.name] = ahead
        rules = self._book.rules
        groups = (sorted(str(n) for n in group if n in rules) for group in tangles(follows))
        return tuple(sorted(map(tuple, groups)))

    def _ways(self, rule: Rule) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """(kind, through, event types) of what a rule raises."""
        for table, changes in self.written[rule.name].items():
            yield "table", table, self._events_of(table, frozenset(changes))
        for action in _actions(rule):
            if isinstance(action, SignalAction):
                yield "signal", action.event, (action.event,)
        yield "rule", rule.name, (rule.name,)

    def _events_of(self, table: str, changes: frozenset[Change]) -> tuple[str, ...]:
        """The event types that such changes of a table raise."""
        if (table, changes) not in self._of_table:
            self._of_table[table, changes] = tuple(
                event.name
                for event in table_events(self._book)
                if event.table == table and _is_of(event, changes) and event.name in self._users
            )
        return self._of_table[table, changes]


def written(rule: Rule, book: Rulebook) -> dict[str, set[Change]]:
    """The rulebook's tables that a rule's statements write, and how."""
    found: dict[str, set[Change]] = {}
    for action in _actions(rule):
        if isinstance(action, Sql):
            for table, changes in _targets(action.text):
                if table in book.tables:
                    found.setdefault(table, set()).update(changes)
    return found


def _actions(rule: Rule) -> tuple[Action, ...]:
    return (*rule.actions, *rule.otherwise)


def _used(rule: Rule) -> Iterator[str]:
    """The event types and rules that a rule's expression names."""
    for node in rule.on.walk():
        if isinstance(node, x.Name | x.Edge):
            yield node.name


def _is_of(event: TableEvent, changes: Collection[Change]) -> bool:
    return event.change in (Change.CHANGE, Change.TRANSACTION) or event.change in changes


def _targets(text: str) -> Iterator[tuple[str, set[Change]]]:
    """(table, changes) of each INSERT INTO, MERGE INTO, UPDATE, DELETE FROM in a statement."""
    words = sql_words(text)
    lower = ["" if word.quoted else word.text.lower() for word in words]
    merged = set().union(*(_CHANGES[word] for word in lower if word in _CHANGES))
    for n, word in enumerate(lower):
        after = lower[n + 1 : n + 3]
        skipped = 2
        if word == "insert" and after[:1] in (["into"], ["overwrite"]):
            changes = {Change.INSERT} if after[0] == "into" else {Change.INSERT, Change.DELETE}
            skipped += after[1:] == ["table"]
        elif word == "merge" and after[:1] == ["into"]:
            changes = merged
        elif word == "delete" and after[:1] == ["from"]:
            changes = {Change.DELETE}
        elif word == "update" and n == 0:
            changes, skipped = {Change.UPDATE}, 1
        else:
            continue
        name = _name(words[n + skipped :])
        if name:
            yield name, changes


def _name(words: Sequence[Word]) -> str:
    """The name that begins here, with the parts after its dots."""
    parts: list[str] = []
    for word in words:
        if parts and not word.member:
            break
        parts.append(word.text)
    return ".".join(parts)
