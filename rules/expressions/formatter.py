"""Nodes -> canonical text: `parse(format_expression(e)) == e` for every e that `parse` returns."""

from __future__ import annotations

import re
from functools import singledispatch

from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.clocks import format_clock
from tidegate.rules.expressions.durations import format_duration

_SUFFIXES = (x.Within, x.Minus)
_INFIX = (*_SUFFIXES, x.Or, x.And, x.Seq)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def format_expression(node: x.Expression) -> str:
    """The canonical text of an expression: words for operators, and parentheses wherever operators
    of different levels meet, as in `(a ; b) within 5 min`, needed or not."""
    return _format(node)


@singledispatch
def _format(node: x.Expression) -> str:
    raise TypeError(f"no text for {type(node).__name__}")


def _item(node: x.Expression) -> str:
    text = _format(node)
    return f"({text})" if isinstance(node, _INFIX) else text


def _chained(node: x.Expression, alike: tuple[type[x.Expression], ...]) -> str:
    """The left operand of an operator that groups to the left with those alike."""
    return _format(node) if isinstance(node, alike) else _item(node)


def _listed(nodes: tuple[x.Expression, ...]) -> str:
    return ", ".join(_format(node) for node in nodes)


@_format.register
def _(node: x.Name) -> str:
    return node.name


@_format.register
def _(node: x.Within) -> str:
    return f"{_chained(node.part, _SUFFIXES)} within {format_duration(node.duration)}"


@_format.register
def _(node: x.Minus) -> str:
    return f"{_chained(node.part, _SUFFIXES)} without {_item(node.absent)}"


@_format.register
def _(node: x.Or) -> str:
    return " or ".join(map(_item, node.parts))


@_format.register
def _(node: x.And) -> str:
    return " and ".join(map(_item, node.parts))


@_format.register
def _(node: x.Seq) -> str:
    return f"{_chained(node.first, (x.Seq,))} ; {_item(node.then)}"


@_format.register
def _(node: x.Nth) -> str:
    return f"{_item(node.part)}[{node.index}]"


@_format.register
def _(node: x.Plus) -> str:
    return f"{_item(node.base)} + [{format_duration(node.duration)}]"


@_format.register
def _(node: x.Own) -> str:
    return f"[{format_duration(node.duration)}]"


@_format.register
def _(node: x.AnyOf) -> str:
    return f"any({node.count}, {_listed(node.parts)})"


@_format.register
def _(node: x.AnyRepeat) -> str:
    return f"any({node.count}, {_item(node.part)}*)"


@_format.register
def _(node: x.Every) -> str:
    return f"every({node.count}, {_format(node.part)})"


@_format.register
def _(node: x.Not) -> str:
    return f"not({_format(node.absent)})[{_format(node.opener)}, {_format(node.closer)}]"


@_format.register
def _(node: x.Aperiodic) -> str:
    return f"A({_listed((node.opener, node.part, node.closer))})"


@_format.register
def _(node: x.AperiodicStar) -> str:
    return f"A*({_listed((node.opener, node.part, node.closer))})"


@_format.register
def _(node: x.Periodic) -> str:
    return f"P({_format(node.opener)}, {_tick(node)}, {_format(node.closer)})"


@_format.register
def _(node: x.PeriodicStar) -> str:
    return f"P*({_format(node.opener)}, {_tick(node)}, {_format(node.closer)})"


@_format.register
def _(node: x.Labelled) -> str:
    return f"{node.label}:({_format(node.part)})"


@_format.register
def _(node: x.BeginOf) -> str:
    return f"begin_of {node.name}"


@_format.register
def _(node: x.EndOf) -> str:
    return f"end_of {node.name}"


@_format.register
def _(node: x.Failed) -> str:
    return f"failed {node.name}"


@_format.register
def _(node: x.Clock) -> str:
    return format_clock(node)


@_format.register
def _(node: x.Cron) -> str:
    return f'cron("{node.text}")'


def _tick(node: x.Periodic | x.PeriodicStar) -> str:
    period = f"[{format_duration(node.period)}]"
    if node.sample is None:
        return period
    if _NAME.fullmatch(node.sample):
        return f"{period}: {node.sample}"
    return f'{period}: "{node.sample.replace(chr(34), chr(34) * 2)}"'
