"""From the text of a script to its tree."""

from __future__ import annotations

from functools import cache

from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.reader import read


@cache
def program(text: str) -> tree.Program:
    """The program of a text. Raises `InputError`."""
    return read(text)[0]
