"""How many windows a step may have, and how many rows they may hold, each counted in all of its
windows."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.engine.core.instants import MILLISECOND, ceil_watermark
from tidegate.engine.detect.events.graph.search_limits import LimitError
from tidegate.engine.detect.events.graph.timers import FloodError
from tidegate.engine.detect.events.occurrences.instances import Moment

_LONG_AGO = -(2**61) // MILLISECOND


def check_windows(ended: Callable[[int], float], moment: Moment) -> None:
    """`ended(t)` says how many windows end at t or before; each is a timer.

    Raises `FloodError` where they are more than a step may fire, before any is made: it may go on
    to the end of the millisecond of the last one that it may have (G8).
    """
    limit = moment.timers.limit
    if limit is None or ended(moment.watermark) <= limit:
        return
    reached = _end(_last(lambda millisecond: ended(_end(millisecond)) < limit, moment) + 1)
    if reached < moment.watermark:
        raise FloodError(reached)


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
        fits = _last(lambda millisecond: held(_end(millisecond)) <= most, moment)
        if held(_end(fits)):
            raise FloodError(_end(fits))
        rows = held(_end(fits + 1))
    raise LimitError(
        "window-rows",
        f"windows that end together hold {int(rows):,} rows, at most {most:,} are read"
        " (setting window_rows_max)",
        "make the window shorter, leave rows out by `where`, or raise window_rows_max and"
        " `enable RULE`",
    )


def _last(holds: Callable[[int], bool], moment: Moment) -> int:
    """The last millisecond of which something holds that does not of the watermark's."""
    low, high = _LONG_AGO, ceil_watermark(moment.watermark) // MILLISECOND
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _end(millisecond: int) -> int:
    return ceil_watermark(millisecond * MILLISECOND)
