"""`rules.load`: from a file or a text to a checked `Rulebook`."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tidegate.rules.checks.cross_checks import check
from tidegate.rules.checks.gaps import SIMULATED, refuse_unbuilt
from tidegate.rules.checks.statements import check_statements
from tidegate.rules.errors import InputError, Place, Problem, in_order
from tidegate.rules.form.assembly import assembled
from tidegate.rules.form.form import RULEBOOK
from tidegate.rules.form.shape import shape, shape_settings
from tidegate.rules.form.shape_scripts import as_rulebook, is_script
from tidegate.rules.model import Rulebook
from tidegate.rules.yaml.files import read_file
from tidegate.rules.yaml.kinds import Record, Report
from tidegate.rules.yaml.reader import read_yaml

SAID_MAX = 3  # times that one warning is said


def validated(
    file: os.PathLike[str],
    settings: Mapping[str, str],
    functions: Collection[str] | None = None,
) -> Rulebook:
    """The rulebook in a file. Features that can only be simulated are accepted: what `run` refuses
    is among the warnings. Raises `InputError` as `rules.load` does."""
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
    doubts: bool = True,
) -> Rulebook:
    """See `rules.load`. `warned`: what `run` refuses is among the warnings. `doubts`: whether there
    are warnings; to look for them takes a third of the time."""
    if isinstance(source, str) and (file is not None or is_text(source)):
        text = source
    else:
        file = os.fspath(source)
        text = read_file(file)
    shown = file or "<text>"
    report = Report()
    # The size limit guards the reader itself, so only --set can change it.
    override = {name: settings[name] for name in ("yaml_bytes_max",) if name in settings}
    limits = shape_settings(None, override, report)
    if file is not None and is_script(file):
        node = as_rulebook(text, file, limits.yaml_bytes_max)
        refused: list[Problem] = []
    else:
        node, refused = read_yaml(text, shown, limits.yaml_bytes_max)
    node, kept, included, variables = assembled(
        node, file, added or {}, files or {}, environment, limits.yaml_bytes_max, refused
    )
    report.problems.extend(refused)
    top = RULEBOOK.read(node, report)
    if not isinstance(top, Record):
        raise InputError(report.problems)
    limits = shape_settings(top.get("settings"), settings, report)
    book = shape(top, file, limits.script_markers_max, kept, variables, report)
    check(book, report)
    check_statements(book, report, functions)
    refuse_unbuilt(book, limits, features, report, warned=warned)
    _leave_out(refused, report)
    if doubts:
        from tidegate.rules.checks.warnings import warn

        warn(book, report)
    if report.problems:
        raise InputError(in_order(report.problems), said_once(report.warnings))
    loaded = Rulebook(
        top.get("rulebook"),
        file,
        text,
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
        added=added or {},
        files=book.files,
        included=included,
    )
    if not doubts:
        return loaded
    from tidegate.rules.checks.cascades import cascade_warnings

    return replace(loaded, warnings=said_once([*report.warnings, *cascade_warnings(loaded)]))


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
