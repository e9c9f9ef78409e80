"""`rules.load`: from a file or a text to a checked `Rulebook`."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

from tidegate.rules.analysis.draft import Draft
from tidegate.rules.errors import InputError, Place, Problem, in_order
from tidegate.rules.form.assembly import as_rulebook, assembled, is_script, with_rule
from tidegate.rules.form.form import RULEBOOK
from tidegate.rules.form.shape import shape, shape_settings
from tidegate.rules.form.variables import Variables
from tidegate.rules.model import Rulebook, Settings
from tidegate.rules.yaml.files import read_file
from tidegate.rules.yaml.kinds import Record, Report
from tidegate.rules.yaml.reader import Fields, read_yaml

# The checks are imported when they are used: `part` does without them.

SAID_MAX = 3  # times that one warning is said


def validated(
    file: os.PathLike[str],
    settings: Mapping[str, str],
    functions: Collection[str] | None = None,
) -> Rulebook:
    """The rulebook in a file. Features that can only be simulated are accepted: what `run` refuses
    is among the warnings. Raises `InputError` as `rules.load` does."""
    from tidegate.rules.checks.gaps import SIMULATED

    return load_rulebook(file, settings, None, SIMULATED, functions=functions, warned=True)


def load_rulebook(
    source: str | os.PathLike[str],
    settings: Mapping[str, str],
    file: str | None,
    features: frozenset[str],
    *,
    added: Mapping[str, str] | None = None,
    files: Mapping[str, str] | None = None,
    functions: Collection[str] | None = None,
    environment: Mapping[str, str] | None = os.environ,
    warned: bool = False,
) -> Rulebook:
    """See `rules.load`. `warned`: what `run` refuses is among the warnings."""
    from tidegate.rules.checks.cascades import cascade_warnings
    from tidegate.rules.checks.cross_checks import check
    from tidegate.rules.checks.gaps import refuse_unbuilt
    from tidegate.rules.checks.statements import check_statements
    from tidegate.rules.checks.warnings import warn

    read = composed(source, settings, file, added or {}, files or {}, environment)
    report = Report()
    report.problems.extend(read.refused)
    book, limits = _shaped(read, read.node, settings, report)
    check(book, report)
    check_statements(book, report, functions)
    refuse_unbuilt(book, limits, features, report, warned=warned)
    _leave_out(read.refused, report)
    warn(book, report)
    if report.problems:
        raise InputError(in_order(report.problems), said_once(report.warnings))
    loaded = _rulebook(read, book, limits)
    return replace(loaded, warnings=said_once([*report.warnings, *cascade_warnings(loaded)]))


@dataclass(frozen=True, slots=True)
class Composed:
    """The nodes of a rulebook, with what they were read from. `limits`: those of `--set`.
    `kept`: texts of files and values of the environment. `included`: names of files. `refused`:
    what is wrong as YAML."""

    node: Fields
    text: str
    file: str | None
    added: Mapping[str, str]
    kept: Mapping[str, str]
    included: tuple[str, ...]
    variables: Variables
    refused: tuple[Problem, ...]
    limits: Mapping[str, str]

    @property
    def rules(self) -> Collection[str]:
        """The names of the rules."""
        found = self.node.entries.get("rules")
        return found.entries.keys() if isinstance(found, Fields) else ()


def composed(
    source: str | os.PathLike[str],
    settings: Mapping[str, str],
    file: str | None,
    added: Mapping[str, str],
    files: Mapping[str, str],
    environment: Mapping[str, str] | None = os.environ,
) -> Composed:
    """The nodes of a rulebook; what each of them says is not looked at. Raises InputError."""
    if isinstance(source, str) and (file is not None or is_text(source)):
        text = source
    else:
        file = os.fspath(source)
        text = read_file(file)
    report = Report()
    # The size limit guards the reader itself, so only --set can change it.
    override = {name: settings[name] for name in ("yaml_bytes_max",) if name in settings}
    bytes_max = shape_settings(None, override, report).yaml_bytes_max
    refused: list[Problem] = report.problems
    if file is not None and is_script(file):
        node = as_rulebook(text, file, bytes_max)
    else:
        node, wrong = read_yaml(text, file or "<text>", bytes_max)
        refused += wrong
    node, kept, included, variables = assembled(
        node, file, added, files, environment, bytes_max, refused
    )
    return Composed(node, text, file, added, kept, included, variables, tuple(refused), settings)


def part(read: Composed, rule: str) -> Rulebook:
    """A rulebook that has run, with a part of its rules: one, those that use it, and what they use.
    What is wrong with all of it is not looked for. Raises InputError."""
    report = Report()
    report.problems.extend(read.refused)
    read = replace(read, variables=copy(read.variables))  # they count what they fill in
    book, limits = _shaped(read, with_rule(read.node, rule, read.kept), read.limits, report)
    if report.problems:
        raise InputError(in_order(report.problems))
    return _rulebook(read, book, limits)


def _shaped(
    read: Composed, node: Fields, settings: Mapping[str, str], report: Report
) -> tuple[Draft, Settings]:
    """The model of some nodes, not checked; and the limits. Raises InputError."""
    top = RULEBOOK.read(node, report)
    if not isinstance(top, Record):
        raise InputError(report.problems)
    limits = shape_settings(top.get("settings"), settings, report)
    markers_max = limits.script_markers_max
    return shape(top, read.file, markers_max, read.kept, read.variables, report), limits


def _rulebook(read: Composed, book: Draft, limits: Settings) -> Rulebook:
    top = book.top
    return Rulebook(
        top.get("rulebook"),
        read.file,
        read.text,
        book.timezone,
        book.tables,
        book.events,
        book.rules,
        settings=limits,
        scripts=book.scripts,
        samples=book.samples,
        sample_places=book.sample_places,
        reads=top.get("reads", ()),
        cycles=tuple((names, node.place) for names, node in top.get("cycles", ())),
        added=read.added,
        files=book.files,
        included=read.included,
    )


def _leave_out(refused: Sequence[Problem], report: Report) -> None:
    """Drop further problems at places that the YAML reader refused already."""
    places = {problem.place for problem in refused}
    report.problems = [p for p in report.problems if p in refused or p.place not in places]


def is_text(source: str) -> bool:
    """Whether a string is YAML text and no path: no path has a line break or a `: `."""
    return "\n" in source or ": " in source


def said_once(warnings: list[Problem]) -> tuple[Problem, ...]:
    """The warnings in order. One that is the same at more than `SAID_MAX` places is given at the
    first of them, with the others in `others`."""
    ordered = in_order(warnings)
    alike: dict[tuple[str, ...], list[Place]] = {}
    for each in ordered:
        alike.setdefault(_said(each), []).append(each.place)
    return tuple(
        replace(each, others=tuple(places[1:])) if len(places) > SAID_MAX else each
        for each in ordered
        if len(places := alike[_said(each)]) <= SAID_MAX or each.place is places[0]
    )


def _said(problem: Problem) -> tuple[str, ...]:
    return problem.code, problem.message, problem.hint, problem.place.file
