"""Checks of a whole regular expression: how many places it has, and what runs in circles."""

from __future__ import annotations

from tidegate.rules.errors import Problem
from tidegate.rules.eventscript import tree as t
from tidegate.rules.eventscript.regexes import below


def size(node: t.Regex) -> int:
    """Markers and blocks, each as often as counts repeat it (design/eventscript.md 3: `R{i,}` is
    i - 1 copies and `R+`)."""
    if isinstance(node, t.Repeat):
        copies = max(1, node.low) if node.high is None else node.high
        return copies * size(node.item)
    return sum(map(size, below(node))) or int(not below(node))


def endless(node: t.Regex) -> list[Problem]:
    """Blocks that lead to themselves without an event (the cyclic check of section 4.2)."""
    found: list[Problem] = []
    _silent(node, found)
    return list(dict.fromkeys(found))


def _silent(node: t.Regex, found: list[Problem]) -> tuple[t.Act, ...] | None:
    """The blocks on ways through `node` on which no event is taken; None where there is none. `&`
    and `-` are read as `|`."""
    if isinstance(node, t.Act):
        return (node,)
    parts = [_silent(each, found) for each in below(node)]
    known = [each for each in parts if each is not None]
    together = tuple(act for each in known for act in each)
    if isinstance(node, t.Repeat):
        if node.high is None:
            found.extend(_problem(act, node) for act in together)
        return together if known or node.low == 0 else None
    if isinstance(node, t.Sequence):
        return together if len(known) == len(parts) else None
    return together if known else None


def _problem(act: t.Act, repeat: t.Repeat) -> Problem:
    place = repeat.place
    message = (
        "this block leads to itself without an event,"
        f" by what repeats at {place.line}:{place.column}"
    )
    hint = "let every round take an event: (A() { .. })*"
    return Problem("endless", message, act.place, hint)
