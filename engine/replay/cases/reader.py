"""Test files: from `*.test.yaml` to `CaseFile`. All errors of a file are found in one pass."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import yaml
from yaml.events import CollectionEndEvent, CollectionStartEvent, ScalarEvent

from tidegate import rules
from tidegate.engine.core.policy import load_policy
from tidegate.engine.replay.cases.chosen_rules import check_chosen, chosen_rules
from tidegate.engine.replay.cases.columns import check_columns
from tidegate.engine.replay.cases.form import ASKED, FORM
from tidegate.engine.replay.cases.model import CaseFile
from tidegate.engine.replay.cases.schemas import LogSchema, schemas_of
from tidegate.engine.replay.cases.shape import shape
from tidegate.rules.errors import InputError, Problem, in_order, word_place
from tidegate.rules.model import Rulebook
from tidegate.rules.yaml.files import read_file
from tidegate.rules.yaml.kinds import Record, Report
from tidegate.rules.yaml.reader import Fields, Items, Node, Scalar, check_size, read_yaml

ENDING = ".test.yaml"
BYTES_MAX = 64 * 1_048_576
BARE = re.compile(r"(?<=[:\[,] )\?(?=[ \t]*(?:[,}\]]|\r?$| #))", re.MULTILINE)
"""A `?` without quotes. YAML takes it for the sign of a key, and refuses it."""
_MARK = "\ue000"
"""Stands for a bare `?` while YAML is read."""


def found(paths: Iterable[Path]) -> list[Path]:
    """The test files: the files among the paths, and those in the folders. Raises InputError."""
    files: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            files[path] = None
            continue
        below = sorted(path.rglob(f"*{ENDING}"))
        if not below:
            message = f"there is no file *{ENDING} in this folder"
            hint = "write one, or let `tidegate init` write the first"
            raise InputError([Problem("no-tests", message, word_place(str(path)), hint)])
        files |= dict.fromkeys(below)
    return list(files)


def read_cases(file: Path, log_schema: LogSchema | None = None) -> CaseFile:
    """The cases of a file, with its rulebook. `log_schema`: looks up the columns of real tables.

    Raises InputError with every problem of both.
    """
    text = read_file(str(file))
    top, refused = read_nodes(text, str(file))
    report = Report()
    report.problems += refused
    if _is_rulebook(top):
        message = "this is a rulebook, and not a file of tests"
        hint = f"name its tests: tidegate test {file.with_suffix('')}{ENDING}"
        raise InputError([Problem("no-tests", message, top.place, hint)])
    form = FORM.read(top, report)
    book = _rulebook(form, file, report) if isinstance(form, Record) else None
    if book is None:
        raise InputError(in_order(report.problems), in_order(report.warnings))
    declared, defaults = form.readable("schemas"), form.readable("defaults")
    book = chosen_rules(book, form, report)
    cases = shape(form, book, report)
    check_chosen(book, form, cases, report)
    schemas = schemas_of(book, declared, defaults, cases, log_schema, top.place, report)
    check_columns(book, schemas, defaults, cases, report)
    warnings = in_order(report.warnings)
    if report.problems:
        raise InputError(in_order(report.problems), warnings)
    return CaseFile(file, book, schemas, defaults, cases, warnings, text)


def read_nodes(text: str, file: str) -> tuple[Fields, list[Problem]]:
    """The nodes of a test file, and what YAML does not allow in it. Raises InputError."""
    check_size(text, file, BYTES_MAX, "file")
    marked, count = BARE.subn(_MARK, text)
    top, refused = read_yaml(
        marked, file, 2 * BYTES_MAX, what="a test file", begin="rulebook: bank.yaml"
    )
    return _unmarked(top) if count else top, refused


def block_column(text: str, line: int, column: int) -> int | None:
    """The column, from 0, of the key whose value stands at a line and column (from 1). None inside
    { } and [ ], where a value takes no lines of its own."""
    flow: list[bool] = []
    key = 0
    for event in yaml.parse(BARE.sub(_MARK, text), yaml.CSafeLoader):
        if isinstance(event, CollectionStartEvent):
            flow.append(bool(event.flow_style))
        elif isinstance(event, CollectionEndEvent):
            flow.pop()
        elif isinstance(event, ScalarEvent):
            if (event.start_mark.line, event.start_mark.column) == (line - 1, column - 1):
                return None if any(flow) else key
            key = event.start_mark.column
    return None


def _unmarked(top: Fields) -> Fields:
    return replace(top, entries={name: _with_asked(each) for name, each in top.entries.items()})


def _with_asked(node: Node) -> Node:
    match node:
        case Fields():
            return _unmarked(node)
        case Items():
            return replace(node, items=tuple(map(_with_asked, node.items)))
        case Scalar(text=text, raw=raw) if _MARK in text:
            raw = raw.replace(_MARK, ASKED)
            return replace(node, text=text.replace(_MARK, ASKED), raw=raw)
    return node


def _is_rulebook(top: Fields) -> bool:
    """Whether a rulebook stands where a test file is to be."""
    return "tests" not in top.entries and bool({"rules", "events"} & top.entries.keys())


def _rulebook(form: Record, file: Path, report: Report) -> Rulebook | None:
    """The rulebook that a test file names; None where it cannot be read."""
    if "rulebook" not in form.values:
        return None
    name, node = form.get("rulebook")
    path = file.parent / name
    if not path.is_file():
        message = f"there is no rulebook {str(path)!r}"
        hint = "write its path from the folder of this file"
        report.add("file", message, node.place, hint)
        return None
    policy = load_policy(None)
    try:
        book = rules.load(path, functions=policy.functions)
    except InputError as error:
        report.problems += error.problems
        return None
    return replace(book, python=policy.python)
