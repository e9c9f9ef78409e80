"""`eventscript.read`: from a text to a checked program."""

from __future__ import annotations

from lark import Tree

from tidegate.rules.errors import InputError, Place, Problem
from tidegate.rules.eventscript.declarations import Declarations, declarations
from tidegate.rules.eventscript.doubts import doubts
from tidegate.rules.eventscript.expressions import Expressions
from tidegate.rules.eventscript.inference import infer
from tidegate.rules.eventscript.mistakes import Locate, Mistakes, Parsed
from tidegate.rules.eventscript.names import BlockNames
from tidegate.rules.eventscript.parser import parse
from tidegate.rules.eventscript.regexes import Regexes
from tidegate.rules.eventscript.statements import Statements
from tidegate.rules.eventscript.structure import endless, followers, size
from tidegate.rules.eventscript.tree import Program
from tidegate.rules.yaml.marks import places

FOLLOWERS_MAX = 1_000_000
"""Pairs of places that follow each other: what is kept of a script that runs."""


def read_script(
    text: str, place: Place, locate: Locate | None, markers_max: int
) -> tuple[Program, tuple[Problem, ...]]:
    """See `eventscript.read`."""
    mistakes = Mistakes(text, locate or places(text, place))
    tree = parse(text, mistakes)
    *heads, regex = (each for each in tree.children if isinstance(each, Tree))
    found = declarations(heads, mistakes)
    program = _program(text, regex, found, mistakes)
    if mistakes.problems:
        raise InputError(_in_order(mistakes.problems))
    count = size(program.regex)
    if count > markers_max:
        message = f"{count} markers and blocks, counts expanded; at most {markers_max}"
        mistakes.add("limit", message, regex, "raise script_markers_max, or repeat less often")
    elif (ways := followers(program.regex)) > FOLLOWERS_MAX:
        message = f"markers and blocks follow each other in {ways} ways; at most {FOLLOWERS_MAX}"
        mistakes.add("limit", message, regex, "repeat less often what may be left out")
    else:
        mistakes.problems += endless(program.regex)
    if mistakes.problems:
        raise InputError(_in_order(mistakes.problems))
    declared = {name: mistakes.place(at) for name, at in found.output_names.items()}
    return program, _in_order(doubts(program, declared))


def _program(text: str, regex: Parsed, found: Declarations, mistakes: Mistakes) -> Program:
    variables = infer(regex, found)
    names = BlockNames(variables, {}, found.key)
    expressions = Expressions(mistakes, names, found.types, found.functions)
    read = Regexes(found, Statements(expressions, names, found.outputs)).read(regex)
    return Program(
        text,
        tuple(found.inputs.values()),
        found.outputs,
        found.functions,
        {name: kind for name, kind in variables.items() if kind is not None},
        found.key_names,
        found.key,
        read,
    )


def _in_order(problems: list[Problem]) -> tuple[Problem, ...]:
    """By place, each said once."""
    unique = dict.fromkeys(problems)
    return tuple(sorted(unique, key=lambda each: (each.place.line, each.place.column)))
