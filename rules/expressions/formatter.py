"""Nodes -> text: `parse(format_expression(e)) == e` for every e that `parse` returns, and so for
`format_written(e)`, which has the plain names that e was written with."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import ode
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.clock_texts import format_clock
from tidegate.rules.expressions.durations import format_duration

_SUFFIXES = (x.Within, x.Minus)
_INFIX = (*_SUFFIXES, x.Or, x.And, x.Seq)
_EDGES = {
    x.BeginOf: "begin_of",
    x.EndOf: "end_of",
    x.Failed: "failed",
    x.Resolved: "resolved",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PLAIN_SCALAR = re.compile(r"[A-Za-z0-9_(](?:[^:#,\[\]{}\n]*[^:#,\[\]{}\s])?")
"""What YAML reads inside { } and [ ] as it is."""


def format_expression(node: x.Expression) -> str:
    """The canonical text of an expression: words for operators, and parentheses wherever operators
    of different levels meet, as in `(a ; b) within 5 min`, needed or not. Digests hold it."""
    return _CANONICAL.text(node)


def format_written(node: x.Expression) -> str:
    """The same for people: with the plain names that were written, as in `during(a, b, c)`."""
    return _WRITTEN.text(node)


@dataclass(frozen=True, slots=True)
class _Formatter:
    """Writes expressions. `named`: with the plain names that were written."""

    named: bool

    def text(self, node: x.Expression) -> str:
        if self.named and node.word in ode.WORDS and (given := ode.written(node)) is not None:
            said = (str(one) if isinstance(one, int) else self.text(one) for one in given)
            return f"{node.word}({', '.join(said)})"
        match node:
            case x.Name(name=name):
                return name
            case x.Within(part=part, duration=duration):
                return f"{self._chained(part, _SUFFIXES)} within {format_duration(duration)}"
            case x.Minus(part=part, absent=absent):
                return f"{self._chained(part, _SUFFIXES)} without {self._item(absent)}"
            case x.Or(parts=parts):
                return " or ".join(map(self._item, parts))
            case x.And(parts=parts):
                return " and ".join(map(self._item, parts))
            case x.Seq(first=first, then=then):
                return f"{self._chained(first, (x.Seq,))} ; {self._item(then)}"
            case x.Instant(part=part):
                return f"instant({self.text(part)})"
            case x.Nth(part=part, index=index):
                return f"{self._item(part)}[{index}]"
            case x.Plus(base=base, duration=duration):
                return f"{self._item(base)} + [{format_duration(duration)}]"
            case x.Own(duration=duration):
                return f"[{format_duration(duration)}]"
            case x.AnyOf(count=count, parts=parts):
                return f"any({count}, {self._listed(*parts)})"
            case x.AnyRepeat(count=count, part=part):
                return f"any({count}, {self._item(part)}*)"
            case x.Every(count=count, part=part):
                return f"every({count}, {self.text(part)})"
            case x.Not(opener=opener, closer=x.Own(duration=d)) if self._says_no(node):
                begun = self._chained(opener, (x.Seq,))
                return f"{begun} then no {self._item(node.absent)} for {format_duration(d)}"
            case x.Not(absent=absent, opener=opener, closer=closer):
                return f"not({self.text(absent)})[{self._listed(opener, closer)}]"
            case x.Aperiodic(opener=opener, part=part, closer=closer):
                return f"{self._word(node, 'A')}({self._listed(opener, part, closer)})"
            case x.AperiodicStar(opener=opener, part=part, closer=closer):
                return f"{self._word(node, 'A*')}({self._listed(opener, part, closer)})"
            case (
                x.Periodic(opener=opener, closer=closer)
                | x.PeriodicStar(opener=opener, closer=closer)
            ):
                sign = "P*" if isinstance(node, x.PeriodicStar) else self._word(node, "P")
                return f"{sign}({self.text(opener)}, {_tick(node)}, {self.text(closer)})"
            case x.Labelled(label=label, part=part):
                return f"{label}:({self.text(part)})"
            case x.Edge(name=name):
                return f"{_EDGES[type(node)]} {name}"
            case x.Clock():
                return format_clock(node)
            case x.Cron(text=text):
                return f'cron("{text}")'
            case w.Window():
                return _flow(self._fields(node))
        raise TypeError(f"no text for {type(node).__name__}")

    def _fields(self, node: w.Window) -> _Fields:
        """What is written of a window in YAML, by key."""
        match node:
            case w.Tumbling(part=part, length=length):
                return {"window": format_duration(length), "of": self._several(part)}
            case w.Sliding(part=part, length=length, every=every):
                lengths = {"window": format_duration(length), "every": format_duration(every)}
                return {**lengths, "of": self._several(part)}
            case w.Session(part=part, gap=gap):
                return {"session": format_duration(gap), "of": self._several(part)}
            case w.Crossing(part=part, length=length, fire=fire, rearm=rearm):
                over: _Fields = {"window": format_duration(length), "of": self._several(part)}
                asked = {"fire": fire.text} | ({"rearm": rearm.text} if rearm else {})
                return {"over": {**over, **asked}}
            case w.Holding(begun=begun, ended=ended, length=length, keep=keep):
                kept = {"keep": format_duration(keep)} if keep.micros else {}
                holds: _Fields = {"holds": self._several(begun), "until": self._several(ended)}
                return {**holds, "for": format_duration(length), **kept}
        raise TypeError(f"no text for {type(node).__name__}")

    def _several(self, node: x.Expression) -> str | list[str]:
        if isinstance(node, x.Or):
            return [*map(self.text, node.parts)]
        return self.text(node)

    def _word(self, node: x.Expression, sign: str) -> str:
        return node.word if self.named and node.word else sign

    def _says_no(self, node: x.Expression) -> bool:
        """Whether a `not` was written `a then no b for 5 min`."""
        return self.named and node.word == "no"

    def _item(self, node: x.Expression) -> str:
        text = self.text(node)
        if node.word in ode.WORDS and text.startswith(f"{node.word}("):
            return text
        return f"({text})" if isinstance(node, _INFIX) or self._says_no(node) else text

    def _chained(self, node: x.Expression, alike: tuple[type[x.Expression], ...]) -> str:
        """The left operand of an operator that groups to the left: without parentheses if it is of
        the kinds `alike`."""
        return self.text(node) if isinstance(node, alike) else self._item(node)

    def _listed(self, *nodes: x.Expression) -> str:
        return ", ".join(map(self.text, nodes))


_Fields = dict[str, "str | list[str] | _Fields"]


def _flow(value: str | list[str] | _Fields) -> str:
    """A value as YAML in flow style: `{window: 5 min, of: [placed, paid]}`."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(of)}" for key, of in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return value if PLAIN_SCALAR.fullmatch(value) else "'" + value.replace("'", "''") + "'"


_CANONICAL, _WRITTEN = _Formatter(named=False), _Formatter(named=True)


def _tick(node: x.Periodic | x.PeriodicStar) -> str:
    period = f"[{format_duration(node.period)}]"
    if node.sample is None:
        return period
    if _NAME.fullmatch(node.sample):
        return f"{period}: {node.sample}"
    return f'{period}: "{node.sample.replace(chr(34), chr(34) * 2)}"'
