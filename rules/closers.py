"""Where it can be seen which of several simultaneous c's closes a window of `A*` or `P*` (S4).

The c is no parameter: it only takes part in the order of instances that start together (S1), and is
used up with the window. Where neither can happen, any c that closes the window will do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tidegate.rules import expression as x
from tidegate.rules.model import Context
from tidegate.rules.plain import plain

Window = x.AperiodicStar | x.PeriodicStar


def chosen_closers(
    expression: x.Expression, context: Context | None, rules: Collection[str]
) -> frozenset[x.Expression]:
    """The windows whose c, a composite one, must be the lowest in rank of all instances, and not
    just any: of what the detector works out in `restricted` for a rule with this context (None: a
    selection). `rules`: the rules that may be used as events.
    """
    if context is Context.RESTRICTED:
        return frozenset(_chosen(expression, rules, seen=False))
    counted = (node for node in expression.walk() if isinstance(node, x.Every | x.Nth))
    return frozenset(found for node in counted for found in _chosen(node, rules, seen=True))


def _chosen(node: x.Expression, rules: Collection[str], *, seen: bool) -> Iterator[x.Expression]:
    """`seen`: instances of the node that start together may be compared."""
    match node:
        case x.Plus() | x.Periodic():
            return  # only when there is one is looked at
        case x.Minus(part=part) | x.Aperiodic(part=part):
            yield from _chosen(part, rules, seen=seen)
        case x.Within() | x.Labelled() | x.Seq():
            for part in node.operands():
                yield from _chosen(part, rules, seen=seen)
        case x.Not(opener=opener, closer=closer):
            yield from _chosen(opener, rules, seen=seen)
            yield from _chosen(closer, rules, seen=seen)
        case _:
            if isinstance(node, Window) and not isinstance(node.closer, x.Own):
                together = seen or not _apart(node.opener, rules)
                if together and not plain(node.closer):
                    yield node
            for part in node.operands():
                yield from _chosen(part, rules, seen=True)


def _apart(opener: x.Expression, rules: Collection[str]) -> bool:
    """No two windows start together: each is opened by an instant of its own."""
    names = {node.name for node in opener.walk() if isinstance(node, x.Name)}
    return plain(opener) and not any(name in rules for name in names)
