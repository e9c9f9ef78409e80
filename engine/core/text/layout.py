"""Text for a terminal: counts, ages, sizes, lines and tables that fit its width."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size

from tidegate.engine.core.text.json_text import shown
from tidegate.engine.core.text.printable import in_line
from tidegate.engine.core.text.times import local_text

WIDTH_MIN = 40
WIDTH_OF_NO_TERMINAL = 100
_FIRST = {0: 8}


def counted(number: int, noun: str, several: str = "") -> str:
    """A number of things: `1 firing`, `2,000 firings`. `several`: a plural without s, `3
    entries`."""
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"


def listed(words: Iterable[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    each = [*words] or [""]
    return f" {last} ".join([", ".join(each[:-1]), each[-1]] if len(each) > 1 else each)


def age_text(seconds: float) -> str:
    """How long something has lasted: `48 s`, `24 min`, `30 h`, `4 days`."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds / size):,} {unit}"
    return f"{seconds:.0f} s"


def bytes_text(number: int) -> str:
    """A size: `212 kB`, `1.4 GB`."""
    size, unit = number / 1_000, "kB"
    for larger in ("MB", "GB", "TB"):
        if size >= 1_000:
            size, unit = size / 1_000, larger
    return f"{size:.0f} {unit}" if size >= 10 else f"{size:.1f} {unit}"


def fates_text(counts: Mapping[str, int]) -> str:
    """What became of detections: `3 fired, 4 whose condition failed, 2 damped, 1 dead`. Zeros are
    left out, except `0 fired`."""
    others = {
        "whose condition failed": counts["condition_failed"],
        "damped": counts["damped"],
        "whose condition has no answer": counts.get("unanswered", 0),
        "dead": counts["dead"],
    }
    said = (f", {count:,} {words}" for words, count in others.items() if count)
    return f"{counts['fired']:,} fired" + "".join(said)


def screen_width() -> int:
    """The width of the terminal in characters; without a terminal, COLUMNS."""
    return max(WIDTH_MIN, shutil.get_terminal_size((WIDTH_OF_NO_TERMINAL, 25)).columns)


def pairs_text(values: Mapping[str, Any]) -> str:
    """`account_id=7, day=2026-03-02`."""
    return ", ".join(f"{name}={shown(value)}" for name, value in values.items())


def time_text(instant: str | None, zone: str | None) -> str:
    """An ISO 8601 instant of the store in a zone, to the second: `2026-03-02 08:02:00`. None: in
    UTC, with a Z."""
    if instant is None:
        return "-"
    day, _, clock = local_text(instant, zone).partition("T")
    return f"{day} {clock[:8]}{'Z' * clock.endswith('Z')}"


def clock_text(instant: str, zone: str | None) -> str:
    """The time of day of an ISO 8601 instant, with its fraction; zones as in `time_text`."""
    return local_text(instant, zone).partition("T")[2]


def cut(text: str, width: int) -> str:
    """The text as one line of at most `width` cells; wide characters count twice."""
    line = in_line(text)
    return line if cell_len(line) <= width else set_cell_size(line, width - 2).rstrip() + ".."


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """The text in lines of at most `width` characters. All but the first are indented further."""
    lines: list[str] = []
    for number, line in enumerate(text.splitlines() or [""]):
        first = indent if not number else indent + "  "
        wrapped_line = textwrap.wrap(
            in_line(line.strip()),
            width,
            initial_indent=first,
            subsequent_indent=indent + "  ",
            break_on_hyphens=False,
        )
        lines += wrapped_line or [first.rstrip()]
    return lines


def columns(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    width: int,
    *,
    left: int = 1,
    folded: Mapping[int, int] = _FIRST,
) -> list[str]:
    """A table in lines. The first `left` columns are flush left, the others flush right. If it is
    wider than `width`, the columns in `folded` shrink: by column, its least width.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [["-" if value is None else _cell(value) for value in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(names, *cells, strict=True)]
    for n, least in folded.items():
        over = sum(widths) + 2 * (len(names) - 1) - width
        widths[n] -= max(0, min(over, widths[n] - least))
    made = Table(*names, box=None, pad_edge=False)
    for n, column in enumerate(made.columns):
        column.justify, column.overflow = "left" if n < left else "right", "fold"
        column.width = widths[n]
    for row in cells:
        made.add_row(*map(Text, row))
    console = Console(width=width, color_system=None)
    with console.capture() as lines:
        console.print(made)
    return [line.rstrip() for line in lines.get().rstrip("\n").split("\n")]


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else in_line(shown(value))
