"""Event scripts: regular expressions over events, with actions (EventScript, Cohen and Kalleberg,
LCTES 2008). From a text to a typed tree, every mistake with its line and column."""

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
    """Read one event script: the program, and what is doubtful about it.

    `place` is where the text's first character stands; `locate`, if given, maps an offset in `text`
    to its place instead. `markers_max`: markers and blocks, counts expanded. Raises `InputError`
    with every mistake, sorted by place; where the grammar refuses the text, with the first.
    """
    from tidegate.rules.errors import Place
    from tidegate.rules.eventscript.reader import read_script

    return read_script(text, place or Place(), locate, markers_max)
