"""Event scripts: regular expressions over events, with actions (EventScript, Cohen and Kalleberg,
LCTES 2008). A text becomes a typed tree; every mistake has its line and column."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate.rules.errors import Place, Problem
    from tidegate.rules.eventscript.tree import Program

__all__ = ["MARKERS_MAX", "read"]

MARKERS_MAX = 100_000


def read(
    text: str,
    place: Place | None = None,
    locate: Callable[[int], Place] | None = None,
    markers_max: int = MARKERS_MAX,
) -> tuple[Program, tuple[Problem, ...]]:
    """Read one event script. Returns the program and its warnings.

    `place`: where the first character of the text stands. `locate` maps an offset in `text` to its
    place, and is used instead of `place` if given. `markers_max`: how many markers and blocks there
    may be, counts expanded. Raises `InputError` with every mistake, sorted by place; if the grammar
    refuses the text, with the first one.
    """
    from tidegate.rules.errors import Place
    from tidegate.rules.eventscript.reader import read_script

    return read_script(text, place or Place(), locate, markers_max)
