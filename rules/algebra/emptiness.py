"""Expressions that have no instance in any history."""

from __future__ import annotations

from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.parser import unlabelled


def fires_never(node: x.Expression) -> bool:
    """Whether an expression has no instance in any history, as far as its form shows."""
    match node:
        case x.Not():
            inside = _holds(unlabelled(node.closer), unlabelled(node.absent))
            return inside or fires_never(node.opener) or fires_never(node.closer)
        case x.Minus():
            inside = _holds(unlabelled(node.part), unlabelled(node.absent))
            return inside or fires_never(node.part)
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


def takes_time(node: x.Expression) -> bool:
    """Whether every instance ends later than it starts, as far as the form shows."""
    match node:
        case x.Seq() | x.Not() | x.AperiodicStar() | x.PeriodicStar():
            return True
        case x.Or(parts=parts):
            return all(takes_time(part) for part in parts)
        case x.And(parts=parts):
            return any(takes_time(part) for part in parts)
        case x.AnyOf(count=count, parts=parts):
            return sum(map(takes_time, parts)) > len(parts) - min(count, len(parts))
        case (
            x.Minus(part=part)
            | x.Within(part=part)
            | x.Labelled(part=part)
            | x.Nth(part=part)
            | x.Every(part=part)
            | x.AnyRepeat(part=part)
            | x.Aperiodic(part=part)
        ):
            return takes_time(part)
        case _:
            return False


def _holds(node: x.Expression, part: x.Expression) -> bool:
    """Whether every instance of a node has one of `part` wholly inside, as far as its form
    shows."""
    if node == part:
        return True
    if isinstance(part, x.Or) and any(_holds(node, one) for one in part.parts):
        return True
    match node:
        case x.Or(parts=parts):
            return all(_holds(one, part) for one in parts)
        case x.AnyOf(count=count, parts=parts):
            return sum(_holds(one, part) for one in parts) > len(parts) - min(count, len(parts))
        case x.And() | x.Seq() | x.Every() | x.AnyRepeat() | x.Within() | x.Nth():
            return any(_holds(one, part) for one in node.operands())
        case x.Minus(part=inner) | x.Aperiodic(part=inner):
            return _holds(inner, part)
        case x.Not() | x.AperiodicStar() | x.PeriodicStar():
            return _holds(node.opener, part) or _holds(node.closer, part)
        case _:
            return False
