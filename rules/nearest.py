"""The name that a misspelt word is nearest to."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

KNOWN_MAX = 50  # names that are listed where none is near
COMPARED_MAX = 50  # names that a word is compared with letter by letter


def nearest(word: str, names: Sequence[str]) -> str | None:
    """The known name that was probably meant, None where none is alike."""
    compared = names if len(names) <= COMPARED_MAX else _alike(word, names)
    close = difflib.get_close_matches(word, compared, n=1)
    if close:
        return close[0]
    lower = {name.lower(): name for name in (*compared, *names)}
    close = difflib.get_close_matches(word.lower(), [name.lower() for name in compared], n=1)
    return lower.get(close[0] if close else word.lower())


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or all of them where they are few."""
    names = sorted(map(str, known))
    meant = nearest(word, names)
    if meant:
        return f"did you mean {meant!r}?"
    return f"known: {', '.join(names)}" if 0 < len(names) <= KNOWN_MAX else ""


def _alike(word: str, names: Iterable[str]) -> list[str]:
    """The names that share most pairs of letters with a word."""
    pairs = _pairs(word)
    return heapq.nlargest(COMPARED_MAX, names, lambda name: len(pairs & _pairs(name)))


@lru_cache(maxsize=20_000)
def _pairs(name: str) -> frozenset[str]:
    return frozenset(map("".join, pairwise(f" {name} ")))
