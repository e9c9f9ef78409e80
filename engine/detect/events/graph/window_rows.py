"""How many rows the windows of one step may hold, each row counted in all of its windows."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.engine.core.instants import MILLISECOND, ceil_watermark
from tidegate.engine.detect.events.graph.search_limits import LimitError
from tidegate.engine.detect.events.graph.timers import FloodError
from tidegate.engine.detect.events.occurrences.instances import Moment

_LONG_AGO = -(2**61) // MILLISECOND


def check_window_rows(held: Callable[[int], float], moment: Moment, most: int) -> None:
    """`held(t)` says how many rows the windows have that end at t or before.

    Raises `FloodError` where the windows of a step hold more than `most`: it may go on to the end
    of the last millisecond that fits (G8). Raises `LimitError('window-rows')` where the first
    millisecond alone has more, and where a step has no limit, as then nothing cuts it.
    """
    rows = held(moment.watermark)
    if rows <= most:
        return
    if moment.timers.limit is not None:
        fits, exceeds = _LONG_AGO, ceil_watermark(moment.watermark) // MILLISECOND
        while exceeds - fits > 1:
            middle = (fits + exceeds) // 2
            fits, exceeds = (middle, exceeds) if held(_end(middle)) <= most else (fits, middle)
        if held(_end(fits)):
            raise FloodError(_end(fits))
        rows = held(_end(exceeds))
    raise LimitError(
        "window-rows",
        f"windows that end together hold {int(rows):,} rows, at most {most:,} are read"
        " (setting window_rows_max)",
        "make the window shorter, leave rows out by `where`, or raise window_rows_max and"
        " `enable RULE`",
    )


def _end(millisecond: int) -> int:
    return ceil_watermark(millisecond * MILLISECOND)
