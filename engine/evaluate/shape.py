"""The shape of a rule's parameter relation `event` (semantics 5), known before anything is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from tidegate.engine.core.columns.transitions import with_transitions
from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.parameters import (
    COLUMNS_HINT,
    ENGINE_COLUMNS,
    INSTANT,
    OLD,
    SAMPLE,
    clash,
    has_old,
    key_schema,
    missing_columns,
    parameter_schema,
)
from tidegate.engine.core.types.common import common_type, outer_union
from tidegate.engine.core.types.spark import spark_type
from tidegate.engine.evaluate.transition_tables import transitions
from tidegate.rules.algebra.asked_columns import aggregates_of
from tidegate.rules.errors import InputError, Problem
from tidegate.rules.expressions.nodes import (
    Aperiodic,
    AperiodicStar,
    Edge,
    Expression,
    Labelled,
    Minus,
    Name,
    Not,
    Periodic,
    PeriodicStar,
    Plus,
)
from tidegate.rules.model import Pattern, Rule, Rulebook, TableEvent


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a rule's `event`.

    `schema`: the engine's columns, the key columns, the parameters, `old`, and `L_start`, `L_end`
    for every label L. Its metadata has the transition tables. `per_firing`: the columns with one
    value a firing, which expressions may name outside aggregates. `columns`: by event type in a
    parameter role, the column of each parameter. A key column stands for parameters of its name.
    """

    schema: pa.Schema
    per_firing: tuple[str, ...]
    columns: Mapping[str, Mapping[str, str]]
    key: pa.Schema

    def narrowed(self, read: Collection[str]) -> pa.Schema:
        """The schema with only those parameters that are in `read`: columns, or `old.x` for a field
        of the pre-image."""
        fixed = {*ENGINE_COLUMNS, *self.per_firing}
        fields = [field for field in self.schema if field.name in fixed or field.name in read]
        if OLD not in read and OLD in self.schema.names:
            images = self.schema.field(OLD).type.fields
            if inner := [field for field in images if f"{OLD}.{field.name}" in read]:
                fields.append(pa.field(OLD, pa.struct(inner)))
        return pa.schema(fields)


def shape_of(
    rulebook: Rulebook,
    rule: Rule,
    tables: Mapping[str, pa.Schema],
    samples: Collection[pa.DataType] = (),
) -> Shape:
    """The shape of a rule's relation. `tables`: the schemas of the rulebook's tables by name.
    `samples`: the types of its samples.

    Raises InputError with every name and type that does not fit.
    """
    problems: list[Problem] = []
    schemas = _schemas(rulebook, rule, tables, problems)
    key = key_schema(rule, rulebook, tables, problems)
    labels = [part.label for part in rule.pattern.on.walk() if isinstance(part, Labelled)]
    spans = [f"{label}_{side}" for label in dict.fromkeys(labels) for side in ("start", "end")]
    per_firing = ("firing_id", "started_at", "detected_at", *key.names, *spans)
    counted = _only_counted(rulebook, rule.pattern)
    columns, parameters = _merge(schemas, rule, spans, counted, problems)
    _add_sample(samples, rule, parameters, problems)
    if problems:
        raise InputError(problems)
    schema = pa.schema(
        [
            *(pa.field(name, kind) for name, kind in ENGINE_COLUMNS.items()),
            *key,
            *(pa.field(name, kind) for name, kind in parameters.items()),
            *(pa.field(name, INSTANT) for name in spans),
        ]
    )
    schema = with_transitions(schema, transitions(rulebook, rule.reaction, columns, tables))
    return Shape(schema, per_firing, columns, key)


def parameter_events(rulebook: Rulebook, pattern: Pattern) -> Iterator[str]:
    """The event types whose occurrences are constituents: the names in parameter roles, also
    through rules that are used as events (S8). A name comes once for each role."""
    for name in _parameter_names(pattern.on):
        if name in rulebook.rules:
            yield from parameter_events(rulebook, rulebook.rules[name].pattern)
        else:
            yield name


def all_events(rulebook: Rulebook, pattern: Pattern) -> Iterator[str]:
    """Every event type that a rule's detections depend on."""
    for part in pattern.on.walk():
        if isinstance(part, Name | Edge):
            if part.name in rulebook.rules:
                yield from all_events(rulebook, rulebook.rules[part.name].pattern)
            else:
                yield part.name


def _parameter_names(node: Expression) -> Iterator[str]:
    if isinstance(node, Name | Edge):
        yield node.name
    elif isinstance(node, Minus | Aperiodic | AperiodicStar):
        yield from _parameter_names(node.part)
    elif isinstance(node, Not):
        yield from _parameter_names(node.opener)
        yield from _parameter_names(node.closer)
    elif not isinstance(node, Periodic | PeriodicStar | Plus):
        for operand in node.operands():
            yield from _parameter_names(operand)


