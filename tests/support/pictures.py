"""The pictures of the house in `docs/pictures/`, drawn from the code's own imports.

    python -m tests.support.pictures      draws them anew

A box is a room, with the first sentence of its docstring. A room stands above what it uses. Arrows
that follow from others are left out: where a uses b, and b uses c, there is none from a to c.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from html import escape

from tests.support.house import EDGES, FILES, ROOT, entry, levels

FOLDER = ROOT / "docs" / "pictures"
DETECT, EVENTS = "engine.detect", "engine.detect.events"
COLUMNS_MAX = 34  # characters of a line in a box
WIDE, GAP, HIGH_LINE, ABOVE = 216, 16, 14, 46  # pixels: a box, between boxes, a line, between rows
COLORS = {"rules": "#f5e1e4", "connectors": "#e2f3e2", "migrations": "#f8efdd"}
OTHER = "#e6edf6"
STYLE = "font-family='ui-sans-serif, system-ui, sans-serif'"


@dataclass(frozen=True, slots=True)
class _Box:
    name: str
    lines: tuple[str, ...]
    color: str
    left: float
    top: float
    high: float

    @property
    def middle(self) -> float:
        return self.left + WIDE / 2


def pictures() -> Mapping[str, str]:
    """The text of each picture, by the name of its file."""
    return {
        "house.svg": _drawn("The house", _arrows(_of_house)),
        "rules.svg": _drawn("rules/", _arrows(_of_rules)),
        "detect.svg": _drawn("engine/detect/", _arrows(_of_detect)),
    }


def _of_house(module: str) -> str | None:
    return None if module in ("tidegate", "engine") else entry(module)


def _of_rules(module: str) -> str | None:
    first, *rest = module.split(".")
    return f"{first}.{rest[0]}" if first == "rules" and rest else None


def _of_detect(module: str) -> str | None:
    for folder in (EVENTS, DETECT):
        if module.startswith(f"{folder}."):
            return f"{folder}.{module.removeprefix(folder).split('.')[1]}"
    return None


def _arrows(box_of: object) -> set[tuple[str, str]]:
    """From each room to those that it uses and that no other of these uses."""
    assert callable(box_of)
    found = {(box_of(a), box_of(b)) for a, b in EDGES if b in FILES}
    found = {(a, b) for a, b in found if a and b and a != b}
    below: dict[str, set[str]] = {}
    for a, b in found:
        below.setdefault(a, set()).add(b)
    reached = {a: _reached(a, below) for a in below}
    return {
        (a, b) for a, b in found if not any(b in reached.get(other, ()) for other in below[a] - {b})
    }


def _reached(name: str, below: Mapping[str, set[str]]) -> set[str]:
    found, waiting = set(), [name]
    while waiting:
        for other in below.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def _drawn(title: str, arrows: Collection[tuple[str, str]]) -> str:
    floors = levels(arrows)
    rows = [_ordered(floor, floors, arrows) for floor in range(max(floors.values()), 0, -1)]
    wide = max(len(row) for row in rows) * (WIDE + GAP) + GAP
    boxes, top = {}, 40.0
    for row in rows:
        texts = {name: _sentence(name) for name in row}
        high = 26 + HIGH_LINE * max(len(lines) for lines in texts.values())
        left = (wide - len(row) * (WIDE + GAP) + GAP) / 2
        for name in row:
            color = COLORS.get(name.split(".")[0], OTHER)
            boxes[name] = _Box(name, texts[name], color, left, top, high)
            left += WIDE + GAP
        top += high + ABOVE
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {wide:g} {top:g}' {STYLE}>",
        "<style>.n{font-size:13px;font-weight:600}.t{font-size:11px;fill:#444}"
        ".a{fill:none;stroke:#8a94a6;stroke-width:1.2}</style>",
        "<defs><marker id='h' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7'"
        " orient='auto'><path d='M0 0L8 4L0 8z' fill='#8a94a6'/></marker></defs>",
        f"<rect width='{wide:g}' height='{top:g}' fill='#fff'/>",
        f"<text x='{GAP}' y='24' class='n'>{escape(title)}: each room stands above what it uses"
        "</text>",
        *(_arrow(boxes[a], boxes[b]) for a, b in sorted(arrows)),
        *(line for box in boxes.values() for line in _shown(box)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _ordered(
    floor: int, floors: Mapping[str, int], arrows: Collection[tuple[str, str]]
) -> list[str]:
    """A floor's rooms by name; the most used one in the middle."""
    names = sorted(name for name, on in floors.items() if on == floor)
    uses = {name: sum(name in pair for pair in arrows) for name in names}
    ranked = sorted(names, key=lambda name: (uses[name], name))
    return [*ranked[::2], *ranked[1::2][::-1]]


def _sentence(name: str) -> tuple[str, ...]:
    said = ast.get_docstring(ast.parse(FILES[name].read_text())) or ""
    first = " ".join(said.split("\n\n")[0].split()).split(". ")[0].rstrip(".")
    first = re.sub(r" \([^)]*\d[^)]*\)$", "", first)  # what it cites
    first = first.split(": ", 1)[0] if len(first) > 3 * COLUMNS_MAX else first
    return tuple(textwrap.wrap(first.replace("`", ""), COLUMNS_MAX))


def _arrow(a: _Box, b: _Box) -> str:
    x, y, to, end = a.middle, a.top + a.high, b.middle, b.top
    bend = (end - y) / 2
    path = f"M{x:g} {y:g}C{x:g} {y + bend:g} {to:g} {end - bend:g} {to:g} {end:g}"
    return f"<path class='a' marker-end='url(#h)' d='{path}'/>"


def _shown(box: _Box) -> Iterator[str]:
    shape = f"x='{box.left:g}' y='{box.top:g}' width='{WIDE}' height='{box.high:g}' rx='4'"
    yield f"<rect {shape} fill='{box.color}' stroke='#5b6677'/>"
    name = box.name.removeprefix(f"{DETECT}.").replace(".", "/")
    yield f"<text x='{box.left + 8:g}' y='{box.top + 17:g}' class='n'>{escape(name)}</text>"
    for number, line in enumerate(box.lines, 2):
        y = box.top + 18 + HIGH_LINE * (number - 1)
        yield f"<text x='{box.left + 8:g}' y='{y:g}' class='t'>{escape(line)}</text>"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
