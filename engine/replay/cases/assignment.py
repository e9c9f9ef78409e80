"""Assigns expected rows to rows that were found, as multisets.

Example: expected are {a: 1} and {a: 1, b: 2}, found (1, 2) and (1, 3). The first is (1, 3), though
it would also fit (1, 2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

NEAREST_MAX = 200  # rows of which the nearest is looked for: nobody reads more


def assigned(wanted: int, found: int, fits: Callable[[int, int], bool]) -> dict[int, int]:
    """By number of a wanted row, that of the found row that it is: as many as possible."""
    known: dict[tuple[int, int], bool] = {}
    owner: dict[int, int] = {}

    def fit(a: int, b: int) -> bool:
        if (a, b) not in known:
            known[a, b] = fits(a, b)
        return known[a, b]

    for row in range(wanted):
        _take(row, found, fit, owner)
    return {a: b for b, a in owner.items()}


def _take(row: int, found: int, fit: Callable[[int, int], bool], owner: dict[int, int]) -> None:
    """Give a wanted row a found one; others may move to another (an augmenting path)."""
    came_from: dict[int, int | None] = {}  # by found row, the one that its taker gives up
    line: list[tuple[int, int | None]] = [(row, None)]
    for taker, given_up in line:
        order = [taker, *range(found)] if taker < found else range(found)
        for b in order:
            if b in came_from or not fit(taker, b):
                continue
            came_from[b] = given_up
            if b in owner:
                line.append((owner[b], b))
                continue
            at: int | None = b
            while at is not None:
                before = came_from[at]
                owner[at] = row if before is None else owner[before]
                at = before
            return


def nearest(
    wanted: Sequence[int], found: Sequence[int], score: Callable[[int, int], float]
) -> dict[int, int]:
    """By number of a wanted row, that of the found row that is most like it, each used once. Pairs
    of a score of 0 are left out."""
    scores = [(-score(a, b), a, b) for a in wanted[:NEAREST_MAX] for b in found[:NEAREST_MAX]]
    pairs: dict[int, int] = {}
    used: set[int] = set()
    for negative, a, b in sorted(scores):
        if negative < 0 and a not in pairs and b not in used:
            pairs[a] = b
            used.add(b)
    return pairs
