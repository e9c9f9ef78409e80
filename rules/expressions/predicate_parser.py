"""Reads the `where` of a rule: `w.amount > 1.1 * d.amount and w.city <> d.city`.

A closed list: `label.column`, `event.column`, `.old.column`; numbers, quoted texts, true, false,
`date '..'`, `timestamp '..Z'`, `timestamp_ntz '..'`; `+ - *`, abs; comparisons; is [not] null; and,
or, not. From loose to tight: or, and, not, comparisons, `+ -`, `*`, the minus of a number.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import NamedTuple, NoReturn

from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions.faults import Fault
from tidegate.rules.expressions.nodes import Span

NESTED_MAX = 50
WORDS_MAX = 500
_DIGITS_MAX = 38
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<text>'(?:[^'\\]|'')*')"
    r"|(?P<name>[A-Za-z_]\w*|`[^`]+`)|(?P<sign><=|>=|<>|!=|==|[-+*/%(),.=<>])|(?P<end>$))",
    re.ASCII,
)
_COMPARED = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_TYPED = ("date", "timestamp", "timestamp_ntz")
_WORDS = ("and", "or", "not", "is", "null", "true", "false", *_TYPED)
_CLOSED = "it has columns, literals, + - *, abs, comparisons, is null, and, or, not"


class PredicateError(Exception):
    """A text that is no such condition. `fault`: what is wrong, where, and the remedy."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Token(NamedTuple):
    kind: str  # number | text | name | sign | end
    text: str
    start: int

    @property
    def word(self) -> str:
        """Its keyword in small letters, or its sign."""
        return self.text if self.kind == "sign" else self.text.lower()

    @property
    def span(self) -> Span:
        return Span(self.start, self.start + max(len(self.text), 1))


def parse_predicate(text: str) -> p.Predicate:
    """The tree of a text. Raises `PredicateError`."""
    return PredicateParser(text).whole()


