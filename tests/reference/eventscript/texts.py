"""Hypothesis: texts of small scripts, well typed but for what only the whole text can show.

Shrinks towards one marker without a block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from hypothesis import strategies as st

Draw = Any  # hypothesis's draw of a composite strategy


class Stream(NamedTuple):
    """An input: its declaration, the names its events bear, their type, values that may arrive."""

    declared: str
    events: tuple[str, ...]
    of: str
    values: tuple[Any, ...]


LONGS = (0, 1, 2, 5, -1, None, 2**63 - 1)
STREAMS = {
    "A": Stream("{} A", ("A",), "{}", ({},)),
    "B": Stream("long B", ("B",), "long", LONGS),
    "C": Stream("double C", ("C",), "double", (0.0, 1.5, -2.0, None)),
    "N": Stream("long N case {N > 1 ? P : N == 0 ? Q}", ("P", "Q"), "long", (0, 1, 2, 5)),
    "M": Stream(
        "{long i; double j;} M case {M.i == 0 ? U : V}",
        ("U", "V"),
        "pair",
        ({"i": 0, "j": 0.5}, {"i": 2, "j": -1.0}, {"i": 1, "j": None}),
    ),
    "D": Stream(
        "{long k; long v;} D group(D.k)",
        ("D",),
        "keyed",
        tuple({"k": k, "v": v} for k in (0, 1, None) for v in (0, 3, None)),
    ),
    "S": Stream("string S", ("S",), "string", ("", "ab", "b", None)),
    "T": Stream("time T", ("T",), "time", (0, 1, 3_000_000, None)),
    "E": Stream(
        "{long k; {boolean b; double x;} in; string s;} E group(E.k) case {E.in.b ? J : K}",
        ("J", "K"),
        "nested",
        (
            {"k": 0, "in": {"b": True, "x": 0.5}, "s": "ab"},
            {"k": 1, "in": {"b": False, "x": -1.0}, "s": ""},
            {"k": 1, "in": {"b": True, "x": 2.5}, "s": "b"},
            {"k": 0, "in": {"b": False, "x": None}, "s": None},
        ),
    ),
    "F": Stream(
        "{string w; double x; time at;} F group(F.w, F.x, F.at)",
        ("F",),
        "words",
        tuple({"w": w, "x": x, "at": at} for w in ("ab", "") for x in (0.0, 1.5) for at in (0, 7)),
    ),
}
OUTPUTS = (
    "out {} X, long Y, double W, string S, boolean F, time T,\n"
    "    {long i; double j;} R, long[] L\n"
)
VARIABLES = {
    "long": ("n", "m"),
    "double": ("d",),
    "boolean": ("f",),
    "string": ("s",),
    "time": ("t",),
    "duration": ("h",),
    "pair": ("p",),
    "keyed": ("q",),
    "array": ("a", "e"),
    "doubles": ("b",),
    "nested": ("u",),
    "words": ("w",),
}
STARTS = {  # what a variable may be before the first event
    "long": ("0", "3", "0; {} = null"),
    "double": ("0.5", "1e300"),
    "boolean": ("true", "false"),
    "string": ('""', '"ab"'),
    "time": ("now()",),
    "duration": ("1 second", "0 days; {} = null"),
    "pair": ("{{i: 0, j: 0.0}}",),
    "keyed": ("{{k: 0, v: 0}}",),
    "array": ("new long[2]", "new long[0]"),
    "doubles": ("new double[2]",),
    "nested": ('{{k: 0, in: {{b: true, x: 0.5}}, s: "b"}}',),
    "words": ('{{w: "", x: 1.5, at: now()}}',),
}
OUTPUT_OF = {
    "long": "Y",
    "double": "W",
    "string": "S",
    "boolean": "F",
    "time": "T",
    "pair": "R",
    "array": "L",
}


@dataclass
class Values:
    """Draws expressions and statements; `used` are the variables that stand in the text."""

    draw: Draw
    keys: Mapping[str, str]  # by type what reads the key
    used: dict[str, str] = field(default_factory=dict)
    strings: ClassVar[bool] = True  # their functions and order are drawn, too

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def variable(self, of: str) -> str:
        name: str = self.pick(*VARIABLES[of])
        self.used[name] = of
        return name

    def expression(self, of: str, depth: int, local: tuple[str, ...] = ()) -> str:
        """An `expr` of a type; longs stand where doubles are wanted, too."""
        if depth == 0 or self.pick(True, False):
            return self.simple(of, local)

        def sub(kind: str) -> str:
            return self.expression(kind, depth - 1, local)

        if of == "long":
            op = self.pick("+", "-", "*", "/", "%")
            return self.pick(
                lambda: f"({sub('long')} {op} {sub('long')})",
                lambda: f"{self.variable('array')}[{sub('long')}]",
                lambda: f"length({self.variable('array')})",
                lambda: f"{self.variable('pair')}.i",
                lambda: f"{self.pick('min', 'max')}({sub('long')}, {sub('long')})",
                lambda: f"{self.pick('long', 'round')}({sub('double')})",
                lambda: f"-({sub('long')})",
                lambda: f"abs({sub('long')})",
                lambda: f"({sub('duration')} / {sub('duration')})",
                lambda: f"microseconds({sub('duration')})",
                lambda: f"long({sub('time')})",
                lambda: f"{self.variable('nested')}.k",
                *([lambda: f"length({sub('string')})"] if self.strings else []),
            )()
        if of == "double":
            op = self.pick("+", "-", "*", "/", "%")
            return self.pick(
                lambda: f"({sub('double')} {op} {sub('double')})",
                lambda: f"({sub('double')} {op} {sub('long')})",
                lambda: f"{self.variable('pair')}.j",
                lambda: f"{self.pick('floor', 'ceil', 'sqrt', 'abs')}({sub('double')})",
                lambda: f"{self.variable('doubles')}[{sub('long')}]",
                lambda: f"{self.variable('nested')}.in.x",
                lambda: f"min({sub('double')}, {sub('long')}, {sub('double')})",
                lambda: f"max({sub('double')}, {sub('double')})",
                lambda: f"-({sub('double')})",
            )()
        if of == "boolean":
            one = self.pick("long", "double", "string", "time", "duration")
            ordered = self.strings or one != "string"
            compare = self.pick("==", "!=", *(["<", "<=", ">", ">="] if ordered else []))
            return self.pick(
                lambda: f"({sub(one)} {compare} {sub(one)})",
                lambda: f"({sub('boolean')} {self.pick('&&', '||')} {sub('boolean')})",
                lambda: f"!({sub('boolean')})",
                lambda: f"{self.variable('nested')}.in.b",
                lambda: f"isNull({sub('long')})",
            )()
        if of == "string":
            return self.pick(
                lambda: f"{self.variable('nested')}.s",
                lambda: f"({sub('string')} + {sub('string')})",
                lambda: f"substring({sub('string')}, {sub('long')})",
                lambda: f"string({sub('long')})",
                lambda: f"concat({sub('string')}, string({sub('boolean')}))",
            )()
        if of == "time":
            return self.pick(
                lambda: f"({sub('time')} {self.pick('+', '-')} {sub('duration')})",
                lambda: f"({sub('duration')} + {sub('time')})",
                lambda: f"max({sub('time')}, {sub('time')})",
            )()
        if of == "duration":
            return self.pick(
                lambda: f"({sub('time')} - {sub('time')})",
                lambda: f"({sub('duration')} {self.pick('+', '-')} {sub('duration')})",
                lambda: f"({sub('duration')} * {sub('long')})",
                lambda: f"({sub('double')} * {sub('duration')})",
                lambda: f"{self.pick('min', 'max')}({sub('duration')}, {sub('duration')})",
                lambda: f"-abs({sub('duration')})",
            )()
        return self.simple(of, local)

    def simple(self, of: str, local: tuple[str, ...] = ()) -> str:
        literals: tuple[str, ...] = {
            "long": ("0", "1", "2", *local),
            "double": ("0.0", "1.5"),
            "string": ('""', '"ab"'),
            "time": ("now()",),
            "duration": ("1 microsecond", "2 seconds", "0.5 minutes", "0 days"),
        }.get(of, ())
        literals += (self.keys[of],) if of in self.keys else ()
        literal = self.pick(None, None, *literals)
        return self.variable(of) if literal is None else str(literal)

    def value(self, of: str, local: tuple[str, ...]) -> str:
        """A `value` of a type, for an assignment or an emission."""
        if of == "pair" and self.pick(True, False):
            i, j = self.expression("long", 1, local), self.expression("double", 1, local)
            return f"{{i: {i}, j: {j}}}"
        if of == "nested" and self.pick(True, False):
            k, s = self.expression("long", 1, local), self.expression("string", 1, local)
            b, x = self.expression("boolean", 1, local), self.expression("double", 1, local)
            return f"{{k: {k}, in: {{b: {b}, x: {x}}}, s: {s}}}"
        if of == "array" and self.pick(True, False):
            return f"new long[{self.expression('long', 0, local)}]"
        if self.pick(False, False, False, True):
            condition = self.expression("boolean", 1, local)
            one, two = (self.expression(of, 1, local) for _ in range(2))
            return f"{condition} ? {one} : {two}"
        return self.expression(of, 2, local)

    # Statements -------------------------------------------------------------------------------

    def statement(self, depth: int, local: tuple[str, ...] = ()) -> str:
        kinds = [self.emission, self.emission, self.assignment, self.assignment]
        if depth:
            kinds += [self.conditional, self.loop, self.bounded]
        text: str = self.pick(*kinds)(depth, local)
        return text

    def emission(self, _: int, local: tuple[str, ...]) -> str:
        of = self.pick(None, "long", "long", *OUTPUT_OF)
        return "!> X();" if of is None else f"!> {OUTPUT_OF[of]}({self.value(of, local)});"

    def assignment(self, _: int, local: tuple[str, ...]) -> str:
        of = self.pick(
            *("long", "double", "boolean", "string", "time", "duration", "pair", "nested"),
            *("array", "element", "array", "element", "real", "member", "inner"),
        )
        if of == "real":
            index, value = self.expression("long", 1, local), self.expression("double", 1, local)
            return f"{self.variable('doubles')}[{index}] = {value};"
        if of == "inner":
            return f"{self.variable('nested')}.in.x = {self.expression('double', 1, local)};"
        if of == "element":
            index = self.expression("long", 1, local)
            return f"{self.variable('array')}[{index}] = {self.expression('long', 1, local)};"
        if of == "member":
            return f"{self.variable('pair')}.i = {self.expression('long', 1, local)};"
        return f"{self.variable(of)} = {self.value(of, local)};"

    def conditional(self, depth: int, local: tuple[str, ...]) -> str:
        condition = self.expression("boolean", 1, local)
        then = f"{{ {self.statement(depth - 1, local)} }}"
        if self.pick(True, False):
            return f"{condition} ? {then} : {self.statement(depth - 1, local)}"
        return f"{condition} ? {then}"

    def loop(self, depth: int, local: tuple[str, ...]) -> str:
        name = f"i{len(local)}"
        body = self.statement(depth - 1, (*local, name))
        if self.pick(False, False, True):
            real, total = self.variable("doubles"), self.variable("double")
            return f"for ({name}: {real}) {{ {total} = {total} + {name}; !> W({name}); }}"
        if self.pick(True, False):
            return f"for ({name}: {self.variable('array')}) {body}"
        high = self.pick("1", "2", self.expression("long", 0, local))
        return f"for ({name}: 0, {high}) {body}"

    def bounded(self, depth: int, local: tuple[str, ...]) -> str:
        """A `while` that ends, but for what its body does to `m`."""
        self.used["m"] = "long"
        body = self.statement(depth - 1, local)
        return f"while (m < {self.pick(1, 2, 3)}) {{ m = m + 1; {body} }}"

    def block(self) -> str:
        """One to four statements; mostly the last of them emits."""
        statements = [self.statement(2) for _ in range(self.pick(0, 1, 2, 3))]
        if not statements or self.pick(True, True, False):
            statements.append(self.emission(0, ()))
        return "{ " + " ".join(statements) + " }"


class Compilable(Values):
    """Draws what the engine compiles: no null, no function of strings, no array in a value."""

    strings: ClassVar[bool] = False

    def expression(self, of: str, depth: int, local: tuple[str, ...] = ()) -> str:
        if of == "string":
            inner = f"{self.variable('nested')}.s"
            return inner if depth and self.pick(False, True) else self.simple(of, local)
        return super().expression(of, depth, local)

    def value(self, of: str, local: tuple[str, ...]) -> str:
        if of == "array":
            return str(self.pick("new long[0]", "new long[2]", "new long[3]", self.variable(of)))
        return super().value(of, local)

    def emission(self, _: int, local: tuple[str, ...]) -> str:
        of = self.pick(None, "long", "long", "double", "string", "boolean", "time", "pair")
        return "!> X();" if of is None else f"!> {OUTPUT_OF[of]}({self.value(of, local)});"
