"""Runs of the detector over a few lines, and what they keep: evidence without a loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate import rules
from tidegate.engine.core.clocks import clock_batches
from tidegate.engine.core.columns.hashing import row_hash
from tidegate.engine.core.columns.ids import as_binary, as_hex
from tidegate.engine.core.evaluator.filters import compile_filter
from tidegate.engine.core.evaluator.firings import compile_condition
from tidegate.engine.core.event_names import with_edges
from tidegate.engine.core.parameters import INSTANT, parameter_schema
from tidegate.engine.core.types.fields import fields_table
from tidegate.engine.core.values import DAMPED, Batch, Carried, Detections, Firings
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.evaluate.action_events import with_action_events
from tidegate.engine.evaluate.relation import parameter_relation
from tidegate.engine.evaluate.shape import shape_of
from tidegate.engine.replay.conditions import Outcomes
from tidegate.engine.replay.damping import Damper
from tidegate.engine.replay.why_not.evidence import (
    ActiveSpan,
    DroppedRow,
    Evidence,
    RefusedRow,
)
from tidegate.engine.replay.why_not.keys import same_key
from tidegate.rules.model import Rulebook, SignalEvent

SECOND = 1_000_000
NINE = 1_772_442_000 * SECOND
"""2026-03-02, 9:00 UTC."""
Line = tuple[str, float, Mapping[str, Any]]


def at(seconds: float) -> int:
    """So long after nine."""
    return NINE + round(seconds * SECOND)


class Lines:
    """What a run keeps of lines: occurrences, and rows that `where` dropped."""

    def __init__(
        self, book: Rulebook, lines: Iterable[Line], dropped: Sequence[DroppedRow]
    ) -> None:
        self._dropped = list(dropped)
        self.batches: dict[str, Batch] = {}
        each = sorted(lines, key=lambda line: line[1])
        for name, event in book.events.items():
            mine = [line for line in each if line[0] == name]
            if mine and isinstance(event, SignalEvent):
                self._take(book, event, mine)

    def _take(self, book: Rulebook, event: SignalEvent, lines: Sequence[Line]) -> None:
        schema = parameter_schema(book, event.name, {})
        table = fields_table(event, [fields for _, _, fields in lines])
        time = np.array([at(seconds) for _, seconds, _ in lines])
        row = np.arange(len(lines))
        if event.where is not None:
            filter_ = compile_filter(event.where, {f.name: f.type for f in schema})
            assert filter_ is not None
            held = filter_.run({n: table[n] for n in filter_.columns})
            for n in np.flatnonzero(~held):
                fields = table.slice(n, 1).to_pylist()[0]
                self._dropped.append(
                    DroppedRow(event.name, int(time[n]), "where", event.where, fields)
                )
            row = row[held]
        self.batches[event.name] = Batch(event.name, time[row], row, table)

    def occurrences(self, event: str) -> Batch | None:
        return self.batches.get(event)

    def dropped(
        self, event: str, columns: Sequence[str], key: Mapping[str, Any], first: int, last: int
    ) -> Sequence[DroppedRow]:
        mine = [
            row
            for row in self._dropped
            if row.event == event and first <= row.instant <= last
            if same_key(row.row, columns, key if columns else {})
        ]
        return sorted(mine, key=lambda row: row.instant)


def run(
    text: str | Rulebook,
    lines: Iterable[Line],
    until: float,
    *,
    since: float = 0,
    active: Mapping[str, Sequence[ActiveSpan]] | None = None,
    dropped: Sequence[DroppedRow] = (),
    refused: Sequence[RefusedRow] = (),
) -> Evidence:
    """All rules from `since` on, over the lines up to `until`: seconds after nine. `active`: of
    rules that were active otherwise."""
    book = rules.load(text) if isinstance(text, str) else text
    kept = Lines(book, lines, dropped)
    spans = {name: [ActiveSpan(at(since))] for name in book.rules} | dict(active or {})
    spans = {name: some for name, some in spans.items() if some}
    firings: dict[str, list[Firings]] = {}
    damper = Damper(book)
    for name, rule in book.rules.items():
        for span in spans.get(name, ()) if rule.enabled else ():
            end = at(until) if span.end is None else min(span.end, at(until))
            for found in _detected(book, kept, span.begin, end):
                if found.rule == name and len(found):
                    fired = _fired(book, found, damper)
                    if len(fired):
                        firings.setdefault(name, []).append(fired)
    return Evidence(book, at(until), spans, kept, refused, firings)


def _detected(book: Rulebook, kept: Lines, begin: int, end: int) -> Sequence[Detections]:
    enabled = with_edges(book, {*book.events, *book.rules})
    batches = {}
    for name, batch in kept.batches.items():
        inside = np.flatnonzero((batch.time >= begin) & (batch.time <= end))
        batches[name] = batch.take(inside)
    batches |= clock_batches(enabled, begin, end)
    detector = Detector(book, dict.fromkeys(book.rules, begin))
    return detector.step(Carried(), batches, end, end).detections


def _fired(book: Rulebook, found: Detections, damper: Damper) -> Firings:
    """Firings as `evaluate` makes them, with conditions and damping decided."""
    rule = book.rules[found.rule]
    tables: Mapping[str, pa.Schema] = {}
    shape = shape_of(with_action_events(book, tables), rule, tables)
    hashed = row_hash(
        pa.table(
            [pa.array(np.arange(len(found))), pa.array(found.end), *found.keys.columns],
            names=["n", "end", *found.keys.column_names],
        )
    )
    ids = as_hex(hashed)
    relation = parameter_relation(shape, found, ids, shape.schema)
    outcomes = np.full(len(found), "none", object)
    if rule.condition is not None:
        compiled = compile_condition(rule.condition.text, shape.schema, shape.per_firing)
        assert compiled is not None
        held = compiled.held(relation)
        outcomes = np.array(["held" if i in held else "failed" for i in ids.to_pylist()], object)
    asked = rule.condition is not None
    said = {rule.name: Outcomes(pa.array(outcomes, pa.string()))} if asked else {}
    damped = damper.damp([found], said)
    table = pa.table(
        [
            as_binary(hashed),
            *(found.keys[f.name].cast(f.type) for f in shape.key),
            pa.array(found.start).cast(INSTANT),
            pa.array(found.end).cast(INSTANT),
            pa.array(1 + found.depths),
            pa.array(outcomes, pa.string()),
            pa.array(np.diff(found.offsets).astype(np.int32)),
        ],
        names=[
            "firing_id", *shape.key.names, "started_at", "detected_at", "depth", "condition",
            "constituents",
        ],
    )  # fmt: skip
    if rule.name in damped:
        table = table.append_column(DAMPED, damped[rule.name])
    fired = Firings(rule.name, table, relation)
    silent = [{n: str(v) for n, v in key.items()} for key in rule.disabled_for]
    keys = [{n: str(v) for n, v in key.items()} for key in found.keys.to_pylist()] if silent else []
    if silent:
        fired = fired.some(pa.array([key not in silent for key in keys]))
    return fired


def with_conditions(evidence: Evidence, rule: str, outcome: str) -> Evidence:
    """The same with another outcome of every condition of a rule."""
    some = [
        each.with_condition(pa.array([outcome] * len(each), pa.string()))
        for each in evidence.firings[rule]
    ]
    return replace(evidence, firings={**evidence.firings, rule: some})
