"""The places of a script: its markers and blocks, counts expanded, numbered in the order of the
text (`eventscript.md` 3).

`R{i,j}` becomes one chain of j copies of which i are needed, so that no count makes a deep tree:

    A (B | {x = 1;})* C{1,2}      chain( A, loop(either(B, block)), C, C; the last C not needed )
    places                               0               1  2      3  4
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from tidegate.rules.eventscript import tree

PathSet = frozenset["Path"]
Path = int | tuple[int, PathSet, PathSet]
"""A path stands before the marker of a place; or it is inside the pair of a number, `R & S` or
`R - S`, with the paths of both operands."""
NOWHERE: PathSet = frozenset()
NO_PLACES: frozenset[int] = frozenset()


class Reached(NamedTuple):
    """What `enter` and `step` give: paths, whether the text is matched, the places reached."""

    paths: PathSet
    matched: bool
    places: frozenset[int]


MATCHED = Reached(NOWHERE, True, NO_PLACES)
NOTHING = Reached(NOWHERE, False, NO_PLACES)


@dataclass(eq=False, slots=True)
class Part:
    """A part of the regular expression, with the `parts` that it is made of. `number` is the number
    of its place, or of the pair. `index` is its position in its parent."""

    number: int = -1
    parts: list[Part] = field(default_factory=list)
    parent: Part | None = None
    index: int = 0


_ANY, _NOTHING = tree.Named(None), tree.Block(())


@dataclass(eq=False, slots=True)
class Marker(Part):
    tree: tree.Named | tree.Elapse | tree.Arrive = _ANY


@dataclass(eq=False, slots=True)
class Action(Part):
    block: tree.Block = _NOTHING


@dataclass(eq=False, slots=True)
class Chain(Part):
    """Parts in turn; behind the first `needed` it may stop before each."""

    needed: int = 0


@dataclass(eq=False, slots=True)
class Fork(Part):
    """Any one of its parts."""


@dataclass(eq=False, slots=True)
class Loop(Part):
    """Its one part again and again; `skipped`: perhaps never."""

    skipped: bool = False


@dataclass(eq=False, slots=True)
class Pair(Part):
    """`R & S`, or `minus`: `R - S`."""

    minus: bool = False


class Places:
    """All places of a script, and where the text leads from each of them.

    `places[n]` is the marker or block of place n, `pairs[k]` the pair of number k.
    """

    def __init__(self, regex: tree.Regex) -> None:
        self.places: list[Marker | Action] = []
        self.pairs: list[Pair] = []
        self.root = self._part(regex)
        self.enter = cache(self._enter)
        self.after = cache(self._after)
        self.order = cache(self._order)

    # the tree ----------------------------------------------------------------------------------

    def _part(self, regex: tree.Regex) -> Part:
        match regex:
            case tree.Named() | tree.Elapse() | tree.Arrive():
                return self._place(Marker(tree=regex))
            case tree.Act(block):
                return self._place(Action(block=block))
            case tree.Sequence(items):
                return _adopt(Chain(needed=len(items)), map(self._part, items))
            case tree.Either(items):
                return _adopt(Fork(), map(self._part, items))
            case tree.Repeat(item, low, high):
                return self._repeated(item, low, high)
            case tree.Both(left, right) | tree.Without(left, right):
                pair = Pair(number=len(self.pairs), minus=isinstance(regex, tree.Without))
                self.pairs.append(pair)
                return _adopt(pair, map(self._part, (left, right)))
        raise TypeError(regex)

    def _repeated(self, item: tree.Regex, low: int, high: int | None) -> Part:
        if high is not None:
            return _adopt(Chain(needed=low), (self._part(item) for _ in range(high)))
        if low <= 1:
            return _adopt(Loop(skipped=low == 0), [self._part(item)])
        copies = [self._part(item) for _ in range(low - 1)]
        return _adopt(Chain(needed=low), [*copies, _adopt(Loop(), [self._part(item)])])

    def _place(self, part: Marker | Action) -> Part:
        part.number = len(self.places)
        self.places.append(part)
        return part

    # where it leads ----------------------------------------------------------------------------

    def _enter(self, part: Part, *, apart: bool = False) -> Reached:
        """`enter` of section 3; `apart`: `&` and `-` read as `|`."""
        match part:
            case Marker(number=number):
                return Reached(frozenset((number,)), False, NO_PLACES)
            case Action(number=number):
                return Reached(NOWHERE, True, frozenset((number,)))
            case Chain():
                return self._rest(part, 0, apart)
            case Loop(parts=(inner,), skipped=skipped):
                found = self.enter(inner, apart=apart)
                return found._replace(matched=found.matched or skipped)
            case Pair(parts=(left, right)) if not apart:
                return paired(part, self.enter(left), self.enter(right))
            case Fork(parts=parts) | Pair(parts=parts):
                each = [self.enter(inner, apart=apart) for inner in parts]
                return united(*each)
        raise TypeError(part)

    def _rest(self, chain: Chain, first: int, apart: bool) -> Reached:
        """Enter a chain before one of its parts."""
        parts: list[Reached] = []
        matched = first >= len(chain.parts)
        for index in range(first, len(chain.parts)):
            parts.append(self.enter(chain.parts[index], apart=apart))
            last = index + 1 == len(chain.parts)
            matched = matched or index >= chain.needed or (last and parts[-1].matched)
            if not parts[-1].matched:
                break
        return united(*parts)._replace(matched=matched) if parts else MATCHED

    def _after(self, part: Part, *, apart: bool = False) -> Reached:
        """The places at which the text goes on after a part has matched. The search ends at the
        operand of `&` or `-` around the part. `apart`: it goes on to the end of the text, and `&`
        and `-` are read as `|`."""
        parent = part.parent
        if parent is None or (isinstance(parent, Pair) and not apart):
            return MATCHED
        if isinstance(parent, Chain):
            first = self._rest(parent, part.index + 1, apart)
            return go_on(first, self.after(parent, apart=apart)) if first.matched else first
        if isinstance(parent, Loop):
            return go_on(self.enter(part, apart=apart), self.after(parent, apart=apart))
        return self.after(parent, apart=apart)

    def _order(self, places: frozenset[int]) -> tuple[int, ...]:
        """Places that are reached at once, in the order in which they run.

        Only a block is led to: a marker is reached by an event alone. No block leads to itself, so
        there is always one that no other leads to.
        """
        leads = {n: (self.leads(n) & places) - {n} for n in places}
        left = dict.fromkeys(places, 0)
        for reached in leads.values():
            for n in reached:
                left[n] += 1
        found, free = list[int](), [n for n in places if not left[n]]
        heapify(free)
        while free:
            found.append(heappop(free))  # the first in the text
            for n in leads[found[-1]]:
                left[n] -= 1
                if not left[n]:
                    heappush(free, n)
        return tuple(found)

    def leads(self, place: int) -> frozenset[int]:
        """The blocks to which the text leads from behind a place without an event."""
        return self.after(self.places[place], apart=True).places


def paired(pair: Pair, left: Reached, right: Reached) -> Reached:
    """What a pair gives when its operands give this."""
    if pair.minus:
        alive, matched = bool(left.paths), left.matched and not right.matched
    else:
        alive, matched = bool(left.paths and right.paths), left.matched and right.matched
    if not alive and not matched:
        return NOTHING
    paths = frozenset([(pair.number, left.paths, right.paths)]) if alive else NOWHERE
    return Reached(paths, matched, left.places | right.places)


def united(*each: Reached) -> Reached:
    if len(each) == 1:
        return each[0]
    paths = NOWHERE.union(*(one.paths for one in each))
    places = NO_PLACES.union(*(one.places for one in each))
    return Reached(paths, any(one.matched for one in each), places)


def go_on(first: Reached, second: Reached) -> Reached:
    """Both paths and places, and the second's match."""
    return united(first, second)._replace(matched=second.matched)


def _adopt(parent: Part, parts: Iterable[Part]) -> Part:
    parent.parts = [*parts]
    for index, part in enumerate(parent.parts):
        part.parent, part.index = parent, index
    return parent
