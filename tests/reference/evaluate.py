"""A whole rulebook over a history: what `simulate` must print (`language.md` 4)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from tests.reference import windows
from tests.reference.contexts import detections
from tests.reference.keys import type_name, views
from tests.reference.meaning import World, leaf_type
from tests.reference.selection import select
from tests.reference.timing import clock_instants
from tests.reference.values import Constituent, Instance, Occurrence, Tick, value_order
from tests.reference.windows.holding import resolutions
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.nodes import BeginOf, Clock, Cron, EndOf, Expression, Resolved
from tidegate.rules.model import ClockEvent, Context, Rule, Rulebook, SignalEvent, TableEvent

Line = tuple[str, int, Mapping[str, Any]]  # event type, microseconds, parameters


@dataclass(frozen=True)
class Detection:
    """One detection of one rule; times in microseconds, constituents ordered as printed."""

    rule: str
    key: Mapping[str, Any]
    start: int
    end: int
    constituents: tuple[Constituent, ...]

    def order(self) -> tuple[Any, ...]:
        """End, rule, key, start, constituents, a prefix first (`language.md` 4)."""
        key = tuple(value_order(value) for value in self.key.values())
        inside = tuple(c.order() for c in self.constituents)
        return (self.end, self.rule, key, self.start, inside)

    def printed(self) -> dict[str, Any]:
        """The JSON object that `simulate` prints, times as numbers of seconds."""
        return {
            "rule": self.rule,
            "key": dict(self.key),
            "start": seconds(self.start),
            "end": seconds(self.end),
            "constituents": [_printed(c) for c in self.constituents],
        }


def seconds(micros: int) -> int | float:
    """Microseconds as the shortest decimal number of seconds: 3, not 3.0."""
    whole, rest = divmod(micros, 1_000_000)
    return float(Decimal(micros) / 1_000_000) if rest else whole


def _printed(constituent: Constituent) -> dict[str, Any]:
    if isinstance(constituent, Tick):
        return {"event": "tick", "time": seconds(constituent.time)}
    return {
        "event": constituent.event,
        "time": seconds(constituent.end),
        **constituent.fields,
    }


def evaluate(
    rulebook: Rulebook,
    history: Iterable[Line],
    *,
    until: int | None = None,
    context: Context | None = None,
    instances_max: int = 100_000,
) -> list[Detection]:
    """Every detection of every enabled rule, in the order of the output.

    Activation is the first line's instant, inclusive. `until` (microseconds) is inclusive;
    `context` overrides every rule's. Raises `TooLargeError` past `instances_max` of one node.
    """
    lines = sorted(history, key=lambda line: line[1])
    shown = [line for line in lines if until is None or line[1] <= until]
    if not shown:
        return []
    horizon = shown[-1][1] if until is None else until
    occurrences = _primitive(rulebook, shown)
    _add_clocks(rulebook, occurrences, shown[0][1], horizon)
    found: list[Detection] = []
    for rule in _in_order(rulebook):
        mine: list[Detection] = []
        ended: list[Detection] = []
        for values, first, view in views(rule, occurrences):
            world = World(view, horizon, rulebook.timezone, instances_max)
            key = dict(zip(rule.pattern.key_names, values, strict=True))
            for instance in _detected(rule, world, until, context):
                if first is None or instance.end >= first:
                    mine.append(_detection(rule.name, key, instance))
            if isinstance(rule.pattern.on, w.Holding):
                ends = resolutions(rule.pattern.on, world, until)
                ended += [_detection(rule.name, key, instance) for instance in ends]
        occurrences[rule.name] = [_as_occurrence(d) for d in mine]
        resolved = Resolved(rule.name)
        occurrences[resolved] = [
            replace(_as_occurrence(d), type=resolved, event=f"resolved {rule.name}") for d in ended
        ]
        found += mine
    return sorted(found, key=Detection.order)


def _detected(
    rule: Rule, world: World, until: int | None, context: Context | None
) -> list[Instance]:
    if isinstance(rule.pattern.on, w.Window):
        return windows.detected(rule.pattern.on, world, until)
    if rule.pattern.selection is not None and context is None:
        return select(rule.pattern.on, rule.pattern.selection, world, until)
    where = rule.pattern.where.tree if rule.pattern.where else None
    return detections(rule.pattern.on, world, context or rule.pattern.context, until, where)


def _detection(rule: str, key: Mapping[str, Any], instance: Instance) -> Detection:
    """Constituents are primitive occurrences in parameter roles, each once, and ticks; those of a
    rule used as an event are its own."""
    inside: set[Constituent] = set()
    for held in instance.constituents():
        parts = held.parts if isinstance(held, Occurrence) else None
        inside.update([held] if parts is None else parts)
    constituents = tuple(sorted(inside, key=lambda c: c.order()))
    return Detection(rule, key, instance.start, instance.end, constituents)


def _as_occurrence(detection: Detection) -> Occurrence:
    """S8: a detection is an occurrence of the rule's name, with interval, key and constituents."""
    return Occurrence(
        type=detection.rule,
        event=detection.rule,
        start=detection.start,
        end=detection.end,
        columns=tuple(value for _, value in sorted(detection.key.items())),
        fields=detection.key,
        parts=detection.constituents,
    )


