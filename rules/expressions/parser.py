"""Text of an event expression -> nodes. The grammar is `grammar.lark` (LALR(1))."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache
from importlib import resources
from typing import Any, TypeVar

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from tidegate.rules.errors import InputError, Place, Problem, places
from tidegate.rules.expressions import clock_texts, durations
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.faults import Fault, excerpt, explain

NESTING_MAX = 200  # operators inside each other; every later stage walks trees recursively
COUNT_MAX = 1_000_000
TEXTS_KEPT = 4_096  # that were read

# Tokens with a value. The tree keeps the others, too: a node reaches from its first token to its
# last.
_VALUES = {"NAME", "INT", "DEC", "ISO", "UNIT", "SPAN", "CLOCK", "HHMM", "STRING"}

T = TypeVar("T")
Locate = Callable[[int], Place]


def parse(text: str, place: Place | None = None, locate: Locate | None = None) -> x.Expression:
    """Read one event expression.

    `place` is where the text's first character stands; `locate`, if given, maps an offset in
    `text` to its place instead (scalars in YAML may be quoted or folded). Raises `InputError`
    with every problem found, each with the offending text underlined.
    """
    found = _read(text)
    if isinstance(found, list):
        raise _refused(text, found, locate or places(text, place or Place()))
    return found


@lru_cache(TEXTS_KEPT)
def _read(text: str) -> x.Expression | list[Fault]:
    """The nodes of a text, or its faults. They are kept: when a rulebook is read again with one
    rule changed, the other expressions are known."""
    try:
        tree = _lark().parse(text)
    except UnexpectedInput as error:
        return [explain(text, error)]
    if _depth(tree) > NESTING_MAX:
        return [Fault(x.Span(0, len(text)), f"operators nested deeper than {NESTING_MAX}")]
    builder = _Builder()
    node: x.Expression = builder.build(tree)[0]
    return builder.faults or node


def own_terminator(opener: x.Expression, last: x.Expression) -> x.Expression:
    """`a + [d]` over the same tree as the opener is the opener's own `[d]` (semantics 2)."""
    if isinstance(last, x.Plus) and unlabelled(last.base) == unlabelled(opener):
        return x.Own(last.duration, span=last.span)
    return last


def unlabelled(node: x.Expression) -> x.Expression:
    """The same tree without its labels."""
    for part in node.walk():
        if isinstance(part, x.Labelled):
            return _unlabelled(node)
    return node


def replaced(node: x.Expression, part: x.Expression, by: x.Expression) -> x.Expression:
    """The same tree with `by` in place of every part that equals `part`."""
    if node == part:
        return by
    return x.with_operands(node, [replaced(below, part, by) for below in node.operands()])


def _unlabelled(node: x.Expression) -> x.Expression:
    if isinstance(node, x.Labelled):
        return _unlabelled(node.part)
    return x.with_operands(node, [_unlabelled(operand) for operand in node.operands()])


@cache
def _lark() -> Lark:
    grammar = (
        resources.files("tidegate.rules.expressions")
        .joinpath("grammar.lark")
        .read_text(encoding="utf-8")
    )
    return Lark(grammar, parser="lalr", keep_all_tokens=True, maybe_placeholders=False)


def _refused(text: str, faults: list[Fault], where: Locate) -> InputError:
    return InputError(
        [
            Problem("expression", f.message, where(f.span.start), f.hint, excerpt(text, f.span))
            for f in faults
        ]
    )


