"""Event time: which rules run behind the watermark, and how far (G5)."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.rules import expression as x
from tidegate.rules.model import Rule, Rulebook, TableEvent


def lateness_micros(book: Rulebook) -> Mapping[str, int]:
    """How far each rule runs behind the watermark: by the largest lateness of the event types over
    event time that it uses, also through other rules; in whole milliseconds. Rules without any are
    not in it.

    Example: `placed` has `time: at, lateness: 10 min` and `paid` has none; `placed ; paid` runs ten
    minutes behind, and a rule over `paid` alone does not.
    """
    found: dict[str, int | None] = {}
    for rule in book.rules.values():
        _lateness(rule, book, found)
    return {
        name: -(-micros // 1_000) * 1_000 for name, micros in found.items() if micros is not None
    }


def _lateness(rule: Rule, book: Rulebook, found: dict[str, int | None]) -> int | None:
    if rule.name not in found:
        found[rule.name] = None
        behind = []
        for node in rule.on.walk():
            if not isinstance(node, x.Name | x.Edge):
                continue
            if isinstance(node, x.Edge) and node.name in book.rules:
                continue  # an action's edges are never late
            event = book.events.get(node.name)
            if isinstance(event, TableEvent) and event.time is not None:
                behind.append(event.lateness_micros)
            elif node.name in book.rules:
                used = _lateness(book.rules[node.name], book, found)
                behind += [] if used is None else [used]
        found[rule.name] = max(behind, default=None)
    return found[rule.name]
