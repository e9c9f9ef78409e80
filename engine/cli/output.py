"""What commands print: results on stdout, as tables for people or as JSON lines for programs.

All output goes through here, where control characters are escaped: no value of a table or a file
can act on the terminal.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import IO, TYPE_CHECKING, Any

import click
import orjson

from tidegate.engine.cli.screens import (
    entry_lines,
    firing_lines,
    heard_lines,
    in_zone,
    overview_lines,
    status_lines,
)
from tidegate.engine.core.lifecycle import DRIVER, HAS_ROOM
from tidegate.engine.core.text.json_text import plain, shown
from tidegate.engine.core.text.layout import counted, screen_width, wrapped
from tidegate.engine.core.text.logs import STAGES, speaker
from tidegate.engine.core.text.printable import in_json, in_line, printable, shortened

if TYPE_CHECKING:
    from tidegate.engine.core.state import BucketReport

NEVER_WRAPPED = frozenset({"firing_id"})  # people copy it
PIPE_COLUMNS = 10_000  # width where stdout is no terminal: a row is one line
CELL_MAX = 500  # characters of a value in a table
LINE_MAX = 4_000  # characters of a line of a message


def say(text: str, *, err: bool = False) -> None:
    """A message of one or more lines, on stdout or stderr."""
    lines = (shortened(line, LINE_MAX) for line in text.split("\n"))
    click.echo(printable("\n".join(lines)), err=err)


def tell(text: str) -> None:
    """A message beside the results, on stderr."""
    say(text, err=True)


def document(text: str, *, as_json: bool) -> None:
    """A whole text, which ends with a newline."""
    click.echo(in_json(text) if as_json else printable(text), nl=False)


def stream() -> IO[bytes]:
    """Where JSON lines are written in bulk."""
    out = sys.stdout.buffer
    return _Terminal(out) if sys.stdout.isatty() else out  # type: ignore[return-value]


class _Terminal:
    """A binary stream to a terminal, on which control characters are escaped."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def write(self, lines: bytes) -> int:
        return self._out.write(in_json(lines.decode("utf-8", "replace")).encode())

    def flush(self) -> None:
        self._out.flush()


class LogFormatter(logging.Formatter):
    """Formats log lines: the time of day, with the date on the first line of a new day; the level
    unless it is INFO; the rulebook where there are several."""

    def __init__(self) -> None:
        super().__init__()
        self._day = time.localtime()[:3]

    def format(self, record: logging.LogRecord) -> str:
        at = time.localtime(record.created)
        first = time.strftime("%H:%M:%S" if at[:3] == self._day else "%Y-%m-%d %H:%M:%S", at)
        self._day = at[:3]
        if record.levelno != logging.INFO:
            first = f"{first} {record.levelname}"
        whose = f"{name}: " if (name := speaker()) else ""
        return printable(f"{first} {whose}{super().format(record)}")


def json_line(value: Mapping[str, Any]) -> None:
    """One JSON object and a newline on stdout, at once (a reader may be waiting)."""
    try:
        text = orjson.dumps(value, default=plain).decode()
    except TypeError:  # half a surrogate pair, which json writes as an escape
        text = json.dumps(value, default=str)
    sys.stdout.write(in_json(text) + "\n")
    sys.stdout.flush()


def json_lines(values: Iterable[Mapping[str, Any]]) -> None:
    """A JSON line for each value."""
    for value in values:
        json_line(value)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table for people, under its title."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(show_edge=False)
    for column in columns:
        made.add_column(Text(column), overflow="fold", no_wrap=column in NEVER_WRAPPED)
    for row in rows:
        made.add_row(*(Text(_cell(cell)) for cell in row))  # Rich reads markup in a plain str
    say(in_line(title))  # Rich would wrap a title to the table's width
    Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS).print(made)


def _cell(value: Any) -> str:
    return "" if value is None else in_line(shortened(str(value), CELL_MAX))


