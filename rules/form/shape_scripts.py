"""The scripts of a rulebook: their programs, the event types of their outputs, and the events of
their inputs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from tidegate.rules.analysis.draft import Draft, refuse_relative
from tidegate.rules.analysis.key_types import (
    ERROR_FIELDS,
    Columns,
    declared_columns,
    fits,
    is_decimal,
    payload,
    sql_of,
)
from tidegate.rules.errors import InputError, Place, Problem
from tidegate.rules.eventscript import reader
from tidegate.rules.eventscript.tree import Expression, Field, Input, Program, Raw
from tidegate.rules.eventscript.types import Basic, Structure
from tidegate.rules.form.assembly import is_script
from tidegate.rules.form.scripts import ERROR
from tidegate.rules.form.variables import Variables
from tidegate.rules.model import Script, ScriptEvent, ScriptInput, SignalEvent, TableEvent
from tidegate.rules.yaml.files import read_file
from tidegate.rules.yaml.kinds import Record, Report
from tidegate.rules.yaml.reader import Scalar


def shape_scripts(
    book: Draft, file: str | None, markers_max: int, variables: Variables, report: Report
) -> None:
    """Read the scripts, declare the event types of their outputs, and find those of their inputs.
    An input whose name is no event type declares a signal."""
    programs: dict[str, Program] = {}
    for name, record in book.records("scripts").items():
        if name in book.names("rules"):
            message = f"a rule is called {name!r}, too"
            report.add("name", message, book.top.key_place("scripts", name), "rename one of them")
        program = _program(book, record, file, markers_max, variables, report)
        if program is not None:
            programs[name] = program
    book.scripts_readable = len(programs) == len(book.names("scripts"))
    outputs = {name: _outputs(book, name, each, report) for name, each in programs.items()}
    for name, program in programs.items():
        record = book.records("scripts")[name]
        book.scripts[name] = Script(
            name,
            book.top.key_place("scripts", name),
            program,
            _inputs(book, name, program, report),
            outputs[name],
            **record.given(
                "machine", "on_error", "enabled", expire_key_after_micros="expire_key_after"
            ),
        )
        _check_keys(book.scripts[name], file, record, report)


def _program(
    book: Draft,
    record: Record,
    file: str | None,
    markers_max: int,
    variables: Variables,
    report: Report,
) -> Program | None:
    """The program of a script. Its problems and warnings are added to the report."""
    try:
        if "text" in record.values:
            text, node = record.get("text")
            read = reader.read(text, locate=node.locator(), markers_max=markers_max)
        elif "file" in record.values:
            path = written = record.get("file")
            if not os.path.isabs(path):
                if file is None:
                    refuse_relative(path, record.place("file"), "an absolute path", report)
                    return None
                path = os.path.join(os.path.dirname(file), path)
            if written not in book.files:
                book.files[written] = _text(path, record)
            text = book.files[written]
            known = len(report.problems)
            node = variables.script(Scalar(Place(path), text, '"', text), report.problems)
            if len(report.problems) > known:
                return None
            read = reader.read(node.text, locate=node.locator(), markers_max=markers_max)
        else:
            return None
    except InputError as error:
        report.problems.extend(error.problems)
        return None
    program, warnings = read
    report.warnings.extend(warnings)
    return program


def _text(path: str, record: Record) -> str:
    """The text of a script's file. That a file is missing is a problem of the key `file`."""
    if not os.path.isfile(path):
        raise InputError([Problem("file", f"there is no file {path}", record.place("file"))])
    return read_file(path)


def _outputs(book: Draft, name: str, program: Program, report: Report) -> Mapping[str, str]:
    """Declare an event type for each output; for `$error` only if the rulebook names it."""
    record = book.records("scripts")[name]
    named = record.readable("out")
    for of in named.keys() - program.outputs.keys() - {ERROR}:
        hint = report.did_you_mean(of, [*program.outputs, ERROR])
        message = f"the script {name!r} has no output {of!r}"
        report.add("unknown-output", message, record.key_place("out", of), hint)
    found: dict[str, str] = {}
    keys = zip(program.key_names, map(sql_of, program.key_types), strict=True)
    columns = dict(keys)
    for of in [*program.outputs, *([ERROR] if ERROR in named else [])]:
        event = named.get(of, of)
        place = record.key_place("out", of) if of in named else book.top.key_place("scripts", name)
        if event in book.names("events", "rules") or event in book.made:
            message = f"the output {of!r} of the script {name!r} has a name that is taken: {event}"
            report.add("name", message, place, f"name the event: out: {{{of}: {name}_{of}}}")
            continue
        own = ERROR_FIELDS if of == ERROR else payload(program.outputs[of])
        book.events[event] = ScriptEvent(
            event, place, name, of, {**columns, **own}, program.key_names
        )
        book.made.add(event)
        found[of] = event
    return found


