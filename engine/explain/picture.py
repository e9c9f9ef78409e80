"""The pictures of Mermaid and SVG as boxes and arrows: the event graph and the triggering graph of
rules, the pipeline of scripts, and each automaton."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.explain.graph import ID_DIGITS
from tidegate.engine.explain.model import Explained, Node, Script
from tidegate.engine.explain.phrases import kept
from tidegate.engine.explain.text import said

_SHAPES = {"event": ('(["', '"])'), "operator": ('["', '"]'), "rule": ('[["', '"]]')}
STATES_MAX = 40
"""A larger automaton is not drawn."""
TEXT_MAX = 60
"""Characters of a line in a picture; the text's table has the whole line."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box. kind: event, operator or rule. small: a second line, if any."""

    id: str
    kind: str
    title: str
    small: str = ""


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow between two boxes, by their ids."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def pictures(explained: Explained, carried: Mapping[str, int] = {}) -> Iterator[Picture]:
    """The event graph that the rules share, and the triggering graph if it has an edge. `carried`:
    by a node's digest, how many rows it carries now."""
    now = {digest[:ID_DIGITS]: rows for digest, rows in carried.items()}
    boxes = [
        Box(
            f"n{node.id}",
            "operator" if node.operands else "event",
            node.expression,
            ", ".join(filter(None, [_small(node), _carries(now.get(node.id))])),
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


def _carries(rows: int | None) -> str:
    return "" if rows is None else f"carries {counted(rows, 'row')}"


def _small(node: Node) -> str:
    """A node's second line: what it stores; for an event type, its key columns."""
    if node.operands:
        return "" if node.instances_max == 0 else f"stores {kept(node)}"
    return "".join(f"per {', '.join(columns)}" for columns in node.keys.values())


def mermaid(pictures: Iterable[Picture]) -> str:
    """A Mermaid flowchart from left to right; it ends with a newline."""
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
    """A text with Mermaid's codes for special characters: `<` is `#60;`."""
    return text.translate({ord(character): f"#{ord(character)};" for character in '#&"<>'})


def script_pictures(explained: Explained) -> Iterator[Picture]:
    """The pipeline of all scripts, and the automata that are small enough to draw."""
    if explained.scripts:
        yield _pipeline(explained)
    for script in explained.scripts:
        if script.table and len(script.table) <= STATES_MAX and not script.states_more:
            yield _automaton(explained.rulebook, script)


def _pipeline(explained: Explained) -> Picture:
    """What flows between event types, scripts and rules. An output of a script is an event type."""
    boxes: dict[str, Box] = {}
    arrows: list[Arrow] = []
    for script in explained.scripts:
        for taken in script.inputs:
            kind, _, name = taken.kind.partition(" ")
            source = f"p_rule_{name}" if kind == "rule" else f"e_{taken.event}"
            title = name if kind == "rule" else taken.event
            boxes.setdefault(source, Box(source, "rule" if kind == "rule" else "event", title))
            arrows.append(Arrow(source, f"p_script_{script.name}"))
        id_ = f"p_script_{script.name}"
        small = script.machine if script.states is None else counted(script.states, "state")
        boxes[id_] = Box(id_, "operator", script.name, small)
        for emitted in script.outputs:
            event = f"e_{emitted.event}"
            boxes.setdefault(event, Box(event, "event", emitted.event))
            arrows.append(Arrow(id_, event))
            for rule in emitted.taken_by:
                kind, _, name = rule.partition(" ")
                if kind == "rule":
                    boxes.setdefault(f"p_rule_{name}", Box(f"p_rule_{name}", "rule", name))
                    arrows.append(Arrow(event, f"p_rule_{name}"))
    return Picture(
        f"{explained.rulebook}: pipeline", tuple(boxes.values()), tuple(dict.fromkeys(arrows))
    )


def _automaton(rulebook: str, script: Script) -> Picture:
    """An automaton. A box is a state with what it waits for. An arrow stands for all moves between
    two states."""
    begin = f"s_{script.name}_start"
    boxes = [Box(begin, "event", "start", shortened(", ".join(script.start), TEXT_MAX))]
    arrows = [Arrow(begin, f"s_{script.name}_0")]
    for state in script.table:
        id_ = f"s_{script.name}_{state.number}"
        waits = shortened(", ".join(state.waits_for), TEXT_MAX) or "the end"
        boxes.append(Box(id_, "operator", f"state {state.number}", waits))
        labels: dict[int, list[str]] = {}
        for move in state.moves:
            done = f" / {', '.join(move.actions)}" if move.actions else ""
            labels.setdefault(move.next, []).append(f"{move.event}{done}")
        for target, moved in labels.items():
            arrows.append(
                Arrow(id_, f"s_{script.name}_{target}", shortened("; ".join(moved), TEXT_MAX))
            )
    return Picture(f"{rulebook}: automaton of {script.name}", tuple(boxes), tuple(arrows))
