"""The `if` of rules over a trace, without Spark: expressions of the closed list (G30).

Example: a rule has `if: sum(amount) > 1000`. A detection of withdrawals of 700 and 400 is `held`,
one of 100 alone is `failed`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.core.evaluator.firings import FiringExpression, compile_condition
from tidegate.engine.core.evaluator.nodes import RaisingError, UndecidedError
from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.parameters import CHANGE_TYPE, OLD, parameter_schema
from tidegate.engine.core.types.fields import fields_table
from tidegate.engine.core.types.spark import spark_type
from tidegate.engine.core.values import Batch, Detections
from tidegate.engine.evaluate.action_events import with_action_events
from tidegate.engine.evaluate.relation import parameter_relation
from tidegate.engine.evaluate.shape import Shape, shape_of
from tidegate.engine.replay import inferred, times
from tidegate.engine.replay.json_values import ENCODED, EVENT, LINE, decode
from tidegate.engine.replay.line_types import OF_THE_LINE
from tidegate.engine.replay.trace import Trace
from tidegate.rules.errors import InputError, Problem
from tidegate.rules.model import Condition, EventType, Rule, Rulebook, SignalEvent, TableEvent

_NO_COLUMNS = (*OF_THE_LINE, CHANGE_TYPE)
_HINT = "leave out --if: the engine asks Spark then; G30 lists what is evaluated without it"
HELD, FAILED, DEAD, UNASKED = "held", "failed", "dead", "unasked"


@dataclass(frozen=True, slots=True)
class _Asked:
    """The `if` of a rule and its levels (`if`, `fire`, `rearm`), and the shape of its rows."""

    shape: Shape
    expressions: Mapping[str, FiringExpression]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What is said of the detections of a rule. `condition`: `held`, `failed`, `dead` where Spark
    raises, `unasked` where only Spark can tell. `fires`, `rearms`: whether the levels of hysteresis
    are true, if the rule has some."""

    condition: pa.StringArray
    fires: npt.NDArray[np.bool_] | None = None
    rearms: npt.NDArray[np.bool_] | None = None


class Conditions:
    """Asks the `if` of each rule, and the levels of its hysteresis. Signals have the declared
    types; columns of tables have those of their schemas, else of their values in the trace. Raises
    InputError with every `if` that needs Spark."""

    def __init__(self, book: Rulebook, trace: Trace) -> None:
        tables = table_schemas(book, trace)
        book = with_action_events(_seeing_own(book), tables)
        self._book = book
        self._declared = trace.changes.declared.keys()
        self._schemas = {name: parameter_schema(book, name, tables) for name in book.events}
        self._rules: dict[str, _Asked] = {}
        problems = []
        for rule in book.rules.values():
            texts = _asked_of(rule) if rule.enabled else {}
            if not texts:
                continue
            shape, expressions = shape_of(book, rule, tables), {}
            for asked, condition in texts.items():
                found = None
                if not condition.query:
                    found = compile_condition(condition.text, shape.schema, shape.per_firing)
                if found is None:
                    message = f"the condition of rule {rule.name} needs Spark"
                    problems.append(Problem("needs-spark", message, condition.place, _HINT))
                else:
                    expressions[asked] = found
            self._rules[rule.name] = _Asked(shape, expressions)
        if problems:
            raise InputError(problems)

    def outcomes(self, found: Sequence[Detections]) -> Mapping[str, Outcomes]:
        """By rule, what is said of its detections."""
        return {d.rule: self._of_rule(d) for d in found if d.rule in self._rules and len(d)}

    def _of_rule(self, found: Detections) -> Outcomes:
        asked = self._rules[found.rule]
        ids = pa.array(map(str, range(len(found))), pa.string())
        typed = self._typed(found, asked.shape.key)
        relation = parameter_relation(asked.shape, typed, ids, asked.shape.schema)
        starts = np.concatenate([[0], np.cumsum(np.maximum(np.diff(found.offsets), 1))])
        said = {
            name: np.array([*_outcomes(one, relation, starts, 0, len(found))])
            for name, one in asked.expressions.items()
        }
        whole = said.pop("if", np.full(len(found), HELD))
        for level in said.values():
            unknown = (whole == HELD) & np.isin(level, (DEAD, UNASKED))
            whole = np.where(unknown, level, whole)
        levels = {name: level == HELD for name, level in said.items()}
        return Outcomes(pa.array(whole, pa.string()), levels.get("fire"), levels.get("rearm"))

    def _typed(self, found: Detections, key: pa.Schema) -> Detections:
        """The detections with typed columns in place of lines."""
        row, batches = found.event_row.copy(), dict(found.batches)
        for code, event in enumerate(found.events):
            batch, mine = found.batches[event], np.flatnonzero(found.event_code == code)
            if LINE in batch.table.column_names:
                used, row[mine] = np.unique(row[mine], return_inverse=True)
                lines = batch.table[LINE].take(pa.array(batch.row[used])).to_pylist()
                kind, schema = self._book.events[event], self._schemas[event]
                table = parameters(kind, schema, lines, self._declared, self._book.timezone)
                batches[event] = Batch(batch.event, batch.time[used], np.arange(len(used)), table)
        keys = [_key(found.keys[field.name], field.type) for field in key]
        table = pa.table(keys, schema=key)
        return replace(found, keys=table, event_row=row, batches=batches, used=None)


