"""The triggering graph: which rules can make which rules detect, as far as the texts show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from engine.explain.model import Trigger
from rules import expression as x
from rules.model import (
    Action,
    Change,
    Rule,
    Rulebook,
    SignalAction,
    Sql,
    TableEvent,
)
from rules.sqlwords import Word, sql_words

_CHANGES = {
    "insert": {Change.INSERT},
    "update": {Change.UPDATE},
    "delete": {Change.DELETE},
}


def triggers(book: Rulebook) -> Iterator[Trigger]:
    """Every edge, in the rulebook's order. A statement's target and kind are taken from its words:
    what a view or a procedure would write is not seen."""
    users = {name: list(_users(book, name)) for name in (*book.events, *book.rules)}
    for rule in book.rules.values():
        for table, changes in written(rule, book).items():
            for event in book.events.values():
                if (
                    isinstance(event, TableEvent)
                    and event.table == table
                    and _is_of(event, changes)
                ):
                    for user in users[event.name]:
                        yield Trigger(rule.name, "table", table, event.name, user)
        for action in _actions(rule):
            if isinstance(action, SignalAction):
                for user in users.get(action.event, ()):
                    yield Trigger(rule.name, "signal", action.event, action.event, user)
        for user in users[rule.name]:
            yield Trigger(rule.name, "rule", rule.name, rule.name, user)


def written(rule: Rule, book: Rulebook) -> dict[str, set[Change]]:
    """The rulebook's tables that a rule's statements write, and how."""
    found: dict[str, set[Change]] = {}
    for action in _actions(rule):
        if isinstance(action, Sql):
            for table, changes in _targets(action.text):
                if table in book.tables:
                    found.setdefault(table, set()).update(changes)
    return found


def cycles(edges: Iterable[Trigger]) -> tuple[tuple[str, ...], ...]:
    """Groups of rules that can trigger each other, or themselves."""
    follows: dict[str, set[str]] = {}
    for edge in edges:
        follows.setdefault(edge.rule, set()).add(edge.triggers)
    reached = {rule: _reached(rule, follows) for rule in follows}
    groups = {
        tuple(sorted(other for other in ahead if rule in reached.get(other, ())))
        for rule, ahead in reached.items()
        if rule in ahead
    }
    return tuple(sorted(groups))


def _reached(rule: str, follows: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = [rule]
    while ahead:
        new = follows.get(ahead.pop(), set()) - found
        found |= new
        ahead += new
    return found


def _actions(rule: Rule) -> tuple[Action, ...]:
    return (*rule.actions, *rule.otherwise)


def _users(book: Rulebook, name: str) -> Iterator[str]:
    """The rules whose expression names an event type or a rule."""
    for rule in book.rules.values():
        names = {n.name for n in rule.on.walk() if isinstance(n, x.Name | x.BeginOf | x.EndOf)}
        if name in names:
            yield rule.name


def _is_of(event: TableEvent, changes: set[Change]) -> bool:
    return event.change in (Change.CHANGE, Change.TRANSACTION) or event.change in changes


def _targets(text: str) -> Iterator[tuple[str, set[Change]]]:
    """(table, changes) of each INSERT INTO, MERGE INTO, UPDATE, DELETE FROM in a statement."""
    words = list(sql_words(text))
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
