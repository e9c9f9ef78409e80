"""Nodes -> canonical text: `parse(format_expression(e)) == e` for every e that `parse` returns."""

from __future__ import annotations

import re

from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.clock_texts import format_clock
from tidegate.rules.expressions.durations import format_duration

_SUFFIXES = (x.Within, x.Minus)
_INFIX = (*_SUFFIXES, x.Or, x.And, x.Seq)
_EDGES = {x.BeginOf: "begin_of", x.EndOf: "end_of", x.Failed: "failed"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def format_expression(node: x.Expression) -> str:
    """The canonical text of an expression: words for operators, and parentheses wherever operators
    of different levels meet, as in `(a ; b) within 5 min`, needed or not."""
    match node:
        case x.Name(name=name):
            return name
        case x.Within(part=part, duration=duration):
            return f"{_chained(part, _SUFFIXES)} within {format_duration(duration)}"
        case x.Minus(part=part, absent=absent):
            return f"{_chained(part, _SUFFIXES)} without {_item(absent)}"
        case x.Or(parts=parts):
            return " or ".join(map(_item, parts))
        case x.And(parts=parts):
            return " and ".join(map(_item, parts))
        case x.Seq(first=first, then=then):
            return f"{_chained(first, (x.Seq,))} ; {_item(then)}"
        case x.Nth(part=part, index=index):
            return f"{_item(part)}[{index}]"
        case x.Plus(base=base, duration=duration):
            return f"{_item(base)} + [{format_duration(duration)}]"
        case x.Own(duration=duration):
            return f"[{format_duration(duration)}]"
        case x.AnyOf(count=count, parts=parts):
            return f"any({count}, {_listed(*parts)})"
        case x.AnyRepeat(count=count, part=part):
            return f"any({count}, {_item(part)}*)"
        case x.Every(count=count, part=part):
            return f"every({count}, {format_expression(part)})"
        case x.Not(absent=absent, opener=opener, closer=closer):
            return f"not({format_expression(absent)})[{_listed(opener, closer)}]"
        case x.Aperiodic(opener=opener, part=part, closer=closer):
            return f"A({_listed(opener, part, closer)})"
        case x.AperiodicStar(opener=opener, part=part, closer=closer):
            return f"A*({_listed(opener, part, closer)})"
        case x.Periodic(opener=opener, closer=closer):
            return f"P({format_expression(opener)}, {_tick(node)}, {format_expression(closer)})"
        case x.PeriodicStar(opener=opener, closer=closer):
            return f"P*({format_expression(opener)}, {_tick(node)}, {format_expression(closer)})"
        case x.Labelled(label=label, part=part):
            return f"{label}:({format_expression(part)})"
        case x.Edge(name=name):
            return f"{_EDGES[type(node)]} {name}"
        case x.Clock():
            return format_clock(node)
        case x.Cron(text=text):
            return f'cron("{text}")'
    raise TypeError(f"no text for {type(node).__name__}")


def _item(node: x.Expression) -> str:
    text = format_expression(node)
    return f"({text})" if isinstance(node, _INFIX) else text


def _chained(node: x.Expression, alike: tuple[type[x.Expression], ...]) -> str:
    """The left operand of an operator that groups to the left: without parentheses if it is of the
    kinds `alike`."""
    return format_expression(node) if isinstance(node, alike) else _item(node)


def _listed(*nodes: x.Expression) -> str:
    return ", ".join(map(format_expression, nodes))


def _tick(node: x.Periodic | x.PeriodicStar) -> str:
    period = f"[{format_duration(node.period)}]"
    if node.sample is None:
        return period
    if _NAME.fullmatch(node.sample):
        return f"{period}: {node.sample}"
    return f'{period}: "{node.sample.replace(chr(34), chr(34) * 2)}"'
