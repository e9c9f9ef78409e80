"""`explain --format svg`: the pictures below each other, as the text of one SVG document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from tidegate.engine.explain.picture import Arrow, Box, Picture

_FONT = "font-family='Helvetica, Arial, sans-serif'"
_CHARACTER, _LINE, _PAD = 7.0, 17, 10  # a character's width, a line's height, in pixels
_GAP, _GAP_LABELLED, _BETWEEN, _MARGIN = 60, 40, 18, 24
_TITLE_MAX = 44  # characters; the whole text is shown on hovering
_COLOURS = {
    "event": ("#e8f1fb", "#3b6ea5"),
    "operator": ("#ffffff", "#5b6470"),
    "rule": ("#fdf0dc", "#b0741a"),
}
_SWEEPS = 6


@dataclass(frozen=True, slots=True)
class _Placed:
    """A box with its place, or, without a box, a place that a long arrow passes through."""

    box: Box | None
    x: float
    y: float
    width: float
    height: float


def svg(pictures: Iterable[Picture]) -> str:
    """A whole SVG document; ends with a newline."""
    return drawing(pictures).replace("<svg ", "<svg xmlns='http://www.w3.org/2000/svg' ", 1) + "\n"


def drawing(pictures: Iterable[Picture]) -> str:
    """The element of a page. Its colours are attributes, which the style of a page overrides by the
    classes `paper`, `line`, `box` with the kind of the box, `label`, `small`."""
    parts: list[str] = []
    width, top = 0.0, float(_MARGIN)
    for picture in pictures:
        drawn, wide, high = _draw(picture, top)
        parts += drawn
        width, top = max(width, wide), top + high + 2 * _MARGIN
    head = (
        f"<svg width='{width:.0f}' height='{top:.0f}' "
        f"viewBox='0 0 {width:.0f} {top:.0f}' {_FONT} font-size='12'>"
        "<defs><marker id='end' viewBox='0 0 8 8' refX='8' refY='4' markerWidth='8' "
        "markerHeight='8' orient='auto'>"
        "<path class='tip' d='M0 0 L8 4 L0 8 z' fill='#5b6470'/></marker></defs>"
        "<rect class='paper' width='100%' height='100%' fill='#ffffff'/>"
    )
    return "\n".join([head, *parts, "</svg>"])


def _draw(picture: Picture, top: float) -> tuple[list[str], float, float]:
    """The parts of a picture that begins at `top`, its width and its height."""
    drawing = layers(picture)
    placed = _placed(picture, drawing, top + 2 * _LINE)
    bottom = max((p.y + p.height for p in placed.values()), default=top)
    right = max((p.x + p.width for p in placed.values()), default=0.0)
    routed = list(zip(picture.arrows, drawing.routes, strict=True))
    backward = [arrow for arrow, route in routed if not route]
    title = f"<text x='{_MARGIN}' y='{top + _LINE}' font-size='15' font-weight='bold'>"
    parts = [f"{title}{escape(picture.title)}</text>"]
    for arrow, route in routed:
        if route:
            parts += _forward(arrow, [placed[id_] for id_ in route])
    for number, arrow in enumerate(backward):
        low = bottom + (number + 1) * (_LINE + 6)
        parts += _backward(arrow, placed[arrow.source], placed[arrow.target], low)
    for place in placed.values():
        parts += _boxed(place)
    labels = (placed[a.source].x + len(a.label) * _CHARACTER + 2 * _GAP for a in backward)
    width = max([right + _MARGIN, *labels, len(picture.title) * 9.0 + 2 * _MARGIN])
    return parts, width, bottom - top + len(backward) * (_LINE + 6)


def _placed(picture: Picture, drawing: Layers, top: float) -> Mapping[str, _Placed]:
    boxes = {box.id: box for box in picture.boxes}
    longest = max((len(arrow.label) for arrow in picture.arrows), default=0)
    gap = _GAP_LABELLED + longest * _CHARACTER if longest else float(_GAP)
    listed = [[(id_, boxes.get(id_)) for id_ in column] for column in drawing.columns]
    heights = [sum(_height(box) + _BETWEEN for _, box in column) - _BETWEEN for column in listed]
    found: dict[str, _Placed] = {}
    x = float(_MARGIN)
    for column, height in zip(listed, heights, strict=True):
        widest = max(_width(box) for _, box in column)
        y = top + (max(heights) - height) / 2
        for id_, box in column:
            width = _width(box) if box else widest
            found[id_] = _Placed(box, x, y, width, _height(box))
            y += found[id_].height + _BETWEEN
        x += widest + gap
    return found


def _width(box: Box | None) -> float:
    longest = max(len(_cut(box.title)), len(box.small)) if box else 0
    return longest * _CHARACTER + 2 * _PAD


def _height(box: Box | None) -> float:
    return _LINE * (2 if box.small else 1) + 2 * _PAD - 4 if box else 0.0


def _cut(text: str) -> str:
    return text if len(text) <= _TITLE_MAX else text[: _TITLE_MAX - 1] + "…"


def _boxed(placed: _Placed) -> Iterator[str]:
    box = placed.box
    if box is None:
        return
    fill, stroke = _COLOURS[box.kind]
    middle = placed.x + placed.width / 2
    radius = placed.height / 2 if box.kind == "event" else 4
    yield (
        f"<g class='box {box.kind}'><title>{escape(box.title)}</title>"
        f"<rect x='{placed.x:.1f}' y='{placed.y:.1f}' width='{placed.width:.1f}' "
        f"height='{placed.height:.1f}' rx='{radius:.1f}' fill='{fill}' stroke='{stroke}'/>"
        f"<text x='{middle:.1f}' y='{placed.y + _PAD + 10:.1f}' text-anchor='middle'>"
        f"{escape(_cut(box.title))}</text>"
    )
    if box.small:
        yield (
            f"<text class='small' x='{middle:.1f}' y='{placed.y + _PAD + 10 + _LINE:.1f}' "
            f"text-anchor='middle' font-size='11' fill='#5b6470'>{escape(box.small)}</text>"
        )
    yield "</g>"


def _forward(arrow: Arrow, route: Sequence[_Placed]) -> Iterator[str]:
    """An arrow to the right, through the places in the columns between its ends."""
    path = ""
    for source, target in pairwise(route):
        x1, y1 = source.x + source.width, source.y + source.height / 2
        x2, y2 = target.x, target.y + target.height / 2
        bend = min((x2 - x1) / 2, 80)
        path += f" L{x1:.1f} {y1:.1f}" if path else f"M{x1:.1f} {y1:.1f}"
        path += f" C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    yield _path(path)
    if arrow.label:
        first, second = route[0], route[1]
        middle = (first.y + first.height / 2 + second.y + second.height / 2) / 2
        yield _label(arrow.label, (first.x + first.width + second.x) / 2, middle - 5)


def _backward(arrow: Arrow, source: _Placed, target: _Placed, low: float) -> Iterator[str]:
    """An arrow to the left: down, along below all boxes, and up again."""
    x1, x2 = source.x + source.width * 0.7, target.x + target.width * 0.3
    yield _path(
        f"M{x1:.1f} {source.y + source.height:.1f} V{low:.1f} H{x2:.1f} "
        f"V{target.y + target.height:.1f}"
    )
    if arrow.label:
        yield _label(arrow.label, max((x1 + x2) / 2, len(arrow.label) * _CHARACTER / 2), low - 4)


def _path(path: str) -> str:
    return f"<path class='line' d='{path}' fill='none' stroke='#5b6470' marker-end='url(#end)'/>"


def _label(text: str, x: float, y: float) -> str:
    return (
        f"<text class='label' x='{x:.1f}' y='{y:.1f}' text-anchor='middle' font-size='11' "
        f"fill='#3b4048' stroke='#ffffff' stroke-width='4' paint-order='stroke'>"
        f"{escape(text)}</text>"
    )


@dataclass(frozen=True, slots=True)
class Layers:
    """Where boxes go. columns: from left to right, the ids in each from top to bottom; ids such as
    `3:1` are places that a long arrow (number 3) passes in column 1. routes[n]: the ids along arrow
    n, from end to end; empty for an arrow that points back."""

    columns: tuple[tuple[str, ...], ...]
    routes: tuple[tuple[str, ...], ...]


def layers(picture: Picture) -> Layers:
    """Layered drawing: a box is to the right of all that point to it; an arrow that closes a cycle
    points back. Sweeps to and fro sort each column by the mean place of its neighbours."""
    level = _levels(picture)
    routes = tuple(_route(arrow, number, level) for number, arrow in enumerate(picture.arrows))
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    columns: list[list[str]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for id_, at in level.items():
        columns[at].append(id_)
    for route in routes:
        for source, target in pairwise(route):
            before.setdefault(target, []).append(source)
            after.setdefault(source, []).append(target)
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        neighbours = before if forward else after
        for column in columns if forward else reversed(columns):
            places = _places(columns)
            near = {id_: [places[n] for n in neighbours.get(id_, [id_])] for id_ in column}
            column.sort(key=lambda id_: sum(near[id_]) / len(near[id_]))
    return Layers(tuple(map(tuple, columns)), routes)


def _route(arrow: Arrow, number: int, level: dict[str, int]) -> tuple[str, ...]:
    """The ids along an arrow. The places between its ends are added to `level`."""
    first, last = level[arrow.source], level[arrow.target]
    if last <= first:
        return ()
    passed = {f"{number}:{at}": at for at in range(first + 1, last)}
    level.update(passed)
    return (arrow.source, *passed, arrow.target)


def _levels(picture: Picture) -> dict[str, int]:
    """The column of each box: the length of the longest way to it. An arrow that closes a cycle
    does not count. A box that nothing points to is put next to what it points to."""
    before: dict[str, list[str]] = {box.id: [] for box in picture.boxes}
    after: dict[str, list[str]] = {box.id: [] for box in picture.boxes}
    for arrow in picture.arrows:
        if arrow.source != arrow.target:
            before[arrow.target].append(arrow.source)
            after[arrow.source].append(arrow.target)
    level: dict[str, int] = {}
    open_: set[str] = set()

    def visit(id_: str) -> int:
        if id_ not in level:
            open_.add(id_)
            ahead = [visit(source) for source in before[id_] if source not in open_]
            open_.discard(id_)
            level[id_] = 1 + max(ahead, default=-1)
        return level[id_]

    for id_ in before:
        visit(id_)
    for id_, sources in before.items():
        if not sources and after[id_]:
            level[id_] = max(0, min(level[target] for target in after[id_]) - 1)
    return level


def _places(columns: Sequence[Sequence[str]]) -> dict[str, float]:
    """How far down its column each box stands, from 0 to 1."""
    return {
        id_: (place + 0.5) / len(column) for column in columns for place, id_ in enumerate(column)
    }
