"""Expressions of a script: from the parse tree to typed nodes."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lark import Token, Tree

from tidegate.rules.errors import Place, did_you_mean
from tidegate.rules.eventscript import tree as t
from tidegate.rules.eventscript.functions import FORMS, join, signature, widened
from tidegate.rules.eventscript.names import Names
from tidegate.rules.eventscript.parser import Mistakes, Parsed
from tidegate.rules.eventscript.typenames import TypeNames
from tidegate.rules.eventscript.types import Array, Basic, Structure, Type, holds_duration

LONG_MAX = 2**63 - 1
_NUMBERS = {Basic.LONG, Basic.DOUBLE}
_OPERANDS: Mapping[str, set[Basic]] = {
    **{op: {Basic.BOOLEAN} for op in ("&&", "||")},
    **{op: {*_NUMBERS, Basic.STRING, Basic.TIME, Basic.DURATION} for op in ("<", "<=", ">", ">=")},
    **dict.fromkeys(("*", "/", "%"), _NUMBERS),
    "-": {*_NUMBERS, Basic.DURATION},
    "+": {*_NUMBERS, Basic.DURATION, Basic.STRING},
}
_ARITHMETIC = {"+", "-", "*", "/", "%"}
_TIMES = {  # what a time or a duration gives with an operand of another type
    ("-", Basic.TIME, Basic.TIME): Basic.DURATION,
    ("-", Basic.TIME, Basic.DURATION): Basic.TIME,
    ("+", Basic.TIME, Basic.DURATION): Basic.TIME,
    ("+", Basic.DURATION, Basic.TIME): Basic.TIME,
    ("/", Basic.DURATION, Basic.DURATION): Basic.LONG,
    ("*", Basic.DURATION, Basic.LONG): Basic.DURATION,
    ("*", Basic.LONG, Basic.DURATION): Basic.DURATION,
}
UNITS = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
"""Of `elapse` and of durations, singular, in microseconds."""
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "'": "'"}


@dataclass
class Expressions:
    """Reads expressions. A method gives None if something is wrong, which is then in `mistakes`, or
    if a type is not known yet.

    `guessing`: an operand of unknown type gets the type of the other, so that `n = n + 1` makes n a
    long (see `inference`)."""

    mistakes: Mistakes
    names: Names
    types: TypeNames
    functions: Mapping[str, t.Function]
    guessing: bool = False

    def read(self, tree: Parsed, wanted: Type | None = None) -> t.Expression | None:
        """The node of an expression, widened to `wanted`; by the method of its grammar's rule."""
        node: t.Expression | None = getattr(self, f"_{tree.data}")(tree, wanted)
        if node is None:
            return None
        node = replace(node, place=self.mistakes.place(tree))
        if wanted is None:
            return node
        fitting = widened(node, wanted)
        if fitting is None:
            self._refuse_type(node, wanted, tree)
        return fitting

    def _refuse_type(self, node: t.Expression, wanted: Type, tree: Parsed) -> None:
        hint = ""
        if wanted == Basic.LONG and node.type == Basic.DOUBLE:
            hint = "long(x) truncates, round(x) rounds"
        elif wanted == Basic.STRING and node.type in _NUMBERS | {Basic.BOOLEAN, Basic.TIME}:
            hint = "string(x) makes it a string"
        elif holds_duration(node.type):
            hint = "durations stay in a script; microseconds(d) is a long"
        elif wanted == Basic.BOOLEAN:
            hint = "a condition compares: x > 0"
        self.mistakes.add("type", f"expected {wanted}, found {node.type}", tree, hint)

    def _name(self, tree: Parsed, _: Type | None) -> t.Expression | None:
        return self.names.read(_token(tree), self.mistakes)

    def _long(self, tree: Parsed, _: Type | None, sign: int = 1) -> t.Expression:
        digits = str(tree.children[0]).lstrip("0") or "0"
        value = int(digits) * sign if len(digits) < 20 else LONG_MAX + 1
        if not -LONG_MAX - 1 <= value <= LONG_MAX:
            hint = "write 1e19 for a double"
            self.mistakes.add("type", f"a long is at most {LONG_MAX}", tree, hint)
        return t.Literal(Basic.LONG, value)

    def _double(self, tree: Parsed, _: Type | None) -> t.Expression:
        return t.Literal(Basic.DOUBLE, float(str(tree.children[0])))

    def _duration(self, tree: Parsed, _: Type | None) -> t.Expression:
        number, unit = tree.children
        value = float(number) * UNITS[str(unit).removesuffix("s")]
        if "." not in number and "e" not in number.lower():
            value = int(number[:20]) * UNITS[str(unit).removesuffix("s")]
        if not value <= LONG_MAX:
            self.mistakes.add("type", f"a duration is at most {LONG_MAX} microseconds", tree)
            value = 0
        return t.Literal(Basic.DURATION, round(value))

    def _string(self, tree: Parsed, _: Type | None) -> t.Expression:
        def one(found: re.Match[str]) -> str:
            escape = found[1]
            if len(escape) > 1:
                return chr(int(escape[1:], 16))
            if escape not in _ESCAPES:
                hint = 'known: \\n \\t \\r \\b \\f \\" \\\\ and \\u with four digits'
                self.mistakes.add("string", f"unknown escape \\{escape}", tree, hint)
            return _ESCAPES.get(escape, escape)

        value = _ESCAPE.sub(one, str(tree.children[0])[1:-1])
        # Two halves of a character beyond 16 bits are one character.
        value = codecs.decode(value.encode("utf-16-le", "surrogatepass"), "utf-16-le", "replace")
        return t.Literal(Basic.STRING, value)

    def _true(self, tree: Parsed, _: Type | None) -> t.Expression:
        return t.Literal(Basic.BOOLEAN, tree.data == "true")

    _false = _true

    def _null(self, tree: Parsed, wanted: Type | None) -> t.Expression | None:
        if wanted is None:
            hint = "isNull(x) asks whether a value is null"
            self.mistakes.add("type", "null has no type here", tree, hint)
            return None
        return t.Literal(wanted, None)

    def _key(self, tree: Parsed, _: Type | None) -> t.Expression | None:
        number, key = int(_token(tree)[:9]), self.names.key
        if key is None:
            self.mistakes.add("unknown-key", "in case and group there is no key yet", tree)
            return None
        if not key:
            hint = "give an input a group: in type NAME group(expression)"
            self.mistakes.add("unknown-key", "no input has a group", tree, hint)
            return None
        if number >= len(key):
            message = f"the key has {len(key)} columns, of which the first is group[0]"
            self.mistakes.add("unknown-key", message, tree)
            return None
        return t.Key(key[number], number)

    def _unary(self, tree: Parsed, _: Type | None) -> t.Expression | None:
        op, below = str(tree.children[0]), tree.children[1]
        if op == "-" and below.data == "long":
            return self._long(below, None, -1)
        operand = self.read(below)
        if operand is None:
            return None
        if operand.type not in ({Basic.BOOLEAN} if op == "!" else {*_NUMBERS, Basic.DURATION}):
            expected = "a boolean" if op == "!" else "a number"
            self.mistakes.add("type", f"{op} takes {expected}, found {operand.type}", below)
            return None
        return t.Unary(operand.type, op, operand)

    def _binary(self, tree: Parsed, _: Type | None) -> t.Expression | None:
        one, token, two = tree.children
        op = str(token)
        if op in ("==", "!=") and "null" in (one.data, two.data):
            return self._null_test(op, two if one.data == "null" else one)
        left, right = self.read(one), self.read(two)
        if left is None or right is None:
            return (left or right) if self.guessing and op in _ARITHMETIC else None
        timed = _TIMES.get((op, left.type, right.type))  # type: ignore[arg-type]
        if timed is not None:
            return t.Binary(timed, op, left, right)
        if op == "*" and {left.type, right.type} == {Basic.DURATION, Basic.DOUBLE}:
            return _scaled(left, right, self.mistakes.place(tree))
        both = join(left.type, right.type)
        opaque = op in ("==", "!=") and Basic.OBJECT in (left.type, right.type)
        if both is None and opaque and Basic.DURATION not in (left.type, right.type):
            both = Basic.OBJECT
        if both is None or both not in _OPERANDS.get(op, {both}):
            message = f"{op} does not take {left.type} and {right.type}"
            self.mistakes.add("type", message, tree, _operand_hint(op, left, right))
            return None
        kind = both if op in _ARITHMETIC else Basic.BOOLEAN
        left, right = (widened(each, both) or each for each in (left, right))
        return t.Binary(kind, op, left, right)

    def _null_test(self, op: str, of: Parsed) -> t.Expression | None:
        operand = self.read(of)
        if operand is None:
            return None
        test = t.Call(Basic.BOOLEAN, "isNull", (operand,))
        return test if op == "==" else t.Unary(Basic.BOOLEAN, "!", test)

    def _index(self, tree: Parsed, _: Type | None) -> t.Expression | None:
        one, two = tree.children
        array, index = self.read(one), self.read(two, Basic.LONG)
        if array is None or index is None:
            return None
        if not isinstance(array.type, Array):
            hint = "substring(s, i, i + 1) is a character" if array.type == Basic.STRING else ""
            self.mistakes.add("type", f"expected an array, found {array.type}", one, hint)
            return None
        return t.Index(array.type.of, array, index)

    def _field(self, tree: Parsed, _: Type | None) -> t.Expression | None:
        one, _dot, name = tree.children
        structure = self.read(one)
        if structure is None:
            return None
        if not isinstance(structure.type, Structure):
            self.mistakes.add("type", f"expected a structure, found {structure.type}", one)
            return None
        kind = structure.type.field(name)
        if kind is None:
            hint = did_you_mean(name, dict(structure.type.fields))
            self.mistakes.add("unknown-field", f"unknown field {str(name)!r}", name, hint)
            return None
        return t.Field(kind, structure, str(name))

    def _call(self, tree: Parsed, _: Type | None) -> t.Expression | None:
        name, *trees = tree.children
        declared = self.functions.get(name)
        if declared is None and name not in FORMS:
            known = [*FORMS, *self.functions]
            hint = did_you_mean(name, known)
            self.mistakes.add("unknown-function", f"unknown function {str(name)!r}", name, hint)
        operands = [self.read(each) for each in trees if isinstance(each, Tree)]
        given = [operand for operand in operands if operand is not None]
        if len(given) < len(operands) or (declared is None and name not in FORMS):
            return None
        found = signature(name, [operand.type for operand in given], declared)
        if found is None:
            types = ", ".join(str(operand.type) for operand in given)
            hint = FORMS.get(name, "")
            if declared is not None:
                hint = f"{name}({', '.join(map(str, declared.arguments))})"
            message = f"{str(name)!r} does not take ({types})"
            self.mistakes.add("type", message, tree, hint)
            return None
        takes, gives = found
        fitting = tuple(widened(one, two) or one for one, two in zip(given, takes, strict=True))
        return t.Call(gives, str(name), fitting)

    def _choice(self, tree: Parsed, wanted: Type | None) -> t.Expression | None:
        conditions, one, two = tree.children
        condition = self.read(conditions, Basic.BOOLEAN)
        then, other = self.read(one, wanted), self.read(two, wanted)
        if then is None or other is None:
            return (then or other) if self.guessing else None
        if condition is None:
            return None
        both = wanted or join(then.type, other.type)
        if both is None:
            message = f"one value is {then.type}, the other {other.type}"
            self.mistakes.add("type", message, tree, "both are of one type")
            return None
        then, other = (widened(each, both) or each for each in (then, other))
        return t.Choice(both, condition, then, other)

    def _build(self, tree: Parsed, wanted: Type | None) -> t.Expression | None:
        types = wanted if isinstance(wanted, Structure) else None
        fields: dict[str, t.Expression | None] = {}
        for entry in tree.children:
            name, value = entry.children
            if name in fields:
                self.mistakes.add("name", f"the field {str(name)!r} stands twice", name)
            fields[str(name)] = self.read(value, types and types.field(name))
        known = {name: value for name, value in fields.items() if value is not None}
        if len(known) < len(fields):
            return None
        if types is not None and known.keys() != dict(types.fields).keys():
            self._refuse_fields(tree, set(known), types)
            return None
        kind = Structure(tuple((name, value.type) for name, value in known.items()))
        return t.Build(kind, tuple(known.items()))

    def _refuse_fields(self, tree: Parsed, given: set[str], wanted: Structure) -> None:
        fields = dict(wanted.fields)
        extra = sorted(given - fields.keys())
        lacking = [name for name in fields if name not in given]
        message = f"the field {lacking[0]!r} is missing" if lacking else ""
        if extra:
            message = f"unknown field {extra[0]!r}"
        self.mistakes.add("unknown-field", message, tree, f"expected {wanted}")

    def _new(self, tree: Parsed, _: Type | None) -> t.Expression | None:
        of, size = tree.children
        kind, count = self.types.read(of, self.mistakes), self.read(size, Basic.LONG)
        if kind is None or count is None:
            return None
        return t.New(Array(kind), count)


