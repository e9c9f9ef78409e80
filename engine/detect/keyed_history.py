"""A history that is larger than one machine, detected by key: what is stepped where.

The components of the rulebook are detected in parts, by partition of their key's hash, wherever
these are. Event types without a component's key are sent to each of its parts. All other rules are
detected over what they look at, in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidegate.engine.core.event_names import EventKey, whole_of
from tidegate.engine.core.ports import WORKER_ROWS
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.components import Component, components
from tidegate.engine.detect.events.occurrences.occurrence_table import read_occurrences, wrong
from tidegate.engine.detect.events.occurrences.timeline import of_table
from tidegate.engine.detect.events.state.partitions import partitions
from tidegate.engine.detect.events.step import result
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.table import Span, check_history, detected, span_of
from tidegate.rules.analysis.graph import uses_of
from tidegate.rules.model import Rulebook, ScriptEvent

PART_ROWS_MIN = 50_000
"""Fewer rows than these are not worth a part of their own."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a history beforehand: how many occurrences each event type has, when its
    first one happens; when the last of all does."""

    counts: Mapping[str, int]
    firsts: Mapping[str, int]
    last: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """What every part is detected with."""

    book: Rulebook
    keyed: tuple[Component, ...]
    span: Span
    schema: pa.Schema
    id: str

    def detected(self, rules: Collection[str], rows: pa.Table) -> pa.Table:
        """What some rules detect in some rows, in the columns that all parts have. Of equal rows
        the one with the lesser id is first, in whatever order they come."""
        log = read_occurrences(rows.sort_by(self.id))
        found = detected(self.book, of_table(log), self.span, rules)
        table = result.joined(self.book, found, log.table, self.id)
        return pa.table(
            [table.column(field.name).cast(field.type) for field in self.schema], self.schema
        )


class KeyedHistory:
    """A rulebook over a history of some columns. `cores`: how many parts may be detected at a time.

    Raises `InputError` for event types and keys that do not fit the rulebook.
    """

    def __init__(
        self, book: Rulebook, facts: Facts, schema: pa.Schema, id: str, cores: int
    ) -> None:
        check_history(book, facts.counts, schema, id)
        if pa.types.is_nested(schema.field(id).type):
            raise wrong("id-type", f"column {id} is {schema.field(id).type}, which has no order")
        span = span_of(book, facts.firsts, facts.last)
        emitting = {e for e, kind in book.events.items() if isinstance(kind, ScriptEvent)}
        needs_scripts = any(
            not emitting.isdisjoint(uses_of(rule, book.rules))
            for rule in book.rules.values()
            if rule.enabled
        )
        book = book if needs_scripts else replace(book, scripts={})
        graph = Detector(book, dict.fromkeys(book.rules, span.activation)).graph
        found = components(book, graph)
        self.reasons = found.rest
        """By rule that is detected in one place, why."""
        here = {
            whole_of(event)
            for name in graph.roots
            if EventKey.of(name).event in found.rest
            for event in graph.events[name]
        }
        if needs_scripts:
            here = {*facts.counts}  # what scripts take may be of any rule
        self._rest = _Plan(book, (), span, result.schema(book, schema, id), id)
        self._plan = replace(self._rest, book=replace(book, scripts={}), keyed=found.keyed)
        self._facts = facts
        self.here = frozenset(here) & facts.counts.keys()
        """The event types that the other rules look at."""
        self.sent = [
            frozenset(e for e, c in part.events.items() if c is None) & facts.counts.keys()
            for part in found.keyed
        ]
        """For each component the event types that are sent to all of its parts."""
        rows = max((self._rows(part) for part in found.keyed), default=0)
        self.parts = max(-(-rows // WORKER_ROWS), min(cores, -(-rows // PART_ROWS_MIN)), 1)
        """Into how many parts each component is cut."""

    @property
    def schema(self) -> pa.Schema:
        """Of the detections."""
        return self._plan.schema

    def _rows(self, component: Component) -> int:
        events = component.events.items()
        return sum(self._facts.counts.get(e, 0) for e, columns in events if columns is not None)

    @property
    def keys(self) -> list[str]:
        """The columns that some component is keyed by, of event types that occur."""
        ways = (part.events.get(e) for part in self._plan.keyed for e in self._facts.counts)
        return sorted({column for columns in ways for column in columns or ()})

    def places(self) -> Callable[[pa.Array, Mapping[str, pa.Array]], pa.Array]:
        """A function of the event types and the key columns of some rows: for each row the list of
        the parts that it is of, numbered through all components."""
        return _Places(self._plan.keyed, self.parts)

    def part(self, sent: pa.Table | None) -> Callable[[int, pa.Table], pa.Table]:
        """A function of a part's number and its rows, which gives what is detected in it. `sent`:
        the rows of all event types that are sent to all parts of some component."""
        heard = []
        for events in self.sent:
            rows = None
            if sent is not None and events:
                mine = np.isin(sent.column("event").to_numpy(zero_copy_only=False), [*events])
                rows = sent.filter(pa.array(mine))
            heard.append(rows)
        return _Part(self._plan, tuple(heard), self.parts)

    def detected_here(self, rows: pa.Table) -> pa.Table:
        """What the other rules detect over the rows of the event types `here`."""
        return self._rest.detected(self.reasons, rows)


@dataclass(frozen=True)
class _Places:
    keyed: tuple[Component, ...]
    parts: int

    def __call__(self, event: pa.Array, keys: Mapping[str, pa.Array]) -> pa.Array:
        names = event.dictionary_encode()
        rows, places = [], []
        for number, component in enumerate(self.keyed):
            for code, name in enumerate(names.dictionary.to_pylist()):
                columns = component.events.get(name)
                if columns is not None:
                    row = np.flatnonzero(names.indices.to_numpy() == code)
                    of = [pa.chunked_array([keys[c].take(pa.array(row))]) for c in columns]
                    rows.append(row)
                    places.append(number * self.parts + partitions(of, self.parts))
        return _lists(len(event), rows, places)


def _lists(count: int, rows: list[Int64], values: list[Int64]) -> pa.Array:
    """For each of `count` rows the list of its values."""
    row = np.concatenate([np.empty(0, np.int64), *rows])
    value = np.concatenate([np.empty(0, np.int64), *values])
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=count))])
    order = np.argsort(row, kind="stable")
    return pa.ListArray.from_arrays(
        pa.array(offsets.astype(np.int32)), pa.array(value[order].astype(np.int32))
    )


@dataclass(frozen=True)
class _Part:
    plan: _Plan
    heard: tuple[pa.Table | None, ...]
    parts: int

    def __call__(self, number: int, rows: pa.Table) -> pa.Table:
        component = number // self.parts
        heard = self.heard[component]
        if heard is not None:
            rows = pa.concat_tables([rows, heard.cast(rows.schema)])
        return self.plan.detected(self.plan.keyed[component].rules, rows)
