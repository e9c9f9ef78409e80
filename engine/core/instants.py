"""The grid that watermarks stand on (G2).

The instant of a commit is a whole millisecond, a watermark is a whole millisecond + 998 us. The
edges of a commit (`begin_of`, `end_of`) stand 1 us before and after it. So no watermark parts a
commit from its edges. The times after one watermark and up to the next are a cell.

Example: a commit at 5.000 ms has edges at 4.999 and 5.001. Watermarks are at 4.998 and 5.998.
"""

from __future__ import annotations

MILLISECOND = 1_000
_BELOW_NEXT = 998  # us of a watermark after its millisecond


def floor_millisecond(time: int) -> int:
    """The last whole millisecond at or before a time."""
    return time - time % MILLISECOND


def after_watermark(watermark: int) -> int:
    """The first commit's instant after a watermark."""
    return floor_millisecond(watermark) + MILLISECOND


def floor_watermark(time: int) -> int:
    """The last time at or before `time` that a watermark may have."""
    return floor_millisecond(time - _BELOW_NEXT) + _BELOW_NEXT


def ceil_watermark(time: int) -> int:
    """The first time at or after `time` that a watermark may have: the end of its cell."""
    return floor_watermark(time + MILLISECOND - 1)
