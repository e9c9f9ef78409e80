"""Text of an event script -> parse tree. The grammar is `grammar.lark` (LALR(1))."""

from __future__ import annotations

from functools import cache
from importlib import resources

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from tidegate.rules.errors import InputError
from tidegate.rules.eventscript.mistakes import Mistakes
from tidegate.rules.eventscript.syntax import explain
from tidegate.rules.expressions.nodes import Span

NESTING_MAX = 100  # what stands inside each other; every later stage walks trees recursively


def parse(text: str, mistakes: Mistakes) -> Tree[Token]:
    """The parse tree of a script. Raises `InputError` where the grammar refuses it, or where it is
    nested too deeply."""
    try:
        tree = _lark().parse(text)
    except UnexpectedInput as error:
        fault = explain(text, error)
        mistakes.add("script", fault.message, fault.span, fault.hint)
        raise InputError(mistakes.problems) from None
    deepest = _too_deep(tree)
    if deepest is not None:
        mistakes.add("nesting", f"nested deeper than {NESTING_MAX}", deepest)
        raise InputError(mistakes.problems)
    return tree


@cache
def _lark() -> Lark:
    files = resources.files("tidegate.rules.eventscript")
    grammar = files.joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", maybe_placeholders=False, propagate_positions=True)


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