def _depth(tree: Tree[Token]) -> int:
    deepest, stack = 0, [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        for child in node.children:
            if isinstance(child, Tree):
                stack.append((child, depth + (child.data != "prim")))
    return deepest


def _span(token: Token) -> x.Span:
    return x.Span(token.start_pos or 0, token.end_pos or 0)


_Method = Callable[["_Builder", x.Span, list[Any]], x.Expression]


def _list_of(kind: Callable[..., x.Expression]) -> _Method:
    return lambda _, span, parts: kind(tuple(parts), span=span)


def _name_of(kind: Callable[..., x.Expression]) -> _Method:
    return lambda _, span, parts: kind(str(parts[0]), span=span)


def _window(kind: Callable[..., Any]) -> _Method:
    def build(_: _Builder, span: x.Span, parts: list[Any]) -> x.Expression:
        made = kind(*parts, span=span)
        closed: x.Expression = replace(made, closer=own_terminator(made.opener, made.closer))
        return closed

    return build


class _Builder:
    """Parse tree -> nodes, bottom up. The method of a node is called like its rule in the grammar.
    Faults in numbers and literals are collected."""

    or_ = absent = _list_of(x.Or)
    and_ = all = absent_all = _list_of(x.And)
    name, begin_of, end_of, failed = map(_name_of, (x.Name, x.BeginOf, x.EndOf, x.Failed))
    not_, aperiodic, aperiodic_star = map(_window, (x.Not, x.Aperiodic, x.AperiodicStar))

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def build(self, tree: Any) -> tuple[Any, int, int]:
        """The node of a tree, and where its text begins and ends, parentheses included."""
        if tree.data == "prim":
            inner = tree
            while inner.data == "prim":
                inner = inner.children[1]
            return self.build(inner)[0], tree.children[0].start_pos, tree.children[-1].end_pos
        built: list[tuple[Any, int, int]] = [
            self.build(child)
            if isinstance(child, Tree)
            else (child, child.start_pos, child.end_pos)
            for child in tree.children
        ]
        begin, end = built[0][1], built[-1][2]
        parts = [b[0] for b in built if not isinstance(b[0], Token) or b[0].type in _VALUES]
        return getattr(self, tree.data)(x.Span(begin, end), parts), begin, end

    def start(self, _: x.Span, parts: list[Any]) -> x.Expression:
        node: x.Expression = parts[0]
        return node

    def within(self, span: x.Span, parts: list[Any]) -> x.Within:
        return x.Within(parts[0], parts[1][0], span=span)

    def minus(self, span: x.Span, parts: list[Any]) -> x.Minus:
        return x.Minus(parts[0], parts[1], span=span)

    def then(self, span: x.Span, parts: list[Any]) -> x.Seq:
        return x.Seq(parts[0], own_terminator(parts[0], parts[1]), span=span)

    def nth(self, span: x.Span, parts: list[Any]) -> x.Nth:
        return x.Nth(parts[0], self._count(parts[1], "the first is a[1]"), span=span)

    def plus(self, span: x.Span, parts: list[Any]) -> x.Plus:
        return x.Plus(parts[0], self._positive(parts[1]), span=span)

    def label(self, span: x.Span, parts: list[Any]) -> x.Labelled:
        return x.Labelled(str(parts[0]), parts[1], span=span)

    def any(self, span: x.Span, parts: list[Any]) -> x.AnyOf:
        return x.AnyOf(self._count(parts[0]), tuple(parts[1:]), span=span)

    def any_repeat(self, span: x.Span, parts: list[Any]) -> x.AnyRepeat:
        return x.AnyRepeat(self._count(parts[0]), parts[1], span=span)

    def every(self, span: x.Span, parts: list[Any]) -> x.Every:
        return x.Every(self._count(parts[0], "every(1, a) is each of them"), parts[1], span=span)

    def periodic(self, span: x.Span, parts: list[Any]) -> x.Periodic:
        opener, (period, sample), closer = parts
        closer = own_terminator(opener, closer)
        return x.Periodic(opener, period, closer, sample, span=span)

    def periodic_star(self, span: x.Span, parts: list[Any]) -> x.PeriodicStar:
        made = self.periodic(span, parts)
        return x.PeriodicStar(made.opener, made.period, made.closer, made.sample, span=span)

    def own(self, span: x.Span, parts: list[Any]) -> x.Own:
        return x.Own(self._positive(parts[0]), span=span)

    def tick(self, _: x.Span, parts: list[Any]) -> tuple[x.Duration, str | None]:
        period = self._positive(parts[0])
        if len(parts) == 1:
            return period, None
        text = str(parts[1])
        if parts[1].type == "STRING":
            text = _unquoted(text)
            if not text.strip():
                self.faults.append(Fault(_span(parts[1]), "the sample is empty"))
        return period, text

    def dur(self, span: x.Span, parts: list[Any]) -> tuple[x.Duration, x.Span]:
        text = " ".join(str(part) for part in parts)
        return self._value(durations.duration, text, span, x.Duration(0, 1)), span

    def clock(self, span: x.Span, parts: list[Any]) -> x.Clock:
        return self._clock(clock_texts.clock, parts[0], span)

    def daily(self, span: x.Span, parts: list[Any]) -> x.Clock:
        return self._clock(clock_texts.daily, parts[0], span)

    def cron(self, span: x.Span, parts: list[Any]) -> x.Cron:
        text = " ".join(_unquoted(str(parts[0])).split())
        self._value(_checked_cron, text, span, text)
        return x.Cron(text, span=span)

    def _clock(self, read: Callable[[str], x.Clock], token: Token, span: x.Span) -> x.Clock:
        nothing = x.Clock(None, None, None, None, None, None)
        value = self._value(read, str(token), span, nothing)
        return replace(value, span=span)

    def _count(self, token: Token, hint: str = "any(1, a, b) is one of them") -> int:
        value = int(token[:10])  # enough digits to see that it is too large
        if not 1 <= value <= COUNT_MAX:
            self.faults.append(
                Fault(_span(token), f"a count is from 1 to {COUNT_MAX}", "" if value else hint)
            )
        return value

    def _positive(self, given: tuple[x.Duration, x.Span]) -> x.Duration:
        value, span = given
        if value == x.Duration(0, 0):
            self.faults.append(Fault(span, "the length of time must be above 0"))
        return value

    def _value(self, read: Callable[[str], T], text: str, span: x.Span, default: T) -> T:
        try:
            return read(text)
        except ValueError as error:
            message, _, hint = str(error).partition("; ")
            self.faults.append(Fault(span, message, hint))
            return default


def _unquoted(text: str) -> str:
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)


def _checked_cron(text: str) -> str:
    clock_texts.cron(text)
    return text
