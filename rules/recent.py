"""How much context `recent` stores where a detection takes one occurrence of each event type."""

from __future__ import annotations

from collections.abc import Collection

from rules import expression as x
from rules.amount import Amount
from rules.parser import unlabelled


def unused(
    expression: x.Expression, keyed: Collection[str], rules: Collection[str]
) -> Amount | None:
    """The occurrences that are not used up yet and can still matter: the last of each event type,
    and the last one before each start that what must follow it may have. None where that is not
    enough: some instances lack an event type, or hold two occurrences of one, or a part is
    filtered; or keyed and broadcast events are mixed. `keyed`: the keyed event types; `rules`:
    the rules that may be used as events.
    """
    node = unlabelled(expression)
    while isinstance(node, x.Within):
        node = node.part
    events = [below for below in node.walk() if not list(below.operands())]
    names = [event.name for event in events if isinstance(event, x.Name)]
    plain = all(isinstance(below, x.Name | x.And | x.Seq) for below in node.walk())
    once = len({*names}) == len(events) and {*names}.isdisjoint(rules)
    alike = len({name in keyed for name in names}) == 1
    return Amount(_kept(node, 0, lasting=False)[0]) if plain and once and alike else None


def _kept(node: x.Expression, before: int, *, lasting: bool) -> tuple[int, int]:
    """Occurrences, and pending starts, where `before` starts of what follows are known. What only
    ever ends an instance (not `lasting`) is not kept."""
    match node:
        case x.Seq(first=first, then=then):
            last, starts = _kept(then, before, lasting=lasting)
            kept, starts = _kept(first, starts, lasting=True)
            return kept + last, starts
        case x.And(parts=parts):
            found = [_kept(part, before, lasting=True) for part in parts]
            return sum(kept for kept, _ in found), sum(starts for _, starts in found)
        case _:
            kept = before + 1 if lasting else 0
            return kept, kept
