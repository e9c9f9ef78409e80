"""Checks of event scripts: none is an event of itself."""

from __future__ import annotations

from tidegate.rules.analysis.draft import Draft
from tidegate.rules.analysis.graph import cycles, makers, used_in, uses_of
from tidegate.rules.yaml.kinds import Report


def check_scripts(book: Draft, report: Report) -> None:
    """Add the circles in which a script is an event of itself."""
    named = {name: uses_of(script, book.rules) for name, script in book.scripts.items()}
    named |= {rule: used_in(node, book.rules) for rule, node, _ in book.expressions()}
    uses = {
        _said(name, book): [_said(each.name, book) for each in makers(names, book)]
        for name, names in named.items()
    }
    for cycle in cycles(uses):
        scripts = [each for each in cycle if each.startswith("script ")]
        if scripts:
            place = book.scripts[scripts[0].partition(" ")[2]].place
            message = f"a script is an event of itself: {' -> '.join(cycle)}"
            report.add("cycle", message, place, "raise a signal in place of one of them")


def _said(name: str, book: Draft) -> str:
    return f"{'script' if name in book.scripts else 'rule'} {name}"
