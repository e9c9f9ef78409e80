"""The types of a rule's `where`: whether its operands fit, and whether 38 digits always do."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from decimal import Decimal

from tidegate.rules.expressions import predicates as p
from tidegate.rules.expressions.faults import Fault

DIGITS_MAX = 38  # of an exact number
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_DOUBLES = ("float", "real", "double")
_SAME = {"timestamp_ltz": "timestamp"}
_TIMES = ("date", "timestamp", "timestamp_ntz")
_LONGS = ("bigint", "long")  # beside a decimal Spark counts one digit more of these
_TEXT = re.compile(r"(?:string|char|character|varchar)\b.*")


def kind_of(sql: str) -> p.Kind | None:
    """The kind of a Spark SQL type: decimal(12,2) has 10 digits before the point and 2 after it.
    None: a condition can only ask whether such a value is null."""
    name = " ".join(sql.lower().split())
    if name in p.INTEGERS:
        return p.Exact(p.INTEGERS[name], 0)
    if found := _DECIMAL.fullmatch(name):
        digits, scale = int(found[1] or 10), int(found[2] or 0)
        return p.Exact(digits - scale, scale)
    if name in _DOUBLES:
        return "double"
    if _TEXT.fullmatch(name):
        return "string"
    return _SAME.get(name, name) if name in (*_TIMES, *_SAME, "boolean") else None


def faults(tree: p.Predicate, types: Callable[[p.Column], str | None]) -> Iterator[Fault]:
    """What is wrong with the types of a condition. `types`: the Spark SQL type of a column; None:
    only its table knows, and what it takes part in is checked when that is."""
    found: list[Fault] = []
    _Types(types, found).condition(tree)
    return iter(found)


def common_type(types: Collection[str]) -> str | None:
    """The type of a column whose label stands at event types with these types of it: an int and a
    bigint are a bigint, an int and a decimal(4,2) are a decimal(12,2). None: they do not compare. A
    double does not beside exact numbers: whether these are rounded would depend on which rows are
    at hand."""
    kinds = {one: kind_of(one) for one in types}
    alike = {*kinds.values()} if None not in kinds.values() else {_squeezed(one) for one in types}
    if len(alike) == 1:
        return min(types)
    exact = {one: kind for one, kind in kinds.items() if isinstance(kind, p.Exact)}
    if len(exact) < len(kinds):
        return None
    if all(map(is_whole, exact)):
        return max(exact, key=lambda one: exact[one].whole)
    scale = max(kind.scale for kind in exact.values())
    whole = max(kind.whole + (_squeezed(one) in _LONGS) for one, kind in exact.items())
    return f"decimal({whole + scale},{scale})" if whole + scale <= DIGITS_MAX else None


def is_whole(sql: str) -> bool:
    """Whether this is a type of whole numbers. A decimal(10,0) is none."""
    return _squeezed(sql) in p.INTEGERS


def _squeezed(sql: str) -> str:
    return "".join(sql.lower().split())


def not_common(column: p.Column, types: Collection[str]) -> Fault:
    """The fault of a column without a common type."""
    message = f"{column} is of several types, which do not compare: {', '.join(sorted(types))}"
    return Fault(column.span, message, "label the parts apart, or change the types of the columns")


class _Unknown:
    """The type of what only a table knows, or what is wrong already."""


_UNKNOWN = _Unknown()
_Found = p.Kind | _Unknown | None


class _Types:
    def __init__(self, types: Callable[[p.Column], str | None], found: list[Fault]) -> None:
        self._types = types
        self._found = found

    def condition(self, tree: p.Predicate) -> None:
        """A tree that must be true or false."""
        match tree:
            case p.Chain(members=members):
                for member in members:
                    self.condition(member)
            case p.Unary(operator="not", part=part):
                self.condition(part)
            case p.Unary(operator="is null" | "is not null", part=part):
                self._operand(part, asked=True)
            case p.Comparison():
                self._comparison(tree)
            case _:
                self._wrong(tree, "this is no condition", f"compare it: {_shown(tree)}")

    def _comparison(self, tree: p.Comparison) -> None:
        left, right = self._operand(tree.left), self._operand(tree.right)
        if isinstance(left, _Unknown) or isinstance(right, _Unknown):
            return
        if _number(left) and _number(right):
            return
        if left != right:
            hint = "both sides must be numbers, or of one type"
            other = left if right == "string" else right
            if "string" in (left, right) and other in _TIMES:
                hint = f"write {other} '..' where a text is meant as one"
            self._wrong(tree, f"{_name(left)} does not compare with {_name(right)}", hint)
        elif left in ("string", "boolean") and tree.operator not in ("=", "<>"):
            hint = "the order of texts is a matter of language: write = or <>"
            self._wrong(tree, f"{left}s compare by = and <> only", hint)

    def _operand(self, tree: p.Predicate, *, asked: bool = False) -> _Found:
        match tree:
            case p.Column():
                return self._column(tree, asked=asked)
            case p.Literal(value=value, kind=kind):
                return _of_literal(value, kind)
            case p.Arithmetic(operator=operator, left=left, right=right):
                return self._result(tree, operator, self._operand(left), self._operand(right))
            case p.Unary(operator="-" | "abs", part=part):
                found = self._operand(part)
                if not isinstance(found, _Unknown) and not _number(found):
                    return self._wrong(tree, f"{_name(found)} is no number", "name a number")
                return found
        self.condition(tree)
        return self._wrong(tree, "a condition is no value", "join conditions by and, or")

    def _column(self, tree: p.Column, *, asked: bool) -> _Found:
        sql = self._types(tree)
        if sql is None:
            return _UNKNOWN
        found = kind_of(sql)
        if found is None and not asked:
            hint = "name a number, a text, a date, a timestamp or a boolean"
            return self._wrong(tree, f"{tree} is {sql}, which does not compare", hint)
        return _UNKNOWN if found is None else found

    def _result(self, tree: p.Arithmetic, sign: str, left: _Found, right: _Found) -> _Found:
        for found in (left, right):
            if not isinstance(found, _Unknown) and not _number(found):
                return self._wrong(tree, f"{_name(found)} is no number", f"{sign} takes numbers")
        if isinstance(left, p.Exact) and isinstance(right, p.Exact):
            if sign == "*":
                return self._room(tree, left.whole + right.whole, left.scale + right.scale)
            return self._room(tree, max(left.whole, right.whole) + 1, max(left.scale, right.scale))
        if isinstance(left, _Unknown) or isinstance(right, _Unknown):
            return _UNKNOWN
        return "double"

    def _room(self, tree: p.Predicate, whole: int, scale: int) -> _Found:
        if whole + scale > DIGITS_MAX:
            message = f"this may take {whole + scale} digits, and at most {DIGITS_MAX} are exact"
            hint = "declare columns of fewer digits, or make one side a double: 1e0 * .."
            return self._wrong(tree, message, hint)
        return p.Exact(whole, scale)

    def _wrong(self, tree: p.Predicate, message: str, hint: str) -> _Unknown:
        self._found.append(Fault(tree.span, message, hint))
        return _UNKNOWN


def _of_literal(value: p.Value, kind: str) -> p.Kind:
    if kind not in ("bigint", "decimal"):
        return kind
    _, digits, exponent = Decimal(value).as_tuple()  # type: ignore[arg-type]
    scale = -int(exponent)
    return p.Exact(max(len(digits), scale) - scale, scale)


def _number(kind: _Found) -> bool:
    return isinstance(kind, p.Exact) or kind == "double"


def _name(kind: _Found) -> str:
    return "a number" if _number(kind) else f"a {kind}"


def _shown(tree: p.Predicate) -> str:
    if isinstance(tree, p.Aggregate):
        return f"{tree} > 0"
    return f"{tree} = true" if isinstance(tree, p.Column) else "x > 0"