def _primitive(
    rulebook: Rulebook, lines: Sequence[Line]
) -> dict[str | Expression, list[Occurrence]]:
    """The lines' occurrences by event type. The line of a commit gives `begin_of` one microsecond
    before and `end_of`, which is also its plain name, one after."""
    found: dict[str | Expression, list[Occurrence]] = {}
    for name in {event for event, _, _ in lines}:
        declared = _fields(rulebook, name)
        mine = [(time, {**declared, **fields}) for event, time, fields in lines if event == name]
        columns = sorted({column for _, fields in mine for column in fields})
        kind = rulebook.events.get(name)
        shift = int(isinstance(kind, TableEvent) and kind.change.is_commit)
        plain = [
            Occurrence(name, name, t + shift, t + shift, tuple(f.get(c) for c in columns), f)
            for t, f in mine
        ]
        begin = BeginOf(name)
        found[name] = found[EndOf(name)] = plain
        found[begin] = [
            replace(o, type=begin, start=o.start - 2 * shift, end=o.end - 2 * shift) for o in plain
        ]
    return found


def _fields(rulebook: Rulebook, name: str) -> dict[str, Any]:
    """The declared parameters of a signal, all null: missing ones are null."""
    kind = rulebook.events.get(name)
    return dict.fromkeys(kind.fields) if isinstance(kind, SignalEvent) else {}


def _add_clocks(
    rulebook: Rulebook,
    occurrences: dict[str | Expression, list[Occurrence]],
    first: int,
    last: int,
) -> None:
    """Clock occurrences in [first, last], of named clock events and of literals."""
    for event in rulebook.events.values():
        if isinstance(event, ClockEvent) and isinstance(event.expression, Clock | Cron):
            instants = clock_instants(
                event.expression, first, last, event.timezone, event.days, event.excluded
            )
            occurrences[event.name] = [Occurrence(event.name, event.name, t, t) for t in instants]
    for rule in rulebook.rules.values():
        for node in rule.pattern.on.walk():
            if isinstance(node, Clock | Cron) and node not in occurrences:
                instants = clock_instants(node, first, last, rulebook.timezone)
                name = node.text if isinstance(node, Cron) else format_expression(node)
                occurrences[node] = [Occurrence(node, name, t, t) for t in instants]


def _in_order(rulebook: Rulebook) -> list[Rule]:
    """Enabled rules, each after the rules it uses as events (S8: no cycles)."""
    ordered: list[Rule] = []

    def visit(rule: Rule) -> None:
        if rule in ordered or not rule.enabled:
            return
        for name in {type_name(leaf_type(node)) for node in rule.pattern.on.walk()}:
            if name in rulebook.rules:
                visit(rulebook.rules[name])
        ordered.append(rule)

    for rule in rulebook.rules.values():
        visit(rule)
    return ordered


def canonical(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """Detections as `simulate` prints them, as a sorted multiset of text, for comparison."""
    return sorted(json.dumps(o, sort_keys=True, default=str) for o in objects)


def reference(rulebook: Rulebook, history: Iterable[Line], **options: Any) -> list[str]:
    """`evaluate`, canonical."""
    return canonical(d.printed() for d in evaluate(rulebook, history, **options))
