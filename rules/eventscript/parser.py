"""Text of an event script -> parse tree. The grammar is `grammar.lark` (LALR(1)). Problems and
warnings are collected while the whole text is read."""

from __future__ import annotations

from typing import Any

from lark import Token, Tree
from lark.exceptions import UnexpectedInput

from tidegate.rules.errors import InputError, Place, Problem
from tidegate.rules.eventscript.syntax import explain
from tidegate.rules.expressions.faults import excerpt
from tidegate.rules.expressions.grammar import grammar
from tidegate.rules.expressions.nodes import Span
from tidegate.rules.expressions.parser import Locate

NESTING_MAX = 100  # what stands inside each other; every later stage walks trees recursively
Parsed = Any  # a part of the parse tree: a `lark.Tree` or a `lark.Token`


def parse(text: str, mistakes: Mistakes) -> Tree[Token]:
    """The parse tree of a script. Raises `InputError` where the grammar refuses it, or where it is
    nested too deeply."""
    try:
        tree = grammar("tidegate.rules.eventscript", propagate_positions=True).parse(text)
    except UnexpectedInput as error:
        fault = explain(text, error)
        mistakes.add("script", fault.message, fault.span, fault.hint)
        raise InputError(mistakes.problems) from None
    deepest = _too_deep(tree)
    if deepest is not None:
        mistakes.add("nesting", f"nested deeper than {NESTING_MAX}", deepest)
        raise InputError(mistakes.problems)
    return tree


def _too_deep(tree: Tree[Token]) -> Span | None:
    stack = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > NESTING_MAX:
            return Span(node.meta.start_pos, node.meta.end_pos)
        for child in node.children:
            if isinstance(child, Tree):
                stack.append((child, depth + 1))
    return None


def span(parsed: Parsed) -> Span:
    """The characters of a part of the parse tree. A span stays as it is."""
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
    """The mistakes of a text that is read on trial: they are dropped."""

    def __init__(self) -> None:
        super().__init__("", lambda _: Place())

    def place(self, _: Parsed, /) -> Place:
        return Place()

    def add(self, code: str, message: str, at: Parsed, hint: str = "") -> None:
        pass
