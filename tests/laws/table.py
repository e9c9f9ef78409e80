"""Reads `laws.txt`: the laws as pairs of expressions with variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rules.expression import Expression, Name, with_operands
from rules.parser import parse

_LAW = re.compile(r"([\w-]+)\s*:\s*(.+?)\s+(==|~)\s+(.+)")


@dataclass(frozen=True)
class Law:
    """left and right in text, with variables x, y, z and the durations {s}, {t}, {least}.

    `instances`: equal sets of instances; else equal starts and ends in `restricted` only.
    """

    name: str
    left: str
    right: str
    instances: bool

    def sides(
        self, variables: Mapping[str, Expression], s: int, t: int
    ) -> tuple[Expression, Expression]:
        """Both sides with expressions for the variables and seconds for s and t."""
        seconds = {"s": s, "t": t, "least": min(s, t)}
        left, right = (parse(text.format(**seconds)) for text in (self.left, self.right))
        return fill(left, variables), fill(right, variables)


def laws() -> Iterator[Law]:
    for line in Path(__file__).with_name("laws.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            found = _LAW.fullmatch(line)
            if found is None:
                raise ValueError(f"not a law: {line}")
            name, left, equality, right = found.groups()
            yield Law(name, left, right, equality == "==")


def fill(expression: Expression, variables: Mapping[str, Expression]) -> Expression:
    """The expression with its variables replaced."""
    if isinstance(expression, Name):
        return variables.get(expression.name, expression)
    return with_operands(expression, [fill(e, variables) for e in expression.operands()])
