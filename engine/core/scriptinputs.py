"""The columns that the inputs of event scripts read (design/eventscript.md 1)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from tidegate.engine.core.parameters import INSTANT, parameter_schema
from tidegate.engine.core.types.spark import spark_type
from tidegate.engine.evaluate.shape import key_schema
from tidegate.rules.analysis.script_types import fits
from tidegate.rules.errors import Problem
from tidegate.rules.eventscript.tree import Input
from tidegate.rules.eventscript.types import Structure, Type
from tidegate.rules.model import Rulebook, Script, ScriptInput
from tidegate.rules.nearest import did_you_mean

STARTED, DETECTED = "started_at", "detected_at"
"""The columns of a rule's detection beside those of its key."""


def input_columns(
    book: Rulebook, script: Script, tables: Mapping[str, pa.Schema], problems: list[Problem]
) -> dict[str, tuple[str, ...]]:
    """By event type or rule that a script takes, the columns that it reads, given the schemas of
    the rulebook's tables by name. What does not fit is added to `problems`."""
    found: dict[str, set[str]] = {}
    for each in script.program.inputs:
        taken = script.inputs[each.name]
        schema = _schema(book, taken.event, tables)
        found.setdefault(taken.event, set()).update(_columns(each, taken, schema, problems))
    return {event: tuple(sorted(columns)) for event, columns in found.items()}


def _schema(book: Rulebook, event: str, tables: Mapping[str, pa.Schema]) -> pa.Schema:
    """The columns of an event type, or of what a rule detects."""
    if event not in book.rules:
        return parameter_schema(book, event, tables)
    key = key_schema(book.rules[event], book, tables, [])
    return pa.schema([*key, pa.field(STARTED, INSTANT), pa.field(DETECTED, INSTANT)])


def _columns(
    read: Input, taken: ScriptInput, schema: pa.Schema, problems: list[Problem]
) -> set[str]:
    """The columns that an input reads. A missing column or one of another type is a problem."""

    def wrong(code: str, message: str, hint: str) -> None:
        problems.append(Problem(code, message, read.place, hint))

    typed: dict[str, Type] = {}
    if isinstance(read.type, Structure):
        typed = dict(read.type.fields)
    else:
        column = taken.value or ("value" if "value" in schema.names else None)
        if column is None and len(schema) == 1:
            column = schema.names[0]
        if column is None:
            message = f"which column of {taken.event!r} the input {read.name!r} takes is not said"
            hint = f"write in: {{{read.name}: {{event: {taken.event}, value: COLUMN}}}}"
            wrong("value", message, hint)
            return set()
        typed = {column: read.type}
    for column in dict.fromkeys([*typed, *taken.order_by]):
        if column not in schema.names:
            hint = did_you_mean(column, schema.names)
            wrong("unknown-column", f"{taken.event!r} has no column {column!r}", hint)
            continue
        sql = spark_type(schema.field(column).type)
        if column in typed and not fits(typed[column], sql):
            message = (
                f"the input {read.name!r} takes {typed[column]}, and {column} of {taken.event!r} "
                f"is {sql}"
            )
            wrong("type", message, "declare another type, or another column")
    return {*typed, *taken.order_by}