class PredicateParser:
    """Reads one text. What a name, and a name before parentheses, may be is said by `column` and
    `called`; `closed`: what the list has, for hints."""

    closed = _CLOSED

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [*self._read()]
        self._at = 0
        self._depth = 0

    def whole(self) -> p.Predicate:
        found = self._or()
        if self.next.kind != "end":
            self.refuse(f"{self.next.text!r} cannot stand here", self._hint(self.next.word))
        return found

    def _read(self) -> list[Token]:
        found: list[Token] = []
        at = 0
        while not found or found[-1].kind != "end":
            match = _TOKEN.match(self._text, at)
            if match is None:
                start = len(self._text) - len(self._text[at:].lstrip())
                self._fail(Token("sign", self._text[start], start))
            kind = match.lastgroup or "end"
            found.append(Token(kind, match[kind], match.start(kind)))
            at = match.end()
            if len(found) > WORDS_MAX:
                hint = "ask the rest in the rule's `if`"
                self.refuse(f"more than {WORDS_MAX} words and signs", hint, found[-1].span)
        return found

    def _fail(self, token: Token) -> NoReturn:
        hint = "close the text with '" if token.text == "'" else self.closed
        raise PredicateError(Fault(token.span, f"{token.text!r} cannot stand here", hint))

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    def refuse(self, message: str, hint: str, span: Span | None = None) -> NoReturn:
        """Refuses the next token, or what is at `span`."""
        raise PredicateError(Fault(span or self.next.span, message, hint))

    def take(self) -> Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def took(self, *words: str) -> bool:
        if self.next.word not in words or self.next.kind not in ("name", "sign"):
            return False
        self._at += 1
        return True

    def expect(self, sign: str) -> Token:
        if self.next.word != sign:
            shown = repr(self.next.text) if self.next.text else "the end"
            self.refuse(f"expected {sign!r}, found {shown}", f"write {sign}")
        return self.take()

    def span_from(self, start: int) -> Span:
        last = self._tokens[self._at - 1]
        return Span(start, last.start + len(last.text))

    def _or(self) -> p.Predicate:
        return self._chain("or")

    def _chain(self, word: str) -> p.Predicate:
        start = self.next.start
        members = [self._member(word)]
        while self.took(word):
            members.append(self._member(word))
        if len(members) == 1:
            return members[0]
        return p.Chain(word, tuple(members), span=self.span_from(start))

    def _member(self, word: str) -> p.Predicate:
        return self._chain("and") if word == "or" else self._not()

    def _not(self) -> p.Predicate:
        start, count = self.next.start, 0
        while self.took("not"):
            count += 1
        found = self._predicate()
        for _ in range(count % 2 or 2 * bool(count)):
            found = p.Unary("not", found, span=self.span_from(start))
        return found

    def _predicate(self) -> p.Predicate:
        start = self.next.start
        left = self._sum()
        if self.next.kind == "sign" and self.next.text in _COMPARED:
            operator = _COMPARED[self.take().text]
            found: p.Predicate = p.Comparison(
                operator, left, self._sum(), span=self.span_from(start)
            )
        elif self.took("is"):
            operator = "is not null" if self.took("not") else "is null"
            if not self.took("null"):
                self.refuse("only null can stand here", "write is null, or is not null")
            found = p.Unary(operator, left, span=self.span_from(start))
        else:
            return left
        if (self.next.kind == "sign" and self.next.text in _COMPARED) or self.next.word == "is":
            hint = "write the two with and between them, or parentheses"
            self.refuse("one comparison cannot follow another", hint)
        return found

    def _sum(self) -> p.Predicate:
        return self._arithmetic(("+", "-"))

    def _arithmetic(self, signs: tuple[str, ...]) -> p.Predicate:
        start = self.next.start
        found = self._factors(signs)
        while self.took(*signs):
            sign = self._tokens[self._at - 1].text
            right = self._factors(signs)
            found = p.Arithmetic(sign, found, right, span=self.span_from(start))
        if self.next.kind == "sign" and self.next.text in ("/", "%"):
            hint = "multiply the other side: a.x > 2 * b.x in place of a.x / b.x > 2"
            self.refuse(f"{self.next.text!r} is not exact, and so is left out", hint)
        return found

    def _factors(self, signs: tuple[str, ...]) -> p.Predicate:
        return self._arithmetic(("*",)) if "+" in signs else self._operand()

    def _operand(self) -> p.Predicate:
        self._depth += 1
        if self._depth > NESTED_MAX:
            self.refuse(f"more than {NESTED_MAX} forms inside each other", "write it flatter")
        found = self._single()
        self._depth -= 1
        return found

    def _single(self) -> p.Predicate:
        token = self.take()
        if token.text in ("-", "+") and token.kind == "sign":
            return self._signed(token)
        if token.text == "(":
            found = self._or()
            self.expect(")")
            return found
        if token.kind == "number":
            return _number(token.text, token.span)
        if token.kind == "text":
            return p.Literal(_unquoted(token.text), "string", span=token.span)
        if token.kind == "name":
            return self._named(token)
        self._at -= 1
        shown = f"{token.text!r} cannot stand here" if token.text else "the condition ends too soon"
        return self.refuse(
            shown, self._hint(token.word) if token.text else "write what is compared"
        )

    def _signed(self, token: Token) -> p.Predicate:
        if self.next.kind == "number":
            number = self.take()
            sign = "-" if token.text == "-" else ""
            return _number(sign + number.text, self.span_from(token.start))
        part = self._operand()
        return part if token.text == "+" else p.Unary("-", part, span=self.span_from(token.start))

    def _named(self, token: Token) -> p.Predicate:
        word = token.word
        if word in ("true", "false"):
            return p.Literal(word == "true", "boolean", span=token.span)
        if word in _TYPED and self.next.kind == "text":
            return self._typed(word, token)
        if word == "abs" and self.next.text == "(":
            self.take()
            part = self._sum()
            self.expect(")")
            return p.Unary("abs", part, span=self.span_from(token.start))
        if self.next.text == "(":
            return self.called(token)
        if word in _WORDS and self.next.text != ".":
            self._at -= 1
            self.refuse(f"{token.text!r} cannot stand here", self._hint(word))
        return self.column(token)

    def called(self, token: Token) -> p.Predicate:
        hint = f"{self.closed}; sums and counts stand in if:"
        self.refuse(f"{token.text}(..) is no part of a where", hint, token.span)

    def column(self, token: Token) -> p.Predicate:
        names = [token]
        while self.took("."):
            if self.next.kind != "name":
                self.refuse("a column's name is missing", f"write {token.text}.column")
            names.append(self.take())
        span, texts = self.span_from(token.start), [name.text.strip("`") for name in names]
        if len(texts) == 3 and texts[1] == "old":
            return p.Column(texts[0], texts[2], True, span=span)
        if len(texts) == 2:
            return p.Column(texts[0], texts[1], span=span)
        if len(texts) == 1:
            hint = f"write whose it is: label.{texts[0]} or event.{texts[0]}"
            self.refuse(f"{texts[0]} is of no part of the expression", hint, span)
        hint = "write label.column, or label.old.column of the pre-image"
        return self.refuse(f"{'.'.join(texts)} is no column", hint, span)

    def _typed(self, word: str, token: Token) -> p.Predicate:
        written = _unquoted(self.take().text)
        try:
            return p.Literal(_instant(word, written), word, span=self.span_from(token.start))
        except ValueError:
            hint = {
                "date": "write date '2026-03-01'",
                "timestamp": "write timestamp '2026-03-01 10:00:00Z', in UTC",
                "timestamp_ntz": "write timestamp_ntz '2026-03-01 10:00:00'",
            }[word]
            return self.refuse(f"{written!r} is no {word}", hint, self.span_from(token.start))

    def _hint(self, word: str) -> str:
        if word in ("between", "in"):
            return "write two comparisons with and (or) between them"
        if word in ("/", "%"):
            return "multiply the other side: a.x > 2 * b.x in place of a.x / b.x > 2"
        return self.closed


def _number(text: str, span: Span) -> p.Literal:
    if "e" in text.lower():
        if math.isinf(float(text)):
            raise PredicateError(
                Fault(span, f"{text} is beyond all doubles", "write a smaller one")
            )
        return p.Literal(float(text), "double", span=span)
    if sum(map(str.isdigit, text)) > _DIGITS_MAX:
        fault = Fault(span, f"a number has at most {_DIGITS_MAX} digits", "write it as 1e40")
        raise PredicateError(fault)
    if "." in text:
        return p.Literal(Decimal(text), "decimal", span=span)
    return p.Literal(int(text), "bigint", span=span)


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _instant(word: str, text: str) -> p.Value:
    if word == "date":
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
            raise ValueError
        return date.fromisoformat(text)
    form = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?"
    plain = text.removesuffix("Z") if word == "timestamp" else text
    if not re.fullmatch(form, plain, re.ASCII) or (word == "timestamp") != (plain != text):
        raise ValueError
    found = datetime.fromisoformat(plain)
    return found.replace(tzinfo=UTC) if word == "timestamp" else found
