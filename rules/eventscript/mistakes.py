"""Where in a script something is wrong or doubtful, collected until all has been read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import Token

from tidegate.rules.errors import Place, Problem
from tidegate.rules.expressions.faults import excerpt
from tidegate.rules.expressions.nodes import Span

Locate = Callable[[int], Place]
Parsed = Any  # a part of the parse tree: a `lark.Tree` or a `lark.Token`


def span(parsed: Parsed) -> Span:
    """The characters of a part of the parsed script, or a span itself."""
    if isinstance(parsed, Span):
        return parsed
    found: Any = parsed if isinstance(parsed, Token) else parsed.meta
    return Span(found.start_pos, found.end_pos)


class Mistakes:
    """Problems and warnings of one script."""

    def __init__(self, text: str, locate: Locate) -> None:
        self.text = text
        self.locate = locate
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def place(self, at: Parsed, /) -> Place:
        return self.locate(span(at).start)

    def add(self, code: str, message: str, at: Parsed, hint: str = "") -> None:
        self.problems.append(self._problem(code, message, at, hint))

    def warn(self, code: str, message: str, at: Parsed, hint: str = "") -> None:
        self.warnings.append(self._problem(code, message, at, hint))

    def _problem(self, code: str, message: str, at: Parsed, hint: str) -> Problem:
        return Problem(code, message, self.place(at), hint, excerpt(self.text, span(at)))


class Silent(Mistakes):
    """Of a text that is read on trial: what is wrong is said when it is read again, or nowhere."""

    def __init__(self) -> None:
        super().__init__("", lambda _: Place())

    def place(self, _: Parsed, /) -> Place:
        return Place()

    def add(self, code: str, message: str, at: Parsed, hint: str = "") -> None:
        pass
