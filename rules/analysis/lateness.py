"""Event time: which rules and scripts run behind the watermark, and how far (G5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Rule, Rulebook, Script, ScriptEvent, TableEvent


def lateness_micros(book: Rulebook) -> Mapping[str, int]:
    """How far each rule and script runs behind the watermark: by the largest lateness of the event
    types over event time that it uses, also through other rules and scripts; in whole milliseconds.
    Those without any are not in it.

    Example: `placed` has `time: at, lateness: 10 min` and `paid` has none; `placed ; paid` runs ten
    minutes behind, and a rule over `paid` alone does not.
    """
    found: dict[str, int | None] = {}
    for rule in book.rules.values():
        _lateness(rule, book, found)
    for script in book.scripts.values():
        _lateness(script, book, found)
    return {
        name: -(-micros // 1_000) * 1_000 for name, micros in found.items() if micros is not None
    }


def _lateness(of: Rule | Script, book: Rulebook, found: dict[str, int | None]) -> int | None:
    if of.name not in found:
        found[of.name] = None
        each = (_of_event(name, book, found) for name in _events(of, book))
        found[of.name] = max((late for late in each if late is not None), default=None)
    return found[of.name]


def _events(of: Rule | Script, book: Rulebook) -> Iterator[str]:
    """The event types and rules that a rule or script uses."""
    if isinstance(of, Script):
        yield from (each.event for each in of.inputs.values())
        return
    for node in of.on.walk():
        edge_of_action = isinstance(node, x.Edge) and node.name in book.rules  # never late
        if isinstance(node, x.Name | x.Edge) and not edge_of_action:
            yield node.name


def _of_event(name: str, book: Rulebook, found: dict[str, int | None]) -> int | None:
    event = book.events.get(name)
    if isinstance(event, TableEvent) and event.time is not None:
        return event.lateness_micros
    if isinstance(event, ScriptEvent) and event.script in book.scripts:
        return _lateness(book.scripts[event.script], book, found)
    return _lateness(book.rules[name], book, found) if name in book.rules else None
