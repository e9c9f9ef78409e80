"""Scripts as boxes and arrows: who feeds whom, and each automaton."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.explain.model import Explained, Script
from tidegate.engine.explain.picture import Arrow, Box, Picture

STATES_MAX = 40
"""States of an automaton that is drawn."""
TEXT_MAX = 60
"""Characters of a line in a picture; the table has all."""


def script_pictures(explained: Explained) -> Iterator[Picture]:
    """The pipeline of all scripts, and the automata that are small enough to be drawn."""
    if explained.scripts:
        yield _pipeline(explained)
    for script in explained.scripts:
        if script.table and len(script.table) <= STATES_MAX and not script.states_more:
            yield _automaton(explained.rulebook, script)


def _pipeline(explained: Explained) -> Picture:
    """Event types, scripts and rules. An output of a script is an event type."""
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
    """A state is a box, with what it waits for; moves between two states are one arrow."""
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
        for target, said in labels.items():
            arrows.append(
                Arrow(id_, f"s_{script.name}_{target}", shortened("; ".join(said), TEXT_MAX))
            )
    return Picture(f"{rulebook}: automaton of {script.name}", tuple(boxes), tuple(arrows))
