"""One context over one key as a picture: occurrences on lanes, detections as arcs, in SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from tidegate.engine.core.text.layout import counted
from tidegate.engine.replay.compare.labels import Labels
from tidegate.engine.replay.compare.model import Column, ComparedDetection, Occurrence

ARCS_MAX = 40
"""Detections of one context that are drawn."""

_GUTTER, _LANE, _ROW, _DOT, _TOP = 16, 30, 14, 6, 26
_CHARACTER = 6.6  # the width of one, in pixels
_NEAR, _FAR = 34.0, 150.0  # between two instants that follow one another
_COLOURS = 6


@dataclass(frozen=True, slots=True)
class Axis:
    """Where instants stand, from the left: what is longer apart stands wider apart, by the
    logarithm, so that a burst and a pause fit into one picture. `lanes` are event types."""

    x: Mapping[int, float]
    lanes: tuple[str, ...]
    left: float
    width: float
    labels: Labels


def axis(lanes: Sequence[str], instants: Sequence[int], labels: Labels) -> Axis:
    """The axis of some instants, in order."""
    gaps = [b - a for a, b in pairwise(instants)]
    least = min(gaps, default=1)
    wide = max((len(labels.time(t)) for t in instants), default=1) * _CHARACTER + 8
    left = _GUTTER + max((len(lane) for lane in (*lanes, "detected")), default=0) * _CHARACTER + 24
    x, place = {}, left
    for instant, gap in zip(instants, [*gaps, 0], strict=True):
        x[instant] = place
        place += max(wide, min(_FAR, _NEAR + 18 * math.log2(1 + gap / least)))
    return Axis(x, tuple(lanes), left, place + _GUTTER, labels)


def strip(
    on: Axis, column: Column, occurrences: Sequence[Occurrence], found: Sequence[ComparedDetection]
) -> str:
    """The picture of what a context detects of one key."""
    drawn = found[:ARCS_MAX]
    rows = _rows(drawn)
    base = _TOP + len(on.lanes) * _LANE
    height = base + max(1, max(rows, default=0) + 1) * _ROW + 22
    all_of_them = counted(len(occurrences), "occurrence")
    said = f"{column.context}: {counted(len(found), 'detection')} over {all_of_them}"
    parts = [
        f"<svg width='{on.width:.0f}' height='{height}' viewBox='0 0 {on.width:.0f} {height}'"
        f" role='img' aria-label='{escape(said)}'>",
        *_grid(on, base, height),
        *(_arc(on, drawn[number], number, row, base) for number, row in enumerate(rows)),
        *_dots(on, occurrences, found),
        "</svg>",
    ]
    return "\n".join(parts)


def _rows(found: Sequence[ComparedDetection]) -> list[int]:
    """A row below the lanes for each detection: the first in which its interval is free."""
    free: list[int] = []
    rows = []
    for each in found:
        row = next((r for r, until in enumerate(free) if until < each.start), len(free))
        free[row : row + 1] = [each.end]
        rows.append(row)
    return rows


def _grid(on: Axis, base: int, height: int) -> Iterator[str]:
    for instant, x in on.x.items():
        yield f"<line class='when' x1='{x:.1f}' y1='{_TOP - 8}' x2='{x:.1f}' y2='{height - 8}'/>"
        text = escape(on.labels.time(instant))
        yield f"<text class='small' x='{x:.1f}' y='{_TOP - 13}' text-anchor='middle'>{text}</text>"
    for number, lane in enumerate(on.lanes):
        y = _middle(number)
        yield f"<line class='lane' x1='{on.left - 14:.1f}' y1='{y}' x2='{on.width:.1f}' y2='{y}'/>"
        yield f"<text x='{on.left - 22:.1f}' y='{y + 4}' text-anchor='end'>{escape(lane)}</text>"
    x, y = on.left - 22, base + _ROW + 4
    yield f"<text class='small' x='{x:.1f}' y='{y}' text-anchor='end'>detected</text>"


def _middle(lane: int) -> int:
    return _TOP + lane * _LANE + _LANE // 2


def _arc(on: Axis, found: ComparedDetection, number: int, row: int, base: int) -> str:
    """Through its constituents, then down to its interval below the lanes, where they are marked
    again: an arc may pass an occurrence that is none of them."""
    low = base + _ROW * (row + 1)
    lane = {event: place for place, event in enumerate(on.lanes)}
    points = [(on.x[o.time], float(_middle(lane[o.event]))) for o in found.constituents]
    x1, x2 = on.x[found.start], on.x[found.end]
    first, last = (points[0], points[-1]) if points else ((x1, low), (x1, low))
    path = "".join(_curve(a, b) for a, b in pairwise(points))
    said = f"{on.labels.interval(found)}  {on.labels.occurrences(found.constituents)}"
    if found.used_up:
        said += f"\nthen consumed: {on.labels.occurrences(found.used_up)}"
    marks = "".join(f"<circle cx='{x:.1f}' cy='{low}' r='3.5'/>" for x, _ in points)
    return (
        f"<g class='arc c{number % _COLOURS}' tabindex='0'><title>{escape(said)}</title>"
        f"<path d='M{first[0]:.1f} {first[1]:.1f}{path}'/>"
        f"<path class='drop' d='M{last[0]:.1f} {last[1]:.1f}{_curve(last, (x2, low))}'/>"
        f"<path class='span' d='M{x1:.1f} {low - 4} V{low + 4} M{x1:.1f} {low} H{x2:.1f}'/>{marks}"
        f"<path class='end' d='M{x2 - 6:.1f} {low} l6 -6 l6 6 l-6 6 z'/></g>"
    )


def _curve(a: tuple[float, float], b: tuple[float, float]) -> str:
    if a[1] == b[1]:  # on one lane: above what is between
        return f" Q{(a[0] + b[0]) / 2:.1f} {a[1] - 22:.1f} {b[0]:.1f} {b[1]:.1f}"
    middle = (a[0] + b[0]) / 2
    return f" C{middle:.1f} {a[1]:.1f} {middle:.1f} {b[1]:.1f} {b[0]:.1f} {b[1]:.1f}"


def _dots(
    on: Axis, occurrences: Sequence[Occurrence], found: Sequence[ComparedDetection]
) -> Iterator[str]:
    used = {o: each for each in reversed(found) for o in each.used_up}
    lane = {event: place for place, event in enumerate(on.lanes)}
    for o in occurrences:
        x, y = on.x[o.time], _middle(lane[o.event]) - 4 * (o.number - 1)
        said = on.labels.occurrence(o)
        if o in used:
            said += f": consumed at {on.labels.time(used[o].end)}"
        cross = f"<path d='M{x - 4:.1f} {y - 4} l8 8 m0 -8 l-8 8'/>" if o in used else ""
        yield (
            f"<g class='{'used' if o in used else 'left'}'><title>{escape(said)}</title>"
            f"<circle cx='{x:.1f}' cy='{y}' r='{_DOT}'/>{cross}</g>"
        )
