"""The two graphs of `explain` as boxes and arrows: what Mermaid and SVG draw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidegate.engine.explain.amounts import kept
from tidegate.engine.explain.model import Explained, Node
from tidegate.engine.explain.text import said


@dataclass(frozen=True, slots=True)
class Box:
    """`kind`: event, operator or rule. `small` is a second line, or nothing."""

    id: str
    kind: str
    title: str
    small: str = ""


@dataclass(frozen=True, slots=True)
class Arrow:
    """From one box to another, by their ids."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def pictures(explained: Explained) -> Iterator[Picture]:
    """The shared event graph, and the triggering graph where there is any edge."""
    boxes = [
        Box(
            f"n{node.id}",
            "operator" if node.operands else "event",
            node.expression,
            _small(node),
        )
        for node in explained.nodes
    ]
    boxes += [Box(f"r_{rule.name}", "rule", rule.name, rule.context) for rule in explained.rules]
    arrows = [
        Arrow(f"n{operand}", f"n{node.id}")
        for node in explained.nodes
        for operand in dict.fromkeys(node.operands)
    ]
    arrows += [Arrow(f"n{rule.root}", f"r_{rule.name}") for rule in explained.rules]
    yield Picture(f"{explained.rulebook}: event graph", tuple(boxes), tuple(arrows))
    if explained.triggers:
        names = dict.fromkeys(n for t in explained.triggers for n in (t.rule, t.triggers))
        labels: dict[tuple[str, str], list[str]] = {}
        for t in explained.triggers:
            labels.setdefault((f"t_{t.rule}", f"t_{t.triggers}"), []).append(said(t))
        yield Picture(
            f"{explained.rulebook}: triggering graph",
            tuple(Box(f"t_{name}", "rule", name) for name in names),
            tuple(
                Arrow(*ends, ", ".join(dict.fromkeys(through))) for ends, through in labels.items()
            ),
        )


def _small(node: Node) -> str:
    """What it stores; of an event type, what it is keyed by."""
    if node.operands:
        return "" if node.instances_max == 0 else f"stores {kept(node)}"
    return "".join(f"per {', '.join(columns)}" for columns in node.keys.values())


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
