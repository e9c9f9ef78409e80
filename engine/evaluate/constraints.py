"""The `where` of a rule, and what is asked of the rows of a window, over real tables: which columns
they read, whether their types fit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa

from tidegate.engine.core.event_names import as_written
from tidegate.engine.core.parameters import OLD, parameter_schema
from tidegate.engine.core.types.spark import spark_type
from tidegate.rules.algebra.asked_columns import conditions_of
from tidegate.rules.algebra.named_parts import named_parts, parts_of
from tidegate.rules.analysis.aggregate_types import over_rows
from tidegate.rules.analysis.predicate_types import common_type, faults, not_common
from tidegate.rules.errors import Problem, did_you_mean
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions.faults import Fault, excerpt
from tidegate.rules.expressions.nodes import Span
from tidegate.rules.expressions.windows import Asked
from tidegate.rules.model import Constraint, Pattern, Rule, Rulebook

Columns = Mapping[str, frozenset[str]]
"""By event type the columns that a condition reads of it, as `x` or `old.x`."""


def where_columns(
    rulebook: Rulebook, rule: Rule, tables: Mapping[str, pa.Schema], problems: list[Problem]
) -> dict[str, frozenset[str]]:
    """What a rule's `where` reads. What does not fit is added to `problems`."""
    where = rule.pattern.where
    if where is None:
        return {}
    found: dict[str, set[str]] = {}
    types: dict[p.Column, str | None] = {}
    apart: list[Fault] = []
    for column in p.columns(where.tree):
        kinds = set()
        for event in _events(rule.pattern, column):
            schema = parameter_schema(rulebook, event, tables)
            name = _spelt(column, schema)
            if name is None:
                hint = did_you_mean(column.column, _names(schema, old=column.old))
                message = f"{column.part} has no column {str(column).partition('.')[2]}"
                problems.append(_problem(where, column.span, message, hint))
                continue
            found.setdefault(event, set()).add(name)
            kinds.add(spark_type(_type(schema, name)))
        types[column] = common_type(kinds) if kinds else None
        if kinds and types[column] is None:
            apart.append(not_common(column, kinds))
    for fault in apart or faults(where.tree, types.get):
        problems.append(_problem(where, fault.span, fault.message, fault.hint))
    return {event: frozenset(names) for event, names in found.items()}


def window_columns(
    rulebook: Rulebook, rule: Rule, tables: Mapping[str, pa.Schema], problems: list[Problem]
) -> dict[str, frozenset[str]]:
    """What the `fire` and `rearm` of a window read. What does not fit is added to `problems`."""
    found: dict[str, set[str]] = {}
    names = sorted(x.names_in(rule.pattern.on) - rulebook.rules.keys())
    for asked in conditions_of(rule.pattern):
        types: dict[p.Column, str | None] = {}
        faults_: list[Fault] = []
        for aggregate in p.aggregates(asked.tree):
            columns: list[dict[str, str | None]] = []
            for event in names:
                schema = parameter_schema(rulebook, event, tables)
                name = _spelt(aggregate.of_rows, schema)
                columns.append(dict.fromkeys(_names(schema, old=aggregate.old)))
                if name is not None:
                    found.setdefault(event, set()).add(name)
                    columns[-1][name.removeprefix(f"{OLD}.")] = spark_type(_type(schema, name))
            faults_ += over_rows(aggregate, columns, types)
        for fault in faults_ or faults(asked.tree, types.get):
            problems.append(_problem(asked, fault.span, fault.message, fault.hint))
    return {event: frozenset(columns) for event, columns in found.items()}


def with_asked(columns: Collection[str], asked: Collection[str]) -> tuple[str, ...]:
    """Columns of an event type, and those that a condition reads of it. Who reads all of `old` has
    each `old.x`."""
    more = {name for name in asked if OLD not in columns or not name.startswith(f"{OLD}.")}
    return tuple(sorted({*columns, *more}))


def _events(pattern: Pattern, column: p.Column) -> Iterator[str]:
    """The event types that a column may be of, by the names under which the engine has them."""
    written = named_parts(as_written(pattern.on))
    named = {part.path for part in parts_of(column, written)}
    events = (part.event for part in named_parts(pattern.on) if part.path in named)
    return iter(dict.fromkeys(events))


def _names(schema: pa.Schema, *, old: bool) -> list[str]:
    if not old:
        return [name for name in schema.names if name != OLD]
    return [f.name for f in schema.field(OLD).type] if OLD in schema.names else []


def _spelt(column: p.Column, schema: pa.Schema) -> str | None:
    """The column that is meant, as `x` or `old.x`. The case of a name does not matter to SQL."""
    names = _names(schema, old=column.old)
    alike = [name for name in names if name.lower() == column.column.lower()]
    found = column.column if column.column in alike else next(iter(alike), None)
    return f"{OLD}.{found}" if found and column.old else found


def _type(schema: pa.Schema, name: str) -> pa.DataType:
    old, _, inner = name.partition(".")
    if inner and name not in schema.names:
        return schema.field(old).type.field(inner).type
    return schema.field(name).type


def _problem(where: Constraint | Asked, span: Span, message: str, hint: str) -> Problem:
    code = "where" if isinstance(where, Constraint) else "window"
    return Problem(code, message, where.place, hint, excerpt(where.text, span))