def _only_counted(rulebook: Rulebook, pattern: Pattern) -> frozenset[str]:
    """The columns, in lower case, that the windows of a rule count and take nothing else of, also
    those of rules that are used as events: `count(v)` needs no common type."""
    used = [rulebook.rules[name] for name in _parameter_names(pattern.on) if name in rulebook.rules]
    inner = (_only_counted(rulebook, rule.pattern) for rule in used)
    found = [one for one in aggregates_of(pattern) if not one.old]
    other = {one.column.lower() for one in found if one.part != "count"}
    return frozenset({one.column.lower() for one in found} - other).union(*inner)


def _schemas(
    rulebook: Rulebook, rule: Rule, tables: Mapping[str, pa.Schema], problems: list[Problem]
) -> dict[str, pa.Schema]:
    """The parameters of every event type in a parameter role."""
    schemas = {}
    for name in dict.fromkeys(parameter_events(rulebook, rule.pattern)):
        event = rulebook.events[name]
        if missing := missing_columns(event, tables):
            text = f"table {getattr(event, 'table', '')} has no column {', '.join(missing)}"
            problems.append(Problem("unknown-column", text, event.place))
            continue
        if said := clash(event, tables):
            message, hint = said
            problems.append(Problem("column-twice", message, event.place, hint))
        schemas[name] = parameter_schema(rulebook, name, tables)
        own = list(schemas[name].names)
        if isinstance(event, TableEvent) and has_old(event, rulebook.tables[event.table]):
            own.remove(OLD)
        taken = {column.lower() for column in (*ENGINE_COLUMNS, OLD, "new")}
        problems += [
            Problem(
                "reserved-column",
                f"event type {EventKey.of(name).written} has a column {column},"
                " which is a name of the engine's",
                event.place,
                COLUMNS_HINT,
            )
            for column in own
            if column.lower() in taken
        ]
    return schemas


def _add_sample(
    samples: Collection[pa.DataType],
    rule: Rule,
    parameters: dict[str, pa.DataType],
    problems: list[Problem],
) -> None:
    """Add the column `sample`, if the rule has samples."""
    if not samples:
        return
    kind: pa.DataType | None = pa.null()
    for one in samples:
        kind = common_type(kind, one) if kind is not None else None
    if SAMPLE in {name.lower() for name in (*parameters, *rule.pattern.key_names)}:
        message = f"the column {SAMPLE} is what the ticks of rule {rule.name} sample"
        problems.append(Problem("reserved-column", message, rule.place, COLUMNS_HINT))
    elif kind is None:
        said = ", ".join(map(str, samples))
        message = f"the samples of rule {rule.name} have no common type: {said}"
        problems.append(Problem("column-type", message, rule.place, "cast them to one type"))
    else:
        parameters[SAMPLE] = kind


def _merge(
    schemas: Mapping[str, pa.Schema],
    rule: Rule,
    spans: list[str],
    counted: Collection[str],
    problems: list[Problem],
) -> tuple[dict[str, dict[str, str]], dict[str, pa.DataType]]:
    """The outer union of the parameters: by event type and parameter its column, and by column its
    type. One without a common type is left out where it is only `counted`."""
    keys = {name.lower(): name for name in rule.pattern.key_names}
    names: dict[str, str] = {}  # column by lower-case name, as first written
    kinds: dict[str, pa.DataType] = {}
    places: dict[str, dict[str, str]] = {}
    left_out: set[str] = set()
    for event, schema in schemas.items():
        places[event], called = {}, EventKey.of(event).written
        for field in schema:
            lower = field.name.lower()
            if lower in keys:
                places[event][field.name] = keys[lower]
                continue
            column = names.setdefault(lower, field.name)
            places[event][field.name] = column
            unite = outer_union if column == OLD else common_type
            kind = unite(kinds.get(column, pa.null()), field.type)
            if kind is None and lower in counted:
                left_out.add(column)
            elif kind is None:
                message = (
                    f"column {field.name} is {spark_type(field.type)} in event type {called} and "
                    f"{spark_type(kinds[column])} in another of the rule's"
                )
                problems.append(Problem("column-type", message, rule.place, COLUMNS_HINT))
            elif column in spans:
                message = f"column {column} of event type {called} is also the span of a label"
                problems.append(Problem("reserved-column", message, rule.place, COLUMNS_HINT))
            else:
                kinds[column] = kind
    for column in left_out:
        del kinds[column]
    places = {
        event: {name: column for name, column in own.items() if column not in left_out}
        for event, own in places.items()
    }
    if OLD in kinds:
        kinds[OLD] = kinds.pop(OLD)  # last
    return places, kinds
