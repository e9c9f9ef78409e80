"""A firing as a picture, in SVG: its constituents on a time line by event type, its window, what
was consumed, and what came of it to the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.text.page import COLOURS, inert
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.replay.time_axis import (
    DOT,
    LANE,
    TOP,
    Spacing,
    TimeAxis,
    end_mark,
    lanes_of,
    middle,
    time_axis,
    window,
)
from tidegate.engine.replay.why.model import Constituent, Story
from tidegate.engine.replay.why.text import constituent, link_words
from tidegate.engine.replay.why.times import Times
from tidegate.rules.model import Context

DOTS_MAX = 200
"""Constituents that are drawn."""
ENDS_MAX = 8
"""Entries and effects that are drawn."""
_SPACING = Spacing(near=44.0, far=170.0, slope=18)
_GUTTER, _BOX = 16, 250
_KEEPING = {str(Context.RESTRICTED), str(Context.UNRESTRICTED)}

STYLE = """
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; padding: .6rem; }
.lane { stroke: var(--line); } .window { fill: var(--wash); stroke: var(--line); }
.dot circle { fill: currentColor; stroke: var(--paper); }
.dot.used path { stroke: var(--paper); stroke-width: 1.5; fill: none; }
.flow { stroke: var(--soft); fill: none; } .box { fill: var(--wash); stroke: var(--soft); }
.end { fill: var(--ink); }
"""


def picture(story: Story, times: Times) -> str:
    """The SVG of a firing."""
    drawn = story.constituents[:DOTS_MAX]
    axis = _axis(story, drawn, times)
    ends = [*_ends(story)]
    height = TOP + max(len(axis.lanes) * LANE, len(ends) * LANE) + 26
    width = axis.right + 40 + (_BOX + _GUTTER if ends else 0)
    said = f"{story.rule}: {counted(len(story.constituents), 'occurrence')} on a time line"
    parts = [
        f'<svg width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}"'
        f' role="img" aria-label="{inert(said)}">',
        *_window(story, axis, height, times),
        *lanes_of(axis),
        *_dots(story, drawn, axis, times),
        *_boxes(story, ends, axis),
        "</svg>",
    ]
    return "\n".join(parts)


def consumed(story: Story) -> bool:
    """Whether the context consumes what it has chosen."""
    return story.context is not None and story.context not in _KEEPING


def _axis(story: Story, drawn: Sequence[Constituent], times: Times) -> TimeAxis:
    instants = {story.start, story.end, *(one.time for one in drawn)}
    return time_axis(instants, [*dict.fromkeys(one.event for one in drawn)], times.at, _SPACING)


def _window(story: Story, axis: TimeAxis, height: int, times: Times) -> Iterator[str]:
    """From the start to the end of the firing."""
    first, last = axis.x[story.start], axis.x[story.end]
    said = f"from {times.at(story.start)} to {times.at(story.end)}"
    return window(first - 8, last + 8, said, axis, height - 22, times.at)


def _dots(
    story: Story, drawn: Sequence[Constituent], axis: TimeAxis, times: Times
) -> Iterator[str]:
    lanes = {event: number for number, event in enumerate(axis.lanes)}
    used = consumed(story)
    for one in drawn:
        x, y = axis.x[one.time], middle(lanes[one.event])
        kind = f"dot c{lanes[one.event] % COLOURS}{' used' * used}"
        yield f'<g class="{kind}"><title>{inert(constituent(one, times))}</title>'
        yield f'<circle cx="{x:.1f}" cy="{y}" r="{DOT}"/>'
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


def _boxes(story: Story, ends: Sequence[tuple[str, str]], axis: TimeAxis) -> Iterator[str]:
    x, y = axis.x[story.end], middle(max(0, len(axis.lanes) - 1))
    yield from end_mark(x, story.firing_id)
    left = axis.right + 40
    for number, (short, whole) in enumerate(ends):
        at = middle(number)
        yield f'<path class="flow" d="M{axis.right:.1f} {min(y, at)} C{axis.right + 20:.1f}'
        yield f' {min(y, at)} {left - 20:.1f} {at} {left:.1f} {at}"/>'
        yield f'<rect class="box" x="{left:.1f}" y="{at - 11}" rx="4" width="{_BOX}"'
        yield f' height="22"><title>{inert(whole)}</title></rect>'
        yield f'<text x="{left + 8:.1f}" y="{at + 4}">{inert(shortened(short, 34))}</text>'
