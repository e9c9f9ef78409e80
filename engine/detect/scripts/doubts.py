"""What a script's automaton makes doubtful, or impossible, before it runs: two paths that one event
lets go on, and machines that are too large (`eventscript.md` 5)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from tidegate.engine.detect.scripts.exploration import OTHER, Ambiguity, Explored, explore, place_of
from tidegate.engine.detect.scripts.machine import WAYS_OUT
from tidegate.rules import model
from tidegate.rules.errors import InputError, Place, Problem, in_order

SHOWN_MAX = 20
"""Ambiguities that are said of one script."""


def looked_through(book: model.Rulebook) -> model.Rulebook:
    """A rulebook with the warnings of its scripts' automata. Raises `InputError` where a `machine:
    dfa` is too large."""
    explored = explored_of(book, book.scripts.values())
    warnings = [*book.warnings]
    for name, each in explored.items():
        warnings += doubts(book, book.scripts[name], each)
    _refuse(book, explored, in_order(warnings))
    return replace(book, warnings=in_order(warnings))


def check_machines(book: model.Rulebook) -> None:
    """Raises `InputError` where a `machine: dfa` is too large."""
    scripts = [script for script in book.scripts.values() if script.machine == "dfa"]
    _refuse(book, explored_of(book, scripts))


def _refuse(
    book: model.Rulebook, explored: Mapping[str, Explored], warnings: Sequence[Problem] = ()
) -> None:
    found = (too_many_states(book, book.scripts[name], each) for name, each in explored.items())
    if problems := [problem for problem in found if problem is not None]:
        raise InputError(in_order(problems), warnings)


def explored_of(book: model.Rulebook, scripts: Collection[model.Script]) -> Mapping[str, Explored]:
    """The automata of scripts of a rulebook by name, within its limits: that of steps counts for
    all of them together. Each `machine: dfa` is looked at first, so that other scripts do not
    decide whether it is refused."""
    settings, found = book.settings, dict[str, Explored]()
    left = settings.script_exploring_steps_max
    for script in sorted(scripts, key=lambda script: script.machine != "dfa"):
        states_max, paths_max = settings.script_states_max, settings.script_paths_max
        found[script.name] = explore(script.program, states_max, paths_max, left)
        left = max(left - found[script.name].steps, 0)
    return found


def too_many_states(
    book: model.Rulebook, script: model.Script, explored: Explored
) -> Problem | None:
    """Why `machine: dfa` is refused; None if it is not."""
    if script.machine != "dfa" or explored.too_large != "script_states_max":
        return None
    most = book.settings.script_states_max
    message = (
        f"the script {script.name!r} has more than {most:,} states (setting script_states_max)"
    )
    hint = f"{WAYS_OUT}; or write `machine: auto`, which is slower from there on"
    return Problem("script-states", message, script.place, hint)


def doubts(book: model.Rulebook, script: model.Script, explored: Explored) -> Iterator[Problem]:
    """The warnings of one script."""
    yield from _ambiguous(script, explored)
    yield from _size(book, script, explored)


def _ambiguous(script: model.Script, explored: Explored) -> Iterator[Problem]:
    """One warning for each marker that goes on beside one before it."""
    found: dict[Place, Ambiguity] = {}
    for each in explored.ambiguous:
        second = place_of(explored.places, each.second)
        known = found.get(second)
        if known is None or (each.actions and not known.actions):
            found[second] = each
    for place, each in list(found.items())[:SHOWN_MAX]:
        yield _said(place_of(explored.places, each.first), place, each)
    more = len(found) - SHOWN_MAX
    if more > 0:
        message = f"{more} more markers of {script.name!r} go on beside another"
        yield Problem("ambiguous", message, script.place, "begin with those that are named")


def _said(first: Place, second: Place, found: Ambiguity) -> Problem:
    event = _event(found)
    here, there = f"{first.line}:{first.column}", f"{second.line}:{second.column}"
    message = f"{event} lets two paths go on, from {here} and from {there}"
    if here == there:
        message = f"{event} lets two paths go on, both from {here}, which is repeated"
    if found.actions:
        message += ", and both reach actions"
        hint = "all that they reach runs; write a block that both share once, before the choice"
    else:
        hint = "both are followed; if only one is meant, let each event lead one way"
    return Problem("ambiguous", message, second, hint)


def _event(found: Ambiguity) -> str:
    if not isinstance(found.symbol, str):
        return "one instant"
    return "an event" if found.symbol == OTHER else found.symbol


def _size(book: model.Rulebook, script: model.Script, explored: Explored) -> Iterator[Problem]:
    """What is doubtful about a machine's size."""
    if not explored.too_large or too_many_states(book, script, explored):
        return
    name, settings, seen = script.name, book.settings, len(explored.states)
    match explored.too_large:
        case "script_paths_max":
            message = (
                f"{name!r} can get more than {settings.script_paths_max:,} paths"
                " (setting script_paths_max): it is then parked"
            )
            hint = "repeat less often what may be left out"
        case "script_states_max" if script.machine == "auto":
            message = (
                f"{name!r} has more than {seen:,} states (setting script_states_max): from there on"
                " it runs hierarchical, with the same output, but slower; what is ambiguous was"
                f" sought in the first {explored.seen:,} states"
            )
            hint = WAYS_OUT
        case limit:
            message = (
                f"{name!r} is too large to be looked at as a whole (setting {limit}): what is"
                f" ambiguous was sought in the first {explored.seen:,} states"
            )
            hint = WAYS_OUT
    yield Problem("script-size", message, script.place, hint)
