"""Checks of event scripts: none is an event of itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.rules.analysis.draft import Book
from tidegate.rules.analysis.graph import cycles
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import ScriptEvent
from tidegate.rules.yaml.kinds import Report


def check_scripts(book: Book, report: Report) -> None:
    """Add the circles in which a script is an event of itself."""
    uses = {f"script {name}": [*_used(book, name)] for name in book.scripts}
    for rule, node, _ in book.expressions():
        names = (each.name for each in node.walk() if isinstance(each, x.Name))
        uses[f"rule {rule}"] = [*_makers(book, names)]
    for cycle in cycles(uses):
        scripts = [each for each in cycle if each.startswith("script ")]
        if scripts:
            place = book.scripts[scripts[0].partition(" ")[2]].place
            message = f"a script is an event of itself: {' -> '.join(cycle)}"
            report.add("cycle", message, place, "raise a signal in place of one of them")


def _used(book: Book, name: str) -> Iterator[str]:
    return _makers(book, (each.event for each in book.scripts[name].inputs.values()))


def _makers(book: Book, names: Iterable[str]) -> Iterator[str]:
    """The scripts and rules of which names are events."""
    for name in names:
        event = book.events.get(name)
        if isinstance(event, ScriptEvent) and event.script in book.scripts:
            yield f"script {event.script}"
        elif name in book.rules:
            yield f"rule {name}"
