"""How many fired in each period, as a picture for each rule, in SVG: a bar a period.

Each rule has a scale of its own, which its caption tells. Colours repeat, but a picture has one
rule: none is told by its colour alone.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import numpy as np

from tidegate.engine.core.text.page import COLOURS, inert
from tidegate.engine.core.values import Int64
from tidegate.engine.replay.backtest.counts import Periods

_WIDE, _STEP_MIN, _STEP_MAX = 960.0, 4.0, 26.0  # pixels: the picture, from bar to bar
_HIGH, _BELOW, _BESIDE = 64, 20, 8
_CHARACTER = 6.6  # the width of one
_LEAST = 2.0  # the height of a bar that is not 0


def figures(
    periods: Periods, rules: Container[str], names: Sequence[str], label: str
) -> Iterator[str]:
    """A picture for each of these rules. `names`: of the periods. `label`: what is counted, such as
    `fired`."""
    for number, (rule, own) in enumerate(periods.counts.items()):
        if rule not in rules:
            continue
        most = int(own.max(initial=0))
        when = f" ({names[int(np.argmax(own))]})" if most else ""
        said = f"{int(own.sum()):,} {label}; most in a {periods.unit}: {most:,}{when}"
        picture = _picture(rule, own, names, number, said)
        caption = f"<strong>{inert(rule)}</strong> <span>{inert(said)}</span>"
        yield f"<figure><figcaption>{caption}</figcaption>{picture}</figure>"


def _picture(rule: str, counts: Int64, periods: Sequence[str], number: int, said: str) -> str:
    step = min(_STEP_MAX, max(_STEP_MIN, _WIDE / max(1, len(periods))))
    longest = max(map(len, periods), default=0) * _CHARACTER
    width = 2 * _BESIDE + max(step * len(periods), longest)
    height = _HIGH + _BELOW
    most = int(counts.max(initial=1)) or 1
    parts = [
        f"<svg width='{width:.0f}' height='{height}' viewBox='0 0 {width:.0f} {height}'"
        f" role='img' aria-label='{inert(f'{rule}: {said}')}' class='bars c{number % COLOURS}'>",
        f"<line class='lane' x1='0' y1='{_HIGH}' x2='{width:.0f}' y2='{_HIGH}'/>",
    ]
    for place in np.flatnonzero(counts).tolist():
        count = int(counts[place])
        high = max(_LEAST, (_HIGH - 6) * count / most)
        parts.append(
            f"<rect x='{_BESIDE + place * step:.1f}' y='{_HIGH - high:.1f}' height='{high:.1f}'"
            f" width='{max(2.0, step - 2):.1f}'><title>{periods[place]}: {count:,}</title></rect>"
        )
    free = 0.0
    for place, period in enumerate(periods):
        x = _BESIDE + place * step
        if x >= free and x + longest <= width:
            parts.append(f"<text class='small' x='{x:.1f}' y='{_HIGH + 14}'>{period}</text>")
            free = x + longest + 16
    return "".join([*parts, "</svg>"])


def share(count: int, most: int, number: int) -> str:
    """A bar in a row of a table: as long as a count is of the most."""
    width = max(1.0, 120 * count / most) if count else 0.0
    return (
        f"<svg width='120' height='12' aria-hidden='true' class='bars c{number % COLOURS}'>"
        f"<rect x='0' y='1' width='{width:.1f}' height='10'/></svg>"
    )