def parameters(
    event: EventType,
    schema: pa.Schema,
    lines: Sequence[bytes],
    declared: Collection[str],
    zone: str,
) -> pa.Table:
    """The parameters of some lines of an event type. `declared`: the tables whose types are. Their
    timestamps without offset are in a zone."""
    if _of_table(event) and event.table not in declared:
        rows = list(map(json.loads, lines))
        values = ([inferred.typed(row.get(f.name), f.type) for row in rows] for f in schema)
        arrays = [pa.array(each, f.type) for each, f in zip(values, schema, strict=True)]
        return pa.table(arrays, schema=schema)
    exact = [json.loads(line, parse_float=Decimal) for line in lines]
    if _of_table(event):
        exact = [times.in_zone(row, schema, zone) for row in exact]
    fields = {f.name: spark_type(f.type) for f in schema if f.name not in OF_THE_LINE}
    return fields_table(SignalEvent(event.name, event.place, fields), exact)


def _asked_of(rule: Rule) -> Mapping[str, Condition]:
    found = {"if": rule.condition} if rule.condition is not None else {}
    levels = {"fire": rule.levels.fire, "rearm": rule.levels.rearm} if rule.levels else {}
    return found | levels


def _outcomes(
    expression: FiringExpression, relation: pa.Table, starts: np.ndarray, first: int, last: int
) -> Iterator[str]:
    """The outcomes of the detections first .. last. Those that cannot be decided are found by
    halving. Detection i has the rows from starts[i] on."""
    rows = relation.slice(starts[first], starts[last] - starts[first])
    try:
        held = expression.held(rows)
    except UndecidedError as error:
        if last - first == 1:
            yield DEAD if isinstance(error, RaisingError) else UNASKED
            return
        middle = (first + last) // 2
        yield from _outcomes(expression, relation, starts, first, middle)
        yield from _outcomes(expression, relation, starts, middle, last)
        return
    yield from (HELD if str(n) in held else FAILED for n in range(first, last))


# -- types ----------------------------------------------------------------------------------------


def table_schemas(book: Rulebook, trace: Trace) -> Mapping[str, pa.Schema]:
    """The schemas of the tables, as far as the trace shows them."""
    kinds: dict[str, dict[str, set[type]]] = {name: defaultdict(set) for name in book.tables}
    for name, columns in trace.changes.kinds.items():
        kinds[name].update({column: {*known} for column, known in columns.items()})
    for event in book.events.values():
        if isinstance(event, TableEvent):
            kinds[event.table].update({column: set() for column in event.columns.values()})
    for window in trace.windows():
        codes, lines = window.column(EVENT).to_numpy(), window.column(LINE)
        for code in np.unique(codes):
            kind = book.events.get(EventKey.of(trace.events[code]).event)
            if kind is not None and _of_table(kind):
                for line in lines.take(pa.array(np.flatnonzero(codes == code))).to_pylist():
                    for column, value in _columns(kind, json.loads(line)):
                        kinds[kind.table][column].add(inferred.kind(value))
    shown = {
        table: pa.schema([pa.field(name, inferred.type_of(kind)) for name, kind in columns.items()])
        for table, columns in kinds.items()
    }
    return {**shown, **trace.changes.declared}


def _seeing_own(book: Rulebook) -> Rulebook:
    """The rulebook without `ignore_own`: in a trace no change is a rule's own."""
    rules = {
        name: replace(rule, pattern=replace(rule.pattern, ignore_own=False))
        for name, rule in book.rules.items()
    }
    return replace(book, rules=rules)


def _of_table(event: EventType) -> TypeGuard[TableEvent]:
    """Whether its parameters are columns of a table, whose types nobody declares."""
    return isinstance(event, TableEvent) and not event.change.is_commit


def _columns(event: TableEvent, fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The columns of the table that a line shows."""
    for name, value in fields.items():
        if name == OLD and isinstance(value, dict):
            yield from value.items()
        elif name in event.columns or not (event.picks or name in _NO_COLUMNS):
            yield event.columns.get(name, name), value


# -- values ---------------------------------------------------------------------------------------


def _key(values: pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if pa.types.is_null(kind):  # of several kinds
        return pa.nulls(len(values))
    if values.type == ENCODED:
        shown = (None if value is None else decode(value) for value in values.to_pylist())
        values = pa.chunked_array([pa.array(shown)])
    return values.cast(kind, safe=False)
