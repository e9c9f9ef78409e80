"""A time line in SVG: where instants stand, and a lane for each event type. `why` and `why-not`
draw on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tidegate.engine.core.text.page import inert
from tidegate.engine.core.text.printable import shortened

LANE, DOT, TOP, CHARACTER = 30, 6, 40, 6.6
"""The height of a lane, the radius of a dot, the place of the first lane, the width of a letter."""
_GUTTER, _NAME_MAX = 16, 36


@dataclass(frozen=True, slots=True)
class Spacing:
    """How far apart two instants stand that follow one another: `near` at least, and at most `far`;
    by `slope` times the logarithm of the time between them."""

    near: float
    far: float
    slope: float


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Where instants stand; the lanes, from the top; where these begin and end."""

    x: Mapping[int, float]
    lanes: tuple[str, ...]
    left: float
    right: float


def time_axis(
    instants: Collection[int], lanes: Sequence[str], at: Callable[[int], str], spacing: Spacing
) -> TimeAxis:
    """The axis of some instants, one at least; `at` says one. What is longer apart stands wider
    apart."""
    ordered = sorted(instants)
    longest = max((min(len(lane), _NAME_MAX) for lane in lanes), default=0)
    left = _GUTTER + longest * CHARACTER + 24
    gaps = [b - a for a, b in pairwise(ordered)]
    least = min(gaps, default=1)
    wide = max(len(at(one)) for one in ordered) * CHARACTER + 8
    x, place = dict[int, float](), left + wide / 2
    for instant, gap in zip(ordered, [*gaps, 0], strict=True):
        x[instant] = place
        apart = spacing.near + spacing.slope * math.log2(1 + gap / least)
        place += max(wide, min(spacing.far, apart))
    return TimeAxis(x, tuple(lanes), left, x[ordered[-1]] + wide / 2)


def window(
    left: float, right: float, said: str, axis: TimeAxis, bottom: int, at: Callable[[int], str]
) -> Iterator[str]:
    """A shaded part of the line, and a rule for each instant."""
    yield f'<rect class="window" x="{left:.1f}" y="{TOP - 10}" rx="4"'
    yield f' width="{right - left:.1f}" height="{bottom - TOP + 10}">'
    yield f"<title>{inert(said)}</title></rect>"
    for instant, x in axis.x.items():
        yield f'<line class="lane" x1="{x:.1f}" y1="{TOP - 10}" x2="{x:.1f}" y2="{bottom}"/>'
        yield f'<text class="small" x="{x:.1f}" y="{TOP - 18}" text-anchor="middle">'
        yield f"{inert(at(instant))}</text>"


def lanes_of(axis: TimeAxis) -> Iterator[str]:
    for number, lane in enumerate(axis.lanes):
        y = middle(number)
        yield f'<line class="lane" x1="{axis.left - 14:.1f}" y1="{y}"'
        yield f' x2="{axis.right:.1f}" y2="{y}"/>'
        yield f'<text x="{axis.left - 20:.1f}" y="{y + 4}" text-anchor="end">'
        yield f"{inert(shortened(lane, _NAME_MAX))}</text>"


def middle(lane: int) -> int:
    return TOP + lane * LANE + LANE // 2


def end_mark(x: float, said: str) -> Iterator[str]:
    """A diamond above the lanes: something was detected there."""
    yield f'<path class="end" d="M{x - 7:.1f} {TOP - 10} l7 -7 l7 7 l-7 7 z">'
    yield f"<title>{inert(said)}</title></path>"
