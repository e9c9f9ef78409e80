"""Windows of `A*` and `P*` for which it matters which of several simultaneous c's closes them (S4).

The c of the lowest rank closes a window. It is no parameter, but two things depend on it: it is
compared where instances start together (S1), and it is consumed with the window. Where neither
happens, any c of that instant closes the window with the same effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tidegate.rules.algebra.plain_expressions import plain
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Context

Window = x.AperiodicStar | x.PeriodicStar


def chosen_closers(
    expression: x.Expression, context: Context | None, rules: Collection[str]
) -> frozenset[x.Expression]:
    """The windows whose closer is composite and must be the one of the lowest rank.

    Only nodes that run in `restricted` for a rule with this context (None: a selection) have such
    windows. `rules`: the rules that may be used as events.
    """
    if context is Context.RESTRICTED:
        return frozenset(_chosen(expression, rules, seen=False))
    counted = (node for node in expression.walk() if isinstance(node, x.Every | x.Nth))
    return frozenset(found for node in counted for found in _chosen(node, rules, seen=True))


def _chosen(node: x.Expression, rules: Collection[str], *, seen: bool) -> Iterator[x.Expression]:
    """The windows in a node. `seen`: instances of the node that start together are compared."""
    match node:
        case x.Plus() | x.Periodic():
            return  # only the instants of their instances count
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
    """Whether no two windows start together."""
    return plain(opener) and x.names_in(opener).isdisjoint(rules)
