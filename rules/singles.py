"""Expressions whose every instance is one occurrence: `a or b`, `A(a, b, c)`, `not(b)[a, [d]]`.

Such an instance ends once, so nothing that is used up is missed later, and in no two of them does
an occurrence count twice: all contexts but `cumulative` choose as `restricted` or `unrestricted`.
"""

from __future__ import annotations

from tidegate.rules import expression as x
from tidegate.rules.plain import plain


def single(e: x.Expression) -> x.Expression | None:
    """The event types whose occurrences the instances are, as a part of the expression: each
    passes, or not, at once or a fixed length of time later. None if it is anything else."""
    match e:
        case _ if plain(e):
            leaves = [leaf for leaf in e.walk() if not isinstance(leaf, x.Labelled | x.Or)]
            return e if len({*leaves}) == len(leaves) else None
        case x.Labelled(part=part) | x.Within(part=part) | x.Minus(part=part):
            return single(part)
        case x.Aperiodic(part=part):
            return single(part)
        case (
            x.Seq(first=opener, then=x.Own(duration=duration))
            | x.Not(opener=opener, closer=x.Own(duration=duration))
        ) if not duration.months:
            return single(opener)
    return None