def _inputs(book: Draft, name: str, program: Program, report: Report) -> Mapping[str, ScriptInput]:
    record = book.records("scripts")[name]
    given = record.readable("in")
    inputs = {each.name: each for each in program.inputs}
    for of in given.keys() - inputs.keys():
        hint = report.did_you_mean(of, inputs)
        message = f"the script {name!r} has no input {of!r}"
        report.add("unknown-input", message, record.key_place("in", of), hint)
    found: dict[str, ScriptInput] = {}
    for of, declared in inputs.items():
        said = given.get(of)
        event = said.get("event", of) if said else of
        known = book.names("events", "rules") | book.made
        if said and said.has("event") and event not in known:
            if book.readable("events", "rules"):
                hint = report.did_you_mean(event, known)
                place = said.place("event")
                report.add("unknown-event", f"unknown event {event!r}", place, hint)
            continue
        if event not in known:
            book.events[event] = SignalEvent(event, declared.place, payload(declared.type))
            book.made.add(event)
        columns = declared_columns(book.events.get(event))
        value = _value(declared, event, said, columns, report)
        order = _order(event, said, columns, report) if said else ()
        found[of] = ScriptInput(event, value, order)
        _at_once(book, declared, found[of], said.place() if said else declared.place, report)
    return found


def _at_once(book: Draft, read: Input, taken: ScriptInput, place: Place, report: Report) -> None:
    """Warn of an input whose simultaneous rows come in no declared order. An example is a table
    whose commits have several rows. If the group has the table's key, an instance sees one row."""
    event = book.events.get(taken.event)
    if not isinstance(event, TableEvent) or event.change.is_commit:
        return
    table = book.tables.get(event.table)
    key = {*table.key} if table is not None else set()
    columns = event.columns or {}
    group = {columns.get(name, name) for each in read.group for name in _column_of(each, taken)}
    if key and key <= group:
        return
    if event.time is None and not taken.order_by:
        of = read.name
        message = (
            f"rows of {taken.event!r} in one commit are simultaneous: {of!r} takes them in"
            " the order of their values"
        )
        hint = f"give the event a time:, or write in: {{{of}: {{order_by: [COLUMN]}}}}"
        report.warn("order", message, place, hint)


def _column_of(expression: Expression, taken: ScriptInput) -> Iterator[str]:
    """The column that a group's expression names; nothing for a computed expression."""
    match expression:
        case Field(structure=Raw(), name=name):
            yield name
        case Raw() if taken.value is not None:
            yield taken.value


def _check_keys(script: Script, file: str | None, record: Record, report: Report) -> None:
    """Warn of keys that are never forgotten, and of `expire_key_after` without keys."""
    grouped = next((each for each in script.program.inputs if each.group), None)
    if grouped is None and script.expire_key_after_micros is not None:
        message = f"the script {script.name!r} has no group, so that it has no key to forget"
        hint = "leave it out, or give an input a group(..)"
        report.warn("no-key", message, record.place("expire_key_after"), hint)
    if grouped is None or script.expire_key_after_micros is not None:
        return
    message = f"the script {script.name!r} keeps what it knows of each key for ever"
    hint = "say expire_key_after: 7 days, or how long a key may be silent before it begins anew"
    if is_script(file):
        hint = f"name the file in a rulebook, and there {hint}"
    report.warn("unbounded", message, grouped.place, hint)


def _order(event: str, said: Record, columns: Columns | None, report: Report) -> tuple[str, ...]:
    """The columns of `order_by`, which the event has."""
    order: tuple[str, ...] = said.get("order_by", ())
    for column in order:
        if columns is not None and column not in columns:
            hint = report.did_you_mean(column, columns)
            place = said.place("order_by")
            report.add("unknown-column", f"{event!r} has no column {column!r}", place, hint)
    return order


def _value(
    declared: Input, event: str, said: Record | None, columns: Columns | None, report: Report
) -> str | None:
    """The column of an input of one value. None: the input is a structure, or it takes the only
    column of a table, which only the table knows."""
    column: str | None = said.get("value") if said else None
    place = said.place("value") if said and column else declared.place
    if isinstance(declared.type, Structure):
        if column is not None:
            hint = "its fields are the columns of their names"
            message = f"the input {declared.name!r} is a structure"
            report.add("value", message, place, hint)
        column, wanted = None, dict(declared.type.fields)
    elif columns is not None:
        usual = (name for name in columns if name == "value" or len(columns) == 1)
        column = column or next(usual, None)
        if column is None:
            message = f"which column of {event!r} the input {declared.name!r} takes is not said"
            hint = f"{event!r} carries nothing: declare in {{}} {declared.name}"
            if columns:
                hint = f"write in: {{{declared.name}: {{event: {event}, value: COLUMN}}}}"
            report.add("value", message, place, hint)
            return None
        wanted = {column: declared.type}
    if columns is None:
        return column
    for name, kind in wanted.items():
        if name not in columns:
            hint = report.did_you_mean(name, columns)
            report.add("unknown-column", f"{event!r} has no column {name!r}", place, hint)
            continue
        of = columns[name]
        if of is not None and not fits(kind, of):
            message = f"the input {declared.name!r} takes {kind}, and {name} of {event!r} is {of}"
            report.add("type", message, place, "declare another type, or another column")
        elif of is not None and kind == Basic.DOUBLE and is_decimal(of):
            message = f"{name} of {event!r} is {of}: as a double it may lose digits"
            report.warn("decimal", message, place, "declare the input object to keep it exact")
    return column
