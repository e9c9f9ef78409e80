"""Pictures of worked examples: a history, and what is detected in it, as lines of time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

_BLOCK = re.compile(r"^```golden\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OCCURRENCE = re.compile(r"(\w+)@([\d.]+)(?=[\s(}]|$)")
_EXPECT = re.compile(r"^expect([^:]*):((?:.*\n?)(?:^ +.*\n?)*)", re.MULTILINE)
_FOUND = re.compile(r"([^\[\]{}]*)\[([\d.]+),([\d.]+)\] \{([^}]*)\}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
WIDE, LEFT, RIGHT, HIGH = 420, 100, 20, 20  # pixels: all, before and behind the time, a line
DOT, BAR, FAINT, TEXT = "#2b5d9b", "#9dbfe6", "#d5dbe3", "#222"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a picture: its name, a span of time that is detected or None, and its instants."""

    name: str
    span: tuple[float, float] | None
    instants: tuple[float, ...]


def illustrated(page: str, text: str) -> tuple[str, dict[str, str]]:
    """The page with a picture behind each worked example, and the pictures by their place."""
    made: dict[str, str] = {}

    def shown(found: re.Match[str]) -> str:
        parts = [found[0]]
        for case in re.split(r"\n\s*\n", found[1]):
            title = re.search(r"^title: (.*)$", case, re.MULTILINE)
            if title and not _DATE.search(case):
                place = f"pictures/cases/{page.removesuffix('.md')}-{len(made) + 1}.svg"
                made[place] = picture(title[1], [*lines(case)])
                parts.append(f"![{title[1].replace(']', '')}]({place})")
        return "\n\n".join(parts)

    return _BLOCK.sub(shown, text), made


def lines(case: str) -> Iterator[Line]:
    """A line for each event type of the history, then one for each detection."""
    history = re.search(r"^history: *(.*)$", case, re.MULTILINE)
    came: dict[str, list[float]] = {}
    for name, at in _OCCURRENCE.findall(history[1] if history else ""):
        came.setdefault(name, []).append(float(at))
    for name, times in came.items():
        yield Line(name, None, tuple(times))
    for context, expected in _EXPECT.findall(case):
        of = context.strip().replace("*", "each")
        for who, start, end, made_of in _FOUND.findall(expected):
            name = " ".join((of, who.strip())).strip() or "detected"
            instants = tuple(float(at) for _, at in _OCCURRENCE.findall(made_of))
            yield Line(name, (float(start), float(end)), instants)


def picture(title: str, drawn: list[Line]) -> str:
    """An SVG of the lines on one axis of time."""
    times: list[float] = [time for line in drawn for time in (*line.instants, *(line.span or ()))]
    first, last = min(times), max(times)
    scale = (WIDE - LEFT - RIGHT) / ((last - first) or 1)

    def x(time: float) -> float:
        return round(LEFT + (time - first) * scale, 1)

    high = HIGH * (len(drawn) + 1) + 8
    out = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDE} {high}' width='{WIDE}'"
        " role='img' font-family='ui-sans-serif, system-ui, sans-serif' font-size='11'>",
        f"<title>{escape(title)}</title>",
    ]
    for time in sorted({*times}):
        out.append(f"<path d='M{x(time)} 4V{high - HIGH}' stroke='{FAINT}'/>")
    labelled = -1_000.0
    for time in sorted({*times}):
        if x(time) - labelled >= 24:
            labelled = x(time)
            out.append(_text(labelled, high - 6, "middle", f"{time:g}"))
    said = ""
    for number, line in enumerate(drawn):
        y = HIGH * number + 14
        if line.name != said:
            out.append(_text(4, y + 4, "start", line.name))
        said = line.name
        if line.span:
            start, end = map(x, line.span)
            out.append(
                f"<rect x='{start - 3:g}' y='{y - 4}' width='{end - start + 6:g}' height='8' rx='4'"
                f" fill='{BAR}'/>"
            )
        out += [f"<circle cx='{x(at)}' cy='{y}' r='3.5' fill='{DOT}'/>" for at in line.instants]
    return "\n".join([*out, "</svg>"]) + "\n"


def _text(x: float, y: float, anchor: str, said: str) -> str:
    return f"<text x='{x:g}' y='{y:g}' text-anchor='{anchor}' fill='{TEXT}'>{escape(said)}</text>"
