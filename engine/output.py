"""What commands print: results on stdout, as tables for people or as JSON lines for programs."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import orjson

from engine.values import BucketReport
from rules.errors import Problem
from rules.model import Rulebook

NEVER_WRAPPED = frozenset({"firing_id"})  # is copied
PIPE_COLUMNS = 10_000  # of what is no terminal: a row is a line


def json_line(value: Mapping[str, Any]) -> None:
    """One JSON object and a newline on stdout, at once (a reader may be waiting)."""
    sys.stdout.write(orjson.dumps(value, default=_plain).decode() + "\n")
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    """A decimal is a number with its scale; anything else JSON has no form for is its text."""
    return orjson.Fragment(str(value)) if isinstance(value, Decimal) else str(value)


def instant_text(micros: int | None) -> str:
    """Microseconds since the epoch as ISO 8601 in UTC; `-` for None."""
    if micros is None:
        return "-"
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table for people; nothing but its title where there are no rows."""
    from rich.console import Console
    from rich.table import Table

    made = Table(title=title, title_justify="left", show_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold", no_wrap=column in NEVER_WRAPPED)
    for row in rows:
        made.add_row(*("" if cell is None else str(cell) for cell in row))
    Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS).print(made)


def verdict(
    file: Path, book: Rulebook | None, problems: Sequence[Problem], *, as_json: bool
) -> None:
    """What `validate` says of one file: errors and warnings with their places, or ok."""
    warnings = book.warnings if book else ()
    if as_json:
        ok = not problems
        json_line(
            {
                "file": str(file),
                "ok": ok,
                "errors": [_problem(p) for p in problems],
                "warnings": [_problem(p) for p in warnings],
            }
        )
        return
    for warning in warnings:
        click.echo(f"warning: {warning}")
    for problem in problems:
        click.echo(str(problem))
    if book is not None and not problems:
        counts = (
            f"{len(of)} {what}{'' if len(of) == 1 else 's'}"
            for what, of in (("table", book.tables), ("event", book.events), ("rule", book.rules))
        )
        click.echo(f"{file}: ok ({', '.join(counts)})")


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "code": problem.code,
        "file": problem.place.file,
        "line": problem.place.line,
        "column": problem.place.column,
        "path": problem.place.path,
        "message": problem.message,
        "hint": problem.hint,
    }


def bucket_printer(*, as_json: bool) -> Callable[[BucketReport], None]:
    """A callback that prints one line a bucket."""

    def as_line(report: BucketReport) -> None:
        json_line(dataclasses.asdict(report))

    def as_text(report: BucketReport) -> None:
        seconds = sum(report.seconds.values())
        click.echo(
            f"bucket {report.bucket}  up to {instant_text(report.watermark)}  "
            f"{report.rows} rows  {report.detections} detections  {report.firings} firings  "
            f"{report.entries} entries  {seconds:.2f} s"
        )

    return as_line if as_json else as_text


def record(value: Mapping[str, Any], *, as_json: bool) -> None:
    """One result: a JSON line, or a line a field."""
    if as_json:
        json_line(value)
        return
    for name, cell in value.items():
        click.echo(f"{name}: {cell}")


def status(value: Mapping[str, Any], *, as_json: bool) -> None:
    """`tidegate status`: scalars first, then a table for each list."""
    if as_json:
        json_line(value)
        return
    lists = {k: v for k, v in value.items() if isinstance(v, list)}
    record({k: v for k, v in value.items() if k not in lists}, as_json=False)
    for name, rows in lists.items():
        if rows and isinstance(rows[0], Mapping):
            mappings(name, rows, as_json=False)
        else:
            click.echo(f"{name}: {', '.join(map(str, rows)) or '-'}")


def mappings(title: str, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Results of the same fields: a JSON line each, or a table."""
    if as_json:
        for row in rows:
            json_line(row)
        return
    columns = list(rows[0]) if rows else []
    table(title, columns, ([_cell(row.get(c)) for c in columns] for row in rows))


def entry(value: Mapping[str, Any], *, as_json: bool) -> None:
    """`tidegate firings --entry`: a line a field, then a table of its firings."""
    if as_json:
        json_line(value)
        return
    fields = {name: _cell(cell) for name, cell in value.items() if name != "firings"}
    record(fields, as_json=False)
    firings([{**firing, "entries": ()} for firing in value["firings"]], as_json=False)


def _cell(value: Any) -> Any:
    """A list or mapping as people read it."""
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return orjson.dumps(value, default=_plain).decode() if isinstance(value, Mapping) else value


def firings(found: Iterable[Mapping[str, Any]], *, as_json: bool) -> None:
    """`tidegate firings`: a JSON line each, or a table."""
    if as_json:
        for firing in found:
            json_line(firing)
        return
    table(
        "firings",
        ["firing_id", "rule", "key", "start", "end", "constituents", "condition", "entries"],
        (
            [
                f["firing_id"],
                f["rule"],
                ", ".join(f"{k}={v}" for k, v in f["key"].items()),
                f["start"],
                f["end"],
                len(f["constituents"]),
                f["condition"],
                ", ".join(f"{e['number']} {e['state']}" for e in f["entries"]),
            ]
            for f in found
        ),
    )
