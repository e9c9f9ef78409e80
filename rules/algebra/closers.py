"""Windows of `A*` and `P*` for which it matters which of several simultaneous c's closes them (S4).

A window is closed by the c that is lowest in rank. The c is no parameter. It is seen in two ways:
instances that start together are compared by it (S1), and it is consumed with the window. Where
neither happens, every c that ends at the instant closes the window alike.
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
    """The windows whose closer is composite and must be the lowest in rank of all its instances.

    They are those of the nodes that run in `restricted` for a rule with this context (None: a
    selection). `rules`: the rules that may be used as events.
    """
    if context is Context.RESTRICTED:
        return frozenset(_chosen(expression, rules, seen=False))
    counted = (node for node in expression.walk() if isinstance(node, x.Every | x.Nth))
    return frozenset(found for node in counted for found in _chosen(node, rules, seen=True))


def _chosen(node: x.Expression, rules: Collection[str], *, seen: bool) -> Iterator[x.Expression]:
    """`seen`: instances of the node that start together are compared."""
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
    names = {node.name for node in opener.walk() if isinstance(node, x.Name)}
    return plain(opener) and not any(name in rules for name in names)