def bucket_printer(*, as_json: bool, stages: bool = False) -> Callable[[str, BucketReport], None]:
    """A callback that prints one line for each bucket, with the rulebook's name if it gets one.
    `stages`: for people, also the seconds of each stage."""

    def as_line(rulebook: str, report: BucketReport) -> None:
        named = {"rulebook": rulebook} if rulebook else {}
        json_line(named | dataclasses.asdict(report))

    def as_text(rulebook: str, report: BucketReport) -> None:
        parts: tuple[str, ...] = (
            counted(report.rows, "row"),
            *([f"{report.rejected:,} rejected"] if report.rejected else []),
            counted(report.detections, "detection"),
            counted(report.firings, "firing")
            + (f" ({report.damped:,} damped)" if report.damped else ""),
            counted(report.entries, "action"),
            f"{sum(report.seconds.values()):.2f} s",
        )
        if report.because not in ("", HAS_ROOM):
            who = "the driver" if report.detected_by == DRIVER else report.detected_by
            parts += (f"detected by {who} ({report.because})",)
        known = [name for name in STAGES if name in report.seconds]
        each = ", ".join(f"{name} {report.seconds[name]:.3f}" for name in known)
        at = time.strftime("%H:%M:%S")
        whose = f"{rulebook}: " if rulebook else ""
        line = f"{at} {whose}bucket {report.bucket}: {', '.join(parts)}"
        line += f" ({each})" if stages else ""
        say("\n".join(wrapped(line, screen_width())))

    return as_line if as_json else as_text


def _show(found: Iterable[Mapping[str, Any]], lines: Iterable[str], *, as_json: bool) -> None:
    """Results: a JSON line each, or `lines` for people."""
    if as_json:
        json_lines(found)
    else:
        for line in lines:
            say(line)


def record(value: Mapping[str, Any], *, as_json: bool) -> None:
    """One result: a JSON line, or a line a field. Further lines of a field are indented."""
    lines = (f"{name}: {cell}".replace("\n", "\n    ") for name, cell in value.items())
    _show([value], lines, as_json=as_json)


def status(found: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """`tidegate status`: a JSON line each, or all of the one rulebook, or an overview."""
    width = screen_width()
    lines = status_lines(found[0], width) if len(found) == 1 else overview_lines(found, width)
    _show(found, lines, as_json=as_json)


def summary(value: Mapping[str, Any], *, as_json: bool) -> None:
    """A result with lists: scalars first, then a table for each list."""
    if as_json:
        json_line(value)
        return
    lists = {k: v for k, v in value.items() if isinstance(v, list)}
    record({k: v for k, v in value.items() if k not in lists}, as_json=False)
    for name, rows in lists.items():
        if rows and isinstance(rows[0], Mapping):
            mappings(name, rows, as_json=False)
        else:
            say(f"{name}: {', '.join(map(str, rows)) or '-'}")


def mappings(title: str, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Results of the same fields: a JSON line each, or a table."""
    if as_json:
        json_lines(rows)
        return
    if not rows:
        say(f"{title}: -")
        return
    columns = list(rows[0])
    table(title, columns, ([_plainly(row.get(c)) for c in columns] for row in rows))


def dead(rows: Sequence[Mapping[str, Any]], zone: str, *, as_json: bool) -> None:
    """`tidegate dead`: a JSON line each, or a table and the commands for those in it. `zone`: of
    the times in the table."""
    if as_json or not rows:
        mappings("dead letters", rows, as_json=as_json)
        return
    hidden = ("commands", "text")
    shown = [
        {name: cell for name, cell in in_zone(row, zone).items() if name not in hidden}
        for row in rows
    ]
    mappings(f"dead letters (times in {zone})", shown, as_json=False)
    say("`tidegate firings --entry N` shows the statement and the firings of one;")
    say("`tidegate redrive N`, `tidegate redrive --all [RULE]`, `tidegate skip N` get past it")


def entry(value: Mapping[str, Any], zone: str, *, as_json: bool) -> None:
    """`tidegate firings --entry`: a line a field, then its firings. `zone`: of times in text."""
    _show([value], entry_lines(value, zone, screen_width()), as_json=as_json)


def _plainly(value: Any) -> Any:
    """A cell of a table: a list as `a; b`, a mapping as JSON."""
    if isinstance(value, list):
        return "; ".join(str(_plainly(one)) for one in value)
    return shown(value) if isinstance(value, Mapping) else value


def firings(found: Sequence[Mapping[str, Any]], title: str, zone: str) -> None:
    """`tidegate firings` for people: a title, and a few lines each with times in a zone."""
    pointer = "`tidegate why ID` tells why one is there, and what became of it"
    below = [pointer] if found else []
    width = screen_width()
    for line in chain(wrapped(title, width), firing_lines(found, zone, width), below):
        say(line)


def told(value: Mapping[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """One answer: a JSON line, or lines for people."""
    _show([value], lines, as_json=as_json)


def heard(value: Mapping[str, Any], position: str, *, as_json: bool) -> None:
    """One item of `tidegate listen`: a firing, or a signal."""
    lines = heard_lines(value, screen_width())
    _show([{**value, "position": position}], lines, as_json=as_json)
    sys.stdout.flush()
