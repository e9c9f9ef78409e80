"""A firing as a picture, in SVG: its constituents on a time line by event type, its window, what
was consumed, and what came of it to the right."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.text.page import COLOURS, inert
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.replay.why.model import Constituent, Story
from tidegate.engine.replay.why.text import constituent, link_words
from tidegate.engine.replay.why.times import Times
from tidegate.rules.model import Context

DOTS_MAX = 200
"""Constituents that are drawn."""
ENDS_MAX = 8
"""Entries and effects that are drawn."""
_GUTTER, _LANE, _DOT, _TOP, _CHARACTER = 16, 30, 6, 40, 6.6
_NEAR, _FAR = 44.0, 170.0  # between two instants that follow one another
_BOX = 250
_NAME_MAX = 36
_KEEPING = {str(Context.RESTRICTED), str(Context.UNRESTRICTED)}

STYLE = """
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; padding: .6rem; }
.lane { stroke: var(--line); } .window { fill: var(--wash); stroke: var(--line); }
.dot circle { fill: currentColor; stroke: var(--paper); }
.dot.used path { stroke: var(--paper); stroke-width: 1.5; fill: none; }
.flow { stroke: var(--soft); fill: none; } .box { fill: var(--wash); stroke: var(--soft); }
.end { fill: var(--ink); }
"""


@dataclass(frozen=True, slots=True)
class _Axis:
    x: Mapping[int, float]
    lanes: tuple[str, ...]
    left: float
    right: float


def picture(story: Story, times: Times) -> str:
    """The SVG of a firing."""
    drawn = story.constituents[:DOTS_MAX]
    axis = _axis(story, drawn, times)
    ends = [*_ends(story)]
    height = _TOP + max(len(axis.lanes) * _LANE, len(ends) * _LANE) + 26
    width = axis.right + 40 + (_BOX + _GUTTER if ends else 0)
    said = f"{story.rule}: {counted(len(story.constituents), 'occurrence')} on a time line"
    parts = [
        f'<svg width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}"'
        f' role="img" aria-label="{inert(said)}">',
        *_window(story, axis, height, times),
        *_lanes(axis),
        *_dots(story, drawn, axis, times),
        *_boxes(story, ends, axis),
        "</svg>",
    ]
    return "\n".join(parts)


def consumed(story: Story) -> bool:
    """Whether the context consumes what it has chosen."""
    return story.context is not None and story.context not in _KEEPING


def _axis(story: Story, drawn: Sequence[Constituent], times: Times) -> _Axis:
    """Where instants stand: what is longer apart stands wider apart, by the logarithm."""
    instants = sorted({story.start, story.end, *(one.time for one in drawn)})
    lanes = tuple(dict.fromkeys(one.event for one in drawn))
    longest = max((min(len(lane), _NAME_MAX) for lane in lanes), default=0)
    left = _GUTTER + longest * _CHARACTER + 24
    gaps = [b - a for a, b in pairwise(instants)]
    least = min(gaps, default=1)
    wide = max(len(times.at(one)) for one in instants) * _CHARACTER + 8
    x, place = {}, left + wide / 2
    for instant, gap in zip(instants, [*gaps, 0], strict=True):
        x[instant] = place
        place += max(wide, min(_FAR, _NEAR + 18 * math.log2(1 + gap / least)))
    return _Axis(x, lanes, left, x[instants[-1]] + wide / 2)


def _window(story: Story, axis: _Axis, height: int, times: Times) -> Iterator[str]:
    """From the start to the end of the firing."""
    first, last = axis.x[story.start], axis.x[story.end]
    bottom = height - 22
    said = f"from {times.at(story.start)} to {times.at(story.end)}"
    yield f'<rect class="window" x="{first - 8:.1f}" y="{_TOP - 10}" rx="4"'
    yield f' width="{last - first + 16:.1f}" height="{bottom - _TOP + 10}">'
    yield f"<title>{inert(said)}</title></rect>"
    for instant, x in axis.x.items():
        yield f'<line class="lane" x1="{x:.1f}" y1="{_TOP - 10}" x2="{x:.1f}" y2="{bottom}"/>'
        yield f'<text class="small" x="{x:.1f}" y="{_TOP - 18}" text-anchor="middle">'
        yield f"{inert(times.at(instant))}</text>"


def _lanes(axis: _Axis) -> Iterator[str]:
    for number, lane in enumerate(axis.lanes):
        y = _middle(number)
        yield f'<line class="lane" x1="{axis.left - 14:.1f}" y1="{y}"'
        yield f' x2="{axis.right:.1f}" y2="{y}"/>'
        yield f'<text x="{axis.left - 20:.1f}" y="{y + 4}" text-anchor="end">'
        yield f"{inert(shortened(lane, _NAME_MAX))}</text>"


def _middle(lane: int) -> int:
    return _TOP + lane * _LANE + _LANE // 2


def _dots(story: Story, drawn: Sequence[Constituent], axis: _Axis, times: Times) -> Iterator[str]:
    lanes = {event: number for number, event in enumerate(axis.lanes)}
    used = consumed(story)
    for one in drawn:
        x, y = axis.x[one.time], _middle(lanes[one.event])
        kind = f"dot c{lanes[one.event] % COLOURS}{' used' * used}"
        yield f'<g class="{kind}"><title>{inert(constituent(one, times))}</title>'
        yield f'<circle cx="{x:.1f}" cy="{y}" r="{_DOT}"/>'
        if used:
            yield f'<path d="M{x - 3:.1f} {y - 3} l6 6 m0 -6 l-6 6"/>'
        yield "</g>"


def _ends(story: Story) -> Iterator[tuple[str, str]]:
    """What stands to the right: a short text, and the whole of it."""
    if story.damped is not None:
        yield f"damped: {story.damped}", f"dropped by its rule's {story.damped}"
    elif story.condition.outcome in ("failed", "dead"):
        yield f"condition {story.condition.outcome}", story.condition.text or ""
    ends = [
        *(
            (f"#{entry.number} {entry.table or entry.kind}: {entry.state}", entry.does)
            for entry in story.entries
        ),
        *(
            (f"then {link.rule or 'a firing'} {link.firing_id[:8]}", link_words(link))
            for link in story.effects
        ),
    ]
    yield from ends[:ENDS_MAX]
    if len(ends) > ENDS_MAX:
        yield f".. and {len(ends) - ENDS_MAX:,} more", "they are listed below"


def _boxes(story: Story, ends: Sequence[tuple[str, str]], axis: _Axis) -> Iterator[str]:
    x, y = axis.x[story.end], _middle(max(0, len(axis.lanes) - 1))
    yield f'<path class="end" d="M{x - 7:.1f} {_TOP - 10} l7 -7 l7 7 l-7 7 z">'
    yield f"<title>{inert(story.firing_id)}</title></path>"
    left = axis.right + 40
    for number, (short, whole) in enumerate(ends):
        middle = _middle(number)
        yield f'<path class="flow" d="M{axis.right:.1f} {min(y, middle)} C{axis.right + 20:.1f}'
        yield f' {min(y, middle)} {left - 20:.1f} {middle} {left:.1f} {middle}"/>'
        yield f'<rect class="box" x="{left:.1f}" y="{middle - 11}" rx="4" width="{_BOX}"'
        yield f' height="22"><title>{inert(whole)}</title></rect>'
        yield f'<text x="{left + 8:.1f}" y="{middle + 4}">{inert(shortened(short, 34))}</text>'
