"""The one way in which input is refused: a code, a message, a place and a remedy."""

from __future__ import annotations

import difflib
import heapq
import re
import textwrap
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

WIDTH = 100  # columns of a remedy
SHOWN_MAX = 5  # other places of a problem
KNOWN_MAX = 60  # names that are listed where none is near
COMPARED_MAX = 50  # names that a word is compared with letter by letter
_INDENTED: dict[str, Any] = {
    "initial_indent": "    ",
    "subsequent_indent": "    ",
    "break_long_words": False,
    "break_on_hyphens": False,
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a text. Lines and columns count from 1. For a word of a command
    line or a whole file they are 0. `path` is dotted: `rules.late.on`."""

    file: str = "<text>"
    line: int = 1
    column: int = 1
    path: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


def places(text: str, first: Place) -> Callable[[int], Place]:
    """The place of each offset of a text whose first character is at `first`."""
    begins = [0, *(found.end() for found in re.finditer("\n", text))]

    def at(offset: int) -> Place:
        line = bisect_right(begins, offset) - 1
        column = offset - begins[line] + (1 if line else first.column)
        return Place(first.file, first.line + line, column, first.path)

    return at


def word_place(word: str, path: str = "") -> Place:
    """The place of an option or argument of a command line (`word` is its name) or a whole file."""
    return Place(word, 0, 0, path)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong (or, in a list of warnings, doubtful) about an input.

    `code` is a stable kebab-case word for tests and scripts. `message` says what is wrong, `hint`
    the remedy. `excerpt` is the offending text, underlined, if there is one. `others`: more places
    with the same problem.
    """

    code: str
    message: str
    place: Place
    hint: str = ""
    excerpt: str = ""
    others: tuple[Place, ...] = ()

    def __str__(self) -> str:
        where = f" ({self.place.path})" if self.place.path else ""
        lines = [f"{self.place}: {self.message}{where}"]
        if self.excerpt:
            lines += ["    " + line for line in self.excerpt.splitlines()]
        for line in self.hint.split("\n") if self.hint else ():
            lines += textwrap.wrap(line, WIDTH, **_INDENTED)
        if self.others:
            lines += textwrap.wrap(f"the same at {self._elsewhere()}", WIDTH, **_INDENTED)
        return "\n".join(lines)

    def _elsewhere(self) -> str:
        """`9:14, 10:14 and 30 more`."""
        shown = ", ".join(f"{at.line}:{at.column}" for at in self.others[:SHOWN_MAX])
        more = len(self.others) - SHOWN_MAX
        return f"{shown} and {more} more" if more > 0 else shown


class TidegateError(Exception):
    """Base of every error tidegate raises on purpose. `exit_code` is that of `language.md` 3."""

    exit_code = 3


class InputError(TidegateError):
    """The input is wrong. `problems` has every problem found, `warnings` what is doubtful. Nothing
    has been changed."""

    exit_code = 1

    def __init__(self, problems: Sequence[Problem], warnings: Sequence[Problem] = ()) -> None:
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)
        super().__init__("\n".join(str(p) for p in self.problems))

    def __reduce__(self) -> tuple[object, ...]:
        """It may come back from another process."""
        return type(self), (self.problems, self.warnings)


class EngineError(TidegateError):
    """The engine stopped. `code` is kebab-case, `hint` the remedy; cursors and entries stay."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        self.code = code
        self.message = message
        self.hint = hint
        super().__init__(f"{message}\n    {hint}" if hint else message)

    def __reduce__(self) -> tuple[object, ...]:
        """It may come back from another process."""
        return type(self), (self.code, self.message, self.hint)


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems ordered by place, without duplicates."""
    unique = dict.fromkeys(problems)
    return tuple(sorted(unique, key=lambda p: (p.place.file, p.place.line, p.place.column)))


def nearest(word: str, names: Sequence[str]) -> str | None:
    """The known name that was probably meant; None if none is similar."""
    compared = names if len(names) <= COMPARED_MAX else _alike(word, names)
    close = difflib.get_close_matches(word, compared, n=1)
    if close:
        return close[0]
    lower = {name.lower(): name for name in (*compared, *names)}
    close = difflib.get_close_matches(word.lower(), [name.lower() for name in compared], n=1)
    return lower.get(close[0] if close else word.lower())


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint with the nearest known word, or with all known words if they are few."""
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
