"""An answer as pictures, in SVG: the ladder up to the first no, and what came for the key on a time
line."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.engine.core.text.page import COLOURS, inert
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.replay.time_axis import (
    CHARACTER,
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
from tidegate.engine.replay.why_not.answer import WhyNot
from tidegate.engine.replay.why_not.evidence import Rung
from tidegate.engine.replay.why_not.ladder import RUNGS
from tidegate.engine.replay.why_not.timeline import CAME, Mark, Timeline
from tidegate.engine.replay.why_not.words import Words

_RUNG, _TOP, _RAIL, _WIDE, _SAID = 34, 18, 24, 130, 110
_SPACING = Spacing(near=30.0, far=150.0, slope=12)

STYLE = """
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; padding: .6rem; }
.rail { stroke: var(--soft); stroke-width: 4; stroke-linecap: round; }
.rung { stroke: var(--soft); stroke-width: 3; } .rung.no { stroke: var(--c1); }
.rung.open { stroke: var(--line); stroke-dasharray: 3 5; }
svg .open text, svg text.open { fill: var(--soft); } svg text.no { font-weight: 600; }
.lane { stroke: var(--line); } .window { fill: var(--wash); stroke: var(--line); }
.came circle { fill: currentColor; stroke: var(--paper); }
.none circle { fill: var(--paper); stroke: currentColor; stroke-width: 2; }
.none path { stroke: currentColor; stroke-width: 2; } .end { fill: var(--ink); }
"""


def ladder_picture(answer: WhyNot) -> str:
    """The rungs from the first question up; those that were not asked are dotted."""
    known = {rung.name: rung for rung in answer.rungs}
    height = _TOP * 2 + _RUNG * (len(RUNGS) - 1)
    longest = max(min(len(rung.sentence), _SAID) for rung in answer.rungs)
    width = _RAIL * 2 + _WIDE + longest * CHARACTER + 20
    last = answer.rungs[-1]
    said = f"the ladder: {last.name} {'is the last rung' if last.ok else 'is the first no'}"
    parts = [
        f'<svg width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}"'
        f' role="img" aria-label="{inert(said)}">'
    ]
    for x in (_RAIL, _RAIL + _WIDE):
        parts.append(f'<line class="rail" x1="{x}" y1="6" x2="{x}" y2="{height - 6}"/>')
    for number, name in enumerate(RUNGS):
        parts += _rung(name, known.get(name), _TOP + _RUNG * number)
    return "\n".join([*parts, "</svg>"])


def _rung(name: str, rung: Rung | None, y: int) -> Iterator[str]:
    kind = "open" if rung is None else "yes" if rung.ok else "no"
    mark = {"open": "", "yes": "✓ ", "no": "✗ "}[kind]
    left, right = _RAIL, _RAIL + _WIDE
    yield f'<line class="rung {kind}" x1="{left}" y1="{y}" x2="{right}" y2="{y}"/>'
    yield f'<text class="{kind}" x="{(left + right) / 2:.0f}" y="{y - 5}" text-anchor="middle">'
    yield f"{mark}{inert(name)}</text>"
    if rung is not None:
        yield f'<text class="{kind}" x="{right + 16}" y="{y + 4}">'
        yield f"<title>{inert(rung.sentence)}</title>"
        yield f"{inert(shortened(rung.sentence, _SAID))}</text>"


# -- what came ------------------------------------------------------------------------------------


def timeline_picture(answer: WhyNot) -> str:
    """What came for the key, and the time that is asked for, shaded; empty if nothing did."""
    line, words = answer.timeline, answer.words
    if not line.marks:
        return ""
    axis = _axis(line, answer, words)
    height = TOP + len(line.lanes) * LANE + 26
    width = axis.right + 20
    return "\n".join(
        [
            f'<svg width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}"'
            f' role="img" aria-label="what came{inert(words.of_key)} on a time line">',
            *_window(answer, axis, height),
            *lanes_of(axis),
            *_marks(line, axis, words),
            *_detected(line, axis, words),
            "</svg>",
        ]
    )


def _axis(line: Timeline, answer: WhyNot, words: Words) -> TimeAxis:
    instants = {mark.instant for mark in line.marks} | {*line.detected} | {answer.at}
    return time_axis(instants, line.lanes, words.at, _SPACING)


def _window(answer: WhyNot, axis: TimeAxis, height: int) -> Iterator[str]:
    """The time that is asked for."""
    words = answer.words
    first = min((at for at in axis.x if at >= answer.since), default=answer.at)
    left, right = axis.x[first] - 10, axis.x[answer.at] + 10
    said = f"asked for is a firing {words.between(answer.since, answer.at)}"
    return window(left, right, said, axis, height - 22, words.at)


def _marks(line: Timeline, axis: TimeAxis, words: Words) -> Iterator[str]:
    lanes = {event: number for number, event in enumerate(line.lanes)}
    for mark in line.marks:
        yield from _mark(mark, axis.x[mark.instant], lanes[mark.event], words)


def _mark(mark: Mark, x: float, lane: int, words: Words) -> Iterator[str]:
    y, kind = middle(lane), "came" if mark.kind == CAME else "none"
    what = mark.event if mark.kind == CAME else f"a row for {mark.event}"
    said = f"{what} {mark.kind} at {words.at(mark.instant)}"
    yield f'<g class="{kind} c{lane % COLOURS}"><title>{inert(said)}</title>'
    yield f'<circle cx="{x:.1f}" cy="{y}" r="{DOT}"/>'
    if kind == "none":
        yield f'<path d="M{x - 4:.1f} {y + 4} l8 -8"/>'
    yield "</g>"


def _detected(line: Timeline, axis: TimeAxis, words: Words) -> Iterator[str]:
    for instant in line.detected:
        yield from end_mark(axis.x[instant], f"detected at {words.at(instant)}")
