"""What `simulate --compare-contexts` does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tidegate.engine.replay.compare import compare
from tidegate.engine.replay.compare.page import page
from tidegate.engine.replay.compare.table import as_lines, print_table
from tidegate.rules.errors import InputError, Problem, word_place


def show(
    path: Path,
    trace: Path,
    rule: str | None,
    until: str | None,
    html: Path | None,
    *,
    as_json: bool,
    tell: Callable[[str], None],
) -> None:
    """Compare, print, and write the picture where it is asked for; `tell` is called with the
    rulebook's warnings and what does not fit into the picture. Raises `InputError`."""
    compared = compare(path, trace, rule, until, tell)
    if as_json:
        sys.stdout.write(as_lines(compared))
    else:
        print_table(compared)
    if html is None:
        return
    text, left_out = page(compared)
    try:
        html.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"the picture cannot be written: {error.strerror}"
        raise InputError([Problem("unwritable", message, word_place("--html"))]) from error
    for note in left_out:
        tell(f"{html}: {note}")
