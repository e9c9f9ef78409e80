"""How much context `recent` carries where a later occurrence is always preferred."""

from __future__ import annotations

from collections.abc import Collection

from tidegate.rules.algebra.amount import Amount
from tidegate.rules.algebra.transformation import longest_micros, loosened, shorter
from tidegate.rules.expressions import nodes as x


def unused(
    expression: x.Expression, keyed: Collection[str], rules: Collection[str]
) -> Amount | None:
    """The occurrences that are not consumed and can still be in a detection, at most.

    These are the last occurrence of each event type, and the last one before each pending start of
    what must follow it. Where all instances share an event type, they never make up an instance:
    it would have been detected and consumed.

    None where more can matter: an event type stands in two places, a part is filtered, keyed and
    broadcast events are mixed, or a rule of `rules` is used as an event. `keyed`: the keyed event
    types.
    """
    whole, longest = expression, None
    while isinstance(whole, x.Within):
        longest = shorter(longest, longest_micros(whole.duration))
        whole = whole.part
    whole = loosened(whole, longest)
    events = [node for node in whole.walk() if not node.operands()]
    names = {node.name for node in events if isinstance(node, x.Name)}
    flat = all(isinstance(node, _FLAT) for node in whole.walk())
    once = len({*events}) == len(events) and not any(name in rules for name in names)
    alike = len({isinstance(node, x.Name) and node.name in keyed for node in events}) == 1
    if not (flat and once and alike):
        return None
    missing = _missing(whole, lasting=False) if _in_common(whole) else 0
    return Amount(_kept(whole, 0, lasting=False)[0] - missing)


_FLAT = x.Name | x.Clock | x.Cron | x.Or | x.And | x.AnyOf | x.Seq


def _kept(node: x.Expression, before: int, *, lasting: bool) -> tuple[int, int]:
    """Occurrences kept, and their pending starts. What follows has `before` pending starts. An
    occurrence that can only end an instance (not `lasting`) is not kept."""
    if isinstance(node, x.Seq):
        last, starts = _kept(node.then, before, lasting=lasting)
        kept, starts = _kept(node.first, starts, lasting=True)
        return kept + last, starts
    parts = node.operands()
    if not parts:
        kept = before + 1 if lasting else 0
        return kept, kept
    found = [_kept(part, before, lasting=lasting or _needed(node) > 1) for part in parts]
    return sum(kept for kept, _ in found), sum(starts for _, starts in found)


def _missing(node: x.Expression, *, lasting: bool) -> int:
    """How many of the occurrences kept are missing while there is no instance."""
    if isinstance(node, x.Seq):
        return _missing(node.first, lasting=True) * _missing(node.then, lasting=lasting)
    parts = node.operands()
    if not parts:
        return int(lasting)
    needed = _needed(node)
    each = sorted(_missing(part, lasting=lasting or needed > 1) for part in parts)
    return sum(each[: len(parts) - needed + 1])


def _in_common(node: x.Expression) -> bool:
    """Whether all instances share an event type."""
    parts = node.operands()
    if not isinstance(node, x.Seq) and _needed(node) < len(parts):
        return False
    return not parts or any(map(_in_common, parts))


def _needed(node: x.Expression) -> int:
    """How many operands an instance of `or`, `and` or `any` has instances of."""
    parts = node.operands()
    if isinstance(node, x.Or):
        return 1
    return min(node.count, len(parts)) if isinstance(node, x.AnyOf) else len(parts)
