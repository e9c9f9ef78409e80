"""`explain --format mermaid`: one flowchart, a subgraph for each graph."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.engine.explain.picture import Box, Picture

_SHAPES = {"event": ('(["', '"])'), "operator": ('["', '"]'), "rule": ('[["', '"]]')}


def mermaid(pictures: Iterable[Picture]) -> str:
    """The text of a flowchart from left to right; ends with a newline."""
    lines = ["flowchart LR"]
    for number, picture in enumerate(pictures):
        lines.append(f'  subgraph g{number}["{_escaped(picture.title)}"]')
        lines += [f"    {box.id}{_shape(box)}" for box in picture.boxes]
        for arrow in picture.arrows:
            label = f'|"{_escaped(arrow.label)}"|' if arrow.label else ""
            lines.append(f"    {arrow.source} -->{label} {arrow.target}")
        lines.append("  end")
    return "\n".join(lines) + "\n"


def _shape(box: Box) -> str:
    before, after = _SHAPES[box.kind]
    small = f"<br/><small>{_escaped(box.small)}</small>" if box.small else ""
    return f"{before}{_escaped(box.title)}{small}{after}"


def _escaped(text: str) -> str:
    """As entity codes, which Mermaid writes with `#`; `#` itself first."""
    for character, code in (("#", "35"), ("&", "38"), ('"', "34"), ("<", "60"), (">", "62")):
        text = text.replace(character, f"\0{code};")
    return text.replace("\0", "#")
