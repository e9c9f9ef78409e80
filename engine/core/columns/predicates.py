"""Predicates of the closed list (G30) as text and as a tree. Everything else is None."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Column:
    name: str

    def __str__(self) -> str:
        return f"`{self.name}`"


@dataclass(frozen=True, slots=True)
class Literal:
    """An integer, a decimal (`1.5`), a double (`1e3`), a string, a boolean or a date."""

    value: int | Decimal | float | str | bool | date

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Predicate:
    def columns(self) -> Iterator[Column]:
        """The columns it reads, each as often as it stands there."""
        for field in fields(self):
            value = getattr(self, field.name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Column):
                    yield part
                elif isinstance(part, Predicate):
                    yield from part.columns()


@dataclass(frozen=True, slots=True)
class Logical(Predicate):
    operator: str  # AND | OR
    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return "(" + f" {self.operator} ".join(map(str, self.parts)) + ")"


@dataclass(frozen=True, slots=True)
class Negated(Predicate):
    part: Predicate

    def __str__(self) -> str:
        return f"NOT {self.part}"


@dataclass(frozen=True, slots=True)
class Bare(Predicate):
    column: Column

    def __str__(self) -> str:
        return str(self.column)


@dataclass(frozen=True, slots=True)
class IsNull(Predicate):
    column: Column

    def __str__(self) -> str:
        return f"{self.column} IS NULL"


@dataclass(frozen=True, slots=True)
class In(Predicate):
    column: Column
    literals: tuple[Literal, ...]

    def __str__(self) -> str:
        return f"{self.column} IN ({', '.join(map(str, self.literals))})"


@dataclass(frozen=True, slots=True)
class Between(Predicate):
    column: Column
    low: Literal
    high: Literal

    def __str__(self) -> str:
        return f"{self.column} BETWEEN {self.low} AND {self.high}"


@dataclass(frozen=True, slots=True)
class Compare(Predicate):
    operator: str
    column: Column
    other: Column | Literal

    def __str__(self) -> str:
        return f"{self.column} {self.operator} {self.other}"


_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
  | (?P<string>'[^'\\]*'(?!\s*'))
  | (?P<name>(?:(?:old|new)\s*\.\s*)?(?:[A-Za-z_]\w*|`[^`]+`))
  | (?P<sign><=>|<>|<=|>=|!=|==|=|<|>|\(|\)|,|-)
  )""",
    re.VERBOSE | re.IGNORECASE,
)
_KEYWORDS = frozenset(
    {"AND", "OR", "NOT", "IN", "IS", "NULL", "BETWEEN", "TRUE", "FALSE", "DATE"}
    # Words that begin a form outside the list; as a column's name they go to Spark as well.
    | {"LIKE", "RLIKE", "ILIKE", "REGEXP", "CASE", "CAST", "EXISTS", "ANY", "SOME", "ALL", "DIV"}
    | {"INTERVAL", "SELECT", "COLLATE", "TIMESTAMP"}
)
_MOST_DIGITS = 38  # of a decimal
_DEPTH_MAX = 50  # of parentheses and NOTs within each other
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "<>": "<>"}


class _OutsideTheList(Exception):
    """The text is not of a form that Arrow may decide."""


def parse_predicate(text: str, resolve: Callable[[str], str]) -> Predicate | None:
    """The tree of `text`, or None if it is not of the closed list. `resolve` gives a column as it
    is written (`x`, `old.x`, `new.x`) its proper name."""
    try:
        parser = _Parser(_tokens(text), resolve)
        predicate = parser.disjunction()
        parser.end()
    except _OutsideTheList:
        return None
    return predicate


def _tokens(text: str) -> list[tuple[str, str]]:
    """(kind, text): number, string, name, keyword (upper case) or sign."""
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _OutsideTheList
        kind, value = match.lastgroup, match[match.lastgroup]
        if kind == "name" and value.upper() in _KEYWORDS:
            kind, value = "keyword", value.upper()
        tokens.append((kind, value))
        at = match.end()
    return tokens


