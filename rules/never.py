"""Expressions that have no instance in any history."""

from __future__ import annotations

from rules import expression as x
from rules.parser import unlabelled


def fires_never(node: x.Expression) -> bool:
    """Whether an expression has no instance in any history, as far as its form shows."""
    match node:
        case x.Not():
            closer, absent = unlabelled(node.closer), unlabelled(node.absent)
            return closer == absent or fires_never(node.opener) or fires_never(node.closer)
        case x.Minus():
            return unlabelled(node.part) == unlabelled(node.absent) or fires_never(node.part)
        case x.Or():
            return all(fires_never(part) for part in node.parts)
        case x.And():
            return any(fires_never(part) for part in node.parts)
        case x.Seq():
            return fires_never(node.first) or fires_never(node.then)
        case x.Within() | x.Labelled() | x.Nth() | x.Every() | x.AnyRepeat():
            return fires_never(node.part)
        case x.Plus():
            return fires_never(node.base)
        case x.Aperiodic():
            return fires_never(node.opener) or fires_never(node.part)
        case x.Periodic():
            return fires_never(node.opener)
        case x.AperiodicStar() | x.PeriodicStar():
            return fires_never(node.opener) or fires_never(node.closer)
        case _:
            return False