def _scaled(left: t.Expression, right: t.Expression, place: Place) -> t.Expression:
    """A duration times a double, rounded to microseconds."""
    factors = (
        t.Call(Basic.DOUBLE, "double", (each,), place=place)
        if each.type == Basic.DURATION
        else each
        for each in (left, right)
    )
    product = t.Binary(Basic.DOUBLE, "*", *factors, place=place)
    return t.Call(Basic.DURATION, "round", (product,), place=place)


def _operand_hint(op: str, left: t.Expression, right: t.Expression) -> str:
    """What to write for operands that an operator does not take."""
    types = {left.type, right.type}
    if op == "+" and Basic.STRING in types:
        return "string(x) makes a value a string"
    if not types & {Basic.DURATION, Basic.TIME} or not types & _NUMBERS:
        return ""
    if op == "/":
        return "multiply by a number: d * 0.5" if Basic.DURATION in types else ""
    if op in ("*", "%"):
        return ""
    bare = left if left.type in _NUMBERS else right
    if isinstance(bare, t.Literal):
        return f"write {bare.value} seconds, or the unit that is meant"
    return "a bare number is no length of time: n * 1 seconds, or microseconds(d) for a long"


def _token(tree: Parsed) -> Token:
    token: Token = tree.children[0]
    return token
