"""A script's regular expression with its counts written out, and the order of its places.

Every copy of a marker or block is a place of its own, numbered in the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from tidegate.rules.eventscript import tree


@dataclass(frozen=True)
class Marker:
    number: int
    source: tree.Named | tree.Elapse | tree.Arrive


@dataclass(frozen=True)
class Action:
    number: int
    block: tree.Block


@dataclass(frozen=True)
class Empty:
    """What `R{0}` leaves."""


@dataclass(frozen=True)
class Then:
    left: Part
    right: Part


@dataclass(frozen=True)
class Or:
    left: Part
    right: Part


@dataclass(frozen=True)
class Optional:
    """`R?`"""

    item: Part


@dataclass(frozen=True)
class Some:
    """`R+`"""

    item: Part


@dataclass(frozen=True)
class Many:
    """`R*`"""

    item: Part


@dataclass(frozen=True)
class And:
    number: int
    left: Part
    right: Part


@dataclass(frozen=True)
class But:
    """`R - S`"""

    number: int
    left: Part
    right: Part


Part = Marker | Action | Empty | Then | Or | Optional | Some | Many | And | But


def expand(regex: tree.Regex) -> Part:
    """The counts of `regex` written out as copies (page, 3: the paragraph on counts)."""
    return _expand(regex, count())


def _expand(regex: tree.Regex, numbers: Iterator[int]) -> Part:
    def again(item: tree.Regex) -> Part:
        return _expand(item, numbers)

    match regex:
        case tree.Named() | tree.Elapse() | tree.Arrive():
            return Marker(next(numbers), regex)
        case tree.Act():
            return Action(next(numbers), regex.block)
        case tree.Sequence():
            return _row([again(item) for item in regex.items])
        case tree.Either():
            first, *rest = [again(item) for item in regex.items]
            for item in rest:
                first = Or(first, item)
            return first
        case tree.Both():
            return And(next(numbers), again(regex.left), again(regex.right))
        case tree.Without():
            return But(next(numbers), again(regex.left), again(regex.right))
        case tree.Repeat(item, 0, None):
            return Many(again(item))
        case tree.Repeat(item, low, None):
            return _row([*[again(item) for _ in range(low - 1)], Some(again(item))])
        case tree.Repeat(item, low, int(high)):
            copies = [again(item) for _ in range(high)]
            return _row([*copies[:low], *_optional(copies[low:])])
    raise TypeError(regex)


def _row(parts: list[Part]) -> Part:
    if not parts:
        return Empty()
    first, *rest = parts
    for part in rest:
        first = Then(first, part)
    return first


def _optional(copies: list[Part]) -> list[Part]:
    """`(R (R ..)?)?`"""
    if not copies:
        return []
    return [Optional(_row([copies[0], *_optional(copies[1:])]))]


def places(part: Part) -> dict[int, Marker | Action]:
    """All markers and blocks by number, in the order of the text."""
    match part:
        case Marker() | Action():
            return {part.number: part}
        case Empty():
            return {}
        case Optional() | Some() | Many():
            return places(part.item)
    return places(part.left) | places(part.right)


# The order of places --------------------------------------------------------------------------

Blocks = frozenset[int]


def front(part: Part) -> tuple[Blocks, bool]:
    """The blocks that the text leads to from in front of `part` without an event, and whether it
    leads behind `part`. `&` and `-` are read as `|`."""
    match part:
        case Marker():
            return frozenset(), False
        case Action():
            return frozenset({part.number}), True
        case Empty():
            return frozenset(), True
        case Some():
            return front(part.item)
        case Optional() | Many():
            return front(part.item)[0], True
    left, left_through = front(part.left)
    right, right_through = front(part.right)
    if isinstance(part, Then):
        return (left | right, right_through) if left_through else (left, False)
    return left | right, left_through or right_through


def leads_to(part: Part, behind: Blocks = frozenset()) -> dict[int, Blocks]:
    """For each place the blocks that the text leads to from behind it without an event; `behind`
    holds those that it leads to from behind `part`. Nothing leads to a marker without an event."""
    match part:
        case Marker() | Action():
            return {part.number: behind}
        case Empty():
            return {}
        case Optional():
            return leads_to(part.item, behind)
        case Some() | Many():
            return leads_to(part.item, behind | front(part.item)[0])
        case Then():
            blocks, through = front(part.right)
            between = blocks | behind if through else blocks
            return leads_to(part.left, between) | leads_to(part.right, behind)
    return leads_to(part.left, behind) | leads_to(part.right, behind)


def in_order(reached: frozenset[int], leads: dict[int, Blocks]) -> list[int]:
    """The reached places as they run: each time the first in the text that no other of those not
    yet run leads to. No block may lead to itself."""
    waiting, order = sorted(reached), list[int]()
    while waiting:
        free = [b for b in waiting if not any(b in leads[a] for a in waiting)]
        order.append(free[0])
        waiting.remove(free[0])
    return order
