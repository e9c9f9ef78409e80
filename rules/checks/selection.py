"""Where Hinze & Voisard's parameters may stand (S12)."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Selection


def faults(expression: x.Expression, how: Selection) -> Iterator[tuple[str, str]]:
    """(message, hint) of everything wrong with a selection over an expression."""
    core = expression
    within = False
    while isinstance(core, x.Within | x.Minus | x.Labelled):
        within |= isinstance(core, x.Within)
        core = core.part
    if isinstance(core, x.Seq):
        pair = not isinstance(core.then, x.Own)
    else:
        pair = isinstance(core, x.And) and len(core.parts) == 2
    if not pair:
        yield "select is for `a ; b` and `a and b`", "give a context's name"
    if how.then == "last" and how.evaluate != "at_end":
        yield "`then: last` is known at the end of the span only", "add evaluate: at_end"
    if how.evaluate == "at_end" and not within:
        yield "`evaluate: at_end` needs a span", "add `within d` to the expression"
