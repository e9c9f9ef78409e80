"""`tidegate firings` for people: a line a firing, a line for each row that it stands on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.cells import cell_len

from tidegate.engine.core.text.layout import (
    counted,
    cut,
    pairs_text,
    time_text,
    value_text,
    wrapped,
)

ID_DIGITS = 8  # of a firing's id
ROWS_MAX = 8  # of a firing
HEAD_LINES_MAX = 4


def firing_lines(firings: Iterable[Mapping[str, Any]], width: int) -> Iterator[str]:
    """The lines; none is wider than `width`."""
    for firing in firings:
        words = [firing["firing_id"][:ID_DIGITS], time_text(firing["end"]), firing["rule"]]
        if firing["key"]:
            words.append(pairs_text(firing["key"]))
        words.append(_fate(firing))
        yield from wrapped(cut("  ".join(words), HEAD_LINES_MAX * width), width)
        rows = firing["constituents"]
        for row in rows[:ROWS_MAX]:
            fields = {name: v for name, v in row.items() if name not in ("event", "time")}
            told = f"    {row['event']}  {_clock(row['time'])}  {pairs_text(fields)}"
            yield cut(told, width)
        if len(rows) > ROWS_MAX:
            yield f"    .. and {counted(len(rows) - ROWS_MAX, 'row')} more"


def entry_lines(entry: Mapping[str, Any], width: int) -> Iterator[str]:
    """An outbox entry: its fields, all of each, then its firings. Its text is as it was written; no
    other line is wider than `width`."""
    for name, value in entry.items():
        if name != "firings" and value not in (None, []):
            shown = "; ".join(value) if name == "commands" else value_text(value)
            for line in f"{name}: {shown}".replace("\n", "\n    ").split("\n"):
                fits = name == "text" or cell_len(line) <= width
                yield from [line] if fits else wrapped(line, width, line[: -len(line.lstrip())])
    yield f"firings: {len(entry['firings'])}"
    yield from firing_lines([{**firing, "entries": ()} for firing in entry["firings"]], width)


def _fate(firing: Mapping[str, Any]) -> str:
    """What became of a firing: its condition, what has damped it, its actions."""
    states = ", ".join(f"#{entry['number']} {entry['state']}" for entry in firing["entries"])
    if firing["condition"] == "failed":
        return "condition failed"
    if "damped" in firing:
        return f"damped ({firing['damped']})"
    return states or ("condition held" if firing["condition"] == "held" else "")


def _clock(instant: str) -> str:
    """The time of day, with the fraction that there is."""
    return instant.partition("T")[2].rstrip("Z")