class _Parser:
    """Recursive descent over the tokens, with Spark's precedence: OR, AND, NOT, predicate."""

    def __init__(self, tokens: list[tuple[str, str]], resolve: Callable[[str], str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._resolve = resolve

    def disjunction(self) -> Predicate:
        return self._chain("OR", lambda: self._chain("AND", self._negation))

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise _OutsideTheList

    def _chain(self, operator: str, part: Callable[[], Predicate]) -> Predicate:
        parts = [part()]
        while self._accept("keyword", operator):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Logical(operator, tuple(parts))

    def _negation(self) -> Predicate:
        if self._accept("keyword", "NOT"):
            return Negated(self._deeper(self._negation))
        if self._accept("sign", "("):
            inner = self._deeper(self.disjunction)
            self._expect("sign", ")")
            return inner
        return self._predicate()

    def _deeper(self, part: Callable[[], Predicate]) -> Predicate:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise _OutsideTheList
        found = part()
        self._depth -= 1
        return found

    def _predicate(self) -> Predicate:
        left = self._value()
        if isinstance(left, Literal):
            operator = self._comparison()
            right = self._value()
            if operator is None or isinstance(right, Literal):
                raise _OutsideTheList
            return Compare(_FLIPPED[operator], right, left)
        if (operator := self._comparison()) is not None:
            return Compare(operator, left, self._value())
        if self._accept("keyword", "IS"):
            negated = self._accept("keyword", "NOT")
            self._expect("keyword", "NULL")
            return Negated(IsNull(left)) if negated else IsNull(left)
        negated = self._accept("keyword", "NOT")
        predicate = self._range_or_list(left)
        if predicate is None:
            if negated:
                raise _OutsideTheList
            return Bare(left)
        return Negated(predicate) if negated else predicate

    def _range_or_list(self, column: Column) -> Predicate | None:
        if self._accept("keyword", "BETWEEN"):
            low = self._literal()
            self._expect("keyword", "AND")
            return Between(column, low, self._literal())
        if self._accept("keyword", "IN"):
            self._expect("sign", "(")
            literals = [self._literal()]
            while self._accept("sign", ","):
                literals.append(self._literal())
            self._expect("sign", ")")
            return In(column, tuple(literals))
        return None

    def _comparison(self) -> str | None:
        for sign in ("=", "==", "<>", "!=", "<", "<=", ">", ">="):
            if self._accept("sign", sign):
                return {"==": "=", "!=": "<>"}.get(sign, sign)
        return None

    def _literal(self) -> Literal:
        value = self._value()
        if isinstance(value, Column):
            raise _OutsideTheList
        return value

    def _value(self) -> Column | Literal:
        negative = self._accept("sign", "-")
        kind, text = self._next()
        if kind == "number":
            return Literal(_number(text, negative))
        if negative:
            raise _OutsideTheList
        if kind == "string":
            return Literal(text[1:-1])
        if kind == "name":
            return Column(self._resolve(_column_name(text)))
        if text in ("TRUE", "FALSE"):
            return Literal(text == "TRUE")
        if text == "DATE" and self._peek()[0] == "string":
            return Literal(_date(self._next()[1][1:-1]))
        raise _OutsideTheList

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._at += 1
        return token

    def _accept(self, kind: str, text: str) -> bool:
        if self._peek() == (kind, text):
            self._at += 1
            return True
        return False

    def _expect(self, kind: str, text: str) -> None:
        if not self._accept(kind, text):
            raise _OutsideTheList


def _number(text: str, negative: bool) -> int | Decimal | float:
    sign = "-" if negative else ""
    if "e" in text.lower():
        double = float(sign + text)
        if math.isinf(double):
            raise _OutsideTheList
        return double
    if len(text) > _MOST_DIGITS:
        raise _OutsideTheList
    return Decimal(sign + text) if "." in text else int(sign + text)


def _date(text: str) -> date:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise _OutsideTheList
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise _OutsideTheList from None


def _column_name(text: str) -> str:
    image, _, name = text.rpartition(".") if text[0] != "`" else ("", "", text)
    name = name.strip().strip("`")
    return f"{image.strip().lower()}.{name}" if image else name
