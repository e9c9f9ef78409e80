"""Cases kept as text: one a line, `#` lines are titles and comments."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def cases(file: str, separator: str) -> list[object]:
    """The cases of a text fixture, split at the separator, each named by its left side."""
    lines = (FOLDER / file).read_text(encoding="utf-8").splitlines()
    found = []
    for line in lines:
        if line.strip() and not line.startswith("#"):
            left, _, right = line.partition(separator)
            found.append(pytest.param(left, right, id=left.replace(" ", "")))
    return found
