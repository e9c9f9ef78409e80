"""What `simulate --compare-contexts` does: a comparison as a table for people, as JSON lines, or as
a page."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.engine.core.text.files import write_whole
from tidegate.engine.core.text.layout import screen_width
from tidegate.engine.core.text.printable import printable
from tidegate.engine.replay.changes import Schemas
from tidegate.engine.replay.compare import compare
from tidegate.engine.replay.compare.labels import MEANINGS, Labels, key_label
from tidegate.engine.replay.compare.model import ComparedDetection, Comparison
from tidegate.engine.replay.compare.page import page
from tidegate.rules.errors import InputError, Problem, word_place
from tidegate.rules.model import Context

_WIDTH = 12  # of a column: six of them fit on a terminal


def show(
    path: Path,
    trace: Path,
    rule: str | None,
    until: str | None,
    html: Path | None,
    *,
    as_json: bool,
    tell: Callable[[str], None],
    schemas: Schemas,
) -> None:
    """Compare, print, and write the picture where it is asked for; `tell` is called with the
    rulebook's warnings and what does not fit into the picture. `schemas`: of tables whose changes
    are lines. Raises `InputError`."""
    compared = compare(path, trace, rule, until, tell, schemas)
    if as_json:
        sys.stdout.write(as_lines(compared))
    else:
        print_table(compared)
    if html is None:
        return
    text, left_out = page(compared)
    try:
        write_whole(html, text)
    except OSError as error:
        message = f"the picture cannot be written: {error.strerror}"
        raise InputError([Problem("unwritable", message, word_place("--html"))]) from error
    for note in left_out:
        tell(f"{html}: {note}")


def as_lines(compared: Comparison) -> str:
    """A JSON line a detection: as `simulate` prints it, with `context` first and `used_up` last;
    for a context that cannot be detected `context` and `error`."""
    lines = []
    for column in compared.columns:
        head = f'{{"context":"{column.context}",'
        if column.error:
            lines.append(
                f'{head}"rule":"{compared.rule.name}","error":{json.dumps(column.error)}}}'
            )
        lines += [f'{head}{f.text[1:-1]},"used_up":{f.used_up_text}}}' for f in column.found]
    return "".join(line + "\n" for line in lines)


def print_table(compared: Comparison) -> None:
    """A row for each instant and key at which some context detects, a column for each context."""
    labels = Labels(compared)
    console = Console(width=screen_width())
    when = {
        (at, key): "\n".join(filter(None, [labels.time(at), key_label(key)]))
        for at, key in compared.instants()
    }
    first = max((cell_len(line) for text in when.values() for line in text.split("\n")), default=2)
    fits = first + len(Context) * (_WIDTH + 1) <= console.width
    title = Text(f"{compared.rule.name}: {' '.join(compared.rule.pattern.text.split())}")
    made = Table(title=title, title_justify="left", show_lines=True, show_edge=False, padding=0)
    made.box = box.SIMPLE_HEAD
    made.add_column("at", overflow="fold")
    for column in compared.columns:
        own = "\n(its own)" if column.context is compared.rule.pattern.context else ""
        width = _WIDTH if fits else None
        made.add_column(f"{column.context}{own}", overflow="fold", min_width=width)
    if any(column.error for column in compared.columns):
        errors = (Text(column.error, "red") for column in compared.columns)
        made.add_row("", *errors)
    for at, text in when.items():
        cells = []
        for column in compared.columns:
            cell = Text()
            for found in column.found:
                if (found.end, found.key) == at:
                    cell.append("\n" if cell else "")
                    cell.append(_cell(found, labels))
            cells.append(cell)
        made.add_row(Text(printable(text)), *cells)
    console.print(made)
    if not compared.instants():
        print("nothing is detected in any context")
    print("● detected   ✗ then consumed" + (f"   {labels.note}" if labels.note else ""))
    for context, (detected, used) in MEANINGS.items():
        print(f"{context:>12}: {detected}; {used}")


def _cell(found: ComparedDetection, labels: Labels) -> Text:
    every = (*found.constituents, *found.used_up)
    longest = max((len(labels.occurrence(o)) for o in every), default=0)
    named = labels.occurrences if longest < _WIDTH else labels.grouped
    cell = Text(printable(f"● {labels.detected(found, named(found.constituents))}"))
    if found.used_up:
        cell.append(printable(f"\n✗ {named(found.used_up)}"), "dim")
    return cell
