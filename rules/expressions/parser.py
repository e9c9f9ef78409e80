"""Text of an event expression -> nodes. The grammar is `grammar.lark` (LALR(1))."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from lark import Token, Tree
from lark.exceptions import UnexpectedInput

from tidegate.rules.errors import InputError, Place, Problem, places
from tidegate.rules.expressions import clock_texts, durations, ode
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.faults import Fault, excerpt, explain
from tidegate.rules.expressions.grammar import expression_grammar

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
        tree = expression_grammar().parse(text)
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


_Given = tuple[x.Duration, x.Span]
_Tick = tuple[x.Duration, str | None]
_Method = Callable[..., x.Expression]


def _list_of(kind: Callable[..., x.Expression]) -> _Method:
    return lambda _, span, *parts: kind(parts, span=span)


def _name_of(kind: Callable[..., x.Expression]) -> _Method:
    return lambda _, span, name: kind(str(name), span=span)


def _window(kind: Callable[..., Any], word: str = "") -> _Method:
    def build(_: _Builder, span: x.Span, *parts: Any) -> x.Expression:
        made = kind(*parts, span=span, word=word)
        closed: x.Expression = replace(made, closer=own_terminator(made.opener, made.closer))
        return closed

    return build


def _ticking(kind: Callable[..., x.Expression], word: str = "") -> _Method:
    def build(_: _Builder, span: x.Span, opener: Any, tick: _Tick, closer: Any) -> x.Expression:
        last = own_terminator(opener, closer)
        return kind(opener, tick[0], last, tick[1], span=span, word=word)

    return build


class _Builder:
    """Parse tree -> nodes, bottom up. The method of a node is called like its rule in the grammar.
    Faults in numbers and literals are collected."""

    or_ = absent = _list_of(x.Or)
    and_ = all = absent_all = _list_of(x.And)
    name, begin_of, end_of = map(_name_of, (x.Name, x.BeginOf, x.EndOf))
    failed, resolved = map(_name_of, (x.Failed, x.Resolved))
    not_, aperiodic, aperiodic_star = map(_window, (x.Not, x.Aperiodic, x.AperiodicStar))
    periodic, periodic_star = map(_ticking, (x.Periodic, x.PeriodicStar))
    during, collect = _window(x.Aperiodic, "during"), _window(x.AperiodicStar, "collect")
    ticks = _ticking(x.Periodic, "ticks")

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
        return getattr(self, tree.data)(x.Span(begin, end), *parts), begin, end

    def start(self, _: x.Span, node: x.Expression) -> x.Expression:
        return node

    def within(self, span: x.Span, part: x.Expression, given: _Given) -> x.Within:
        if isinstance(given[0], x.BusinessDays):
            days = durations.format_duration(given[0])
            message = f"{days} bound no span: what begins on Friday evening may end later than"
            message += " what begins on Saturday"
            hint = f"open a window: A(a, b, [{days}]), each b up to then after an a;"
            hint += f" A*(a, b, [{days}]) has all of them"
            self.faults.append(Fault(given[1], message, hint))
        return x.Within(part, given[0], span=span)

    def minus(self, span: x.Span, part: x.Expression, absent: x.Expression) -> x.Minus:
        return x.Minus(part, absent, span=span)

    def then(self, span: x.Span, first: x.Expression, then: x.Expression) -> x.Seq:
        return x.Seq(first, own_terminator(first, then), span=span)

    def then_no(
        self, span: x.Span, opener: x.Expression, absent: x.Expression, given: _Given
    ) -> x.Not:
        own = x.Own(self._positive(given), span=given[1])
        return x.Not(absent, opener, own, span=span, word="no")

    def instant(self, span: x.Span, part: x.Expression) -> x.Instant:
        return x.Instant(part, span=span)

    def times(self, span: x.Span, n: Token, b: Any, a: Any, c: Any) -> x.Expression:
        return replace(ode.times(self._count(n), b, a, c), span=span, word="times")

    def relative(self, span: x.Span, a: x.Expression, b: x.Expression) -> x.Expression:
        if (part := ode.counts(b)) is not None:
            hint = "write times(n, b, a, c), or relative(a, b[n]): the n-th b after a"
            self.faults.append(Fault(part.span, "it would count from activation on, not a", hint))
        return replace(ode.relative(a, own_terminator(a, b)), span=span, word="relative")

    def prior(self, span: x.Span, a: x.Expression, b: x.Expression) -> x.Expression:
        return replace(ode.prior(a, b), span=span, word="prior")

    def choose(self, span: x.Span, n: Token, a: x.Expression) -> x.Expression:
        return replace(ode.choose(self._count(n, "the first is a[1]"), a), span=span, word="choose")

    def fa(self, span: x.Span, a: x.Expression, b: x.Expression, c: x.Expression) -> x.Expression:
        return self._closed(replace(ode.fa(a, b, c), span=span, word="fa"))

    def fa_abs(self, span: x.Span, a: Any, b: Any, c: Any) -> x.Expression:
        return self._closed(replace(ode.fa_abs(a, b, c), span=span, word="faAbs"))

    def _closed(self, made: x.Not) -> x.Not:
        return replace(made, closer=own_terminator(made.opener, made.closer))

    def nth(self, span: x.Span, part: x.Expression, index: Token) -> x.Nth:
        return x.Nth(part, self._count(index, "the first is a[1]"), span=span)

    def plus(self, span: x.Span, base: x.Expression, given: _Given) -> x.Plus:
        return x.Plus(base, self._positive(given), span=span)

    def label(self, span: x.Span, label: Token, part: x.Expression) -> x.Labelled:
        return x.Labelled(str(label), part, span=span)

    def any(self, span: x.Span, count: Token, *parts: x.Expression) -> x.AnyOf:
        return x.AnyOf(self._count(count), parts, span=span)

    def any_repeat(self, span: x.Span, count: Token, part: x.Expression) -> x.AnyRepeat:
        return x.AnyRepeat(self._count(count), part, span=span)

    def every(self, span: x.Span, count: Token, part: x.Expression) -> x.Every:
        return x.Every(self._count(count, "every(1, a) is each of them"), part, span=span)

    def own(self, span: x.Span, given: _Given) -> x.Own:
        return x.Own(self._positive(given), span=span)

    def tick(self, _: x.Span, given: _Given, sample: Token | None = None) -> _Tick:
        period = self._positive(given)
        if sample is None or sample.type != "STRING":
            return period, sample and str(sample)
        text = _unquoted(sample)
        if not text.strip():
            self.faults.append(Fault(_span(sample), "the sample is empty"))
        return period, text

    def dur(self, span: x.Span, *parts: Token) -> _Given:
        return self._value(durations.duration, " ".join(parts), span, x.Duration(0, 1)), span

    def clock(self, span: x.Span, text: Token) -> x.Clock:
        return self._clock(clock_texts.clock, text, span)

    def daily(self, span: x.Span, text: Token) -> x.Clock:
        return self._clock(clock_texts.daily, text, span)

    def cron(self, span: x.Span, quoted: Token) -> x.Cron:
        text = " ".join(_unquoted(quoted).split())
        self._value(clock_texts.cron, text, span, None)
        return x.Cron(text, span=span)

    def _clock(self, read: Callable[[str], x.Clock], text: Token, span: x.Span) -> x.Clock:
        nothing = x.Clock(None, None, None, None, None, None)
        return replace(self._value(read, text, span, nothing), span=span)

    def _count(self, token: Token, hint: str = "any(1, a, b) is one of them") -> int:
        value = int(token[:10])  # enough digits to see that it is too large
        if not 1 <= value <= COUNT_MAX:
            self.faults.append(
                Fault(_span(token), f"a count is from 1 to {COUNT_MAX}", "" if value else hint)
            )
        return value

    def _positive(self, given: _Given) -> x.Duration:
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
