"""The part of `explain --format text` that scripts have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tidegate.engine.core.text.layout import columns, counted
from tidegate.engine.explain.model import Script, ScriptInput

STATES_MAX = 40
"""States of a table; JSON has more."""
_UNFOLDED = 1 << 30  # columns of a table whose lines are folded later


def script_text(script: Script) -> Iterator[str]:
    """What is said of one script, line by line."""
    disabled = "" if script.enabled else ", disabled"
    yield f"script {script.name} (machine {script.machine}: {script.why}{disabled})"
    for number, taken in enumerate(script.inputs):
        yield f"  {'takes' if not number else '':<10}  {_input(taken)}"
    for number, emitted in enumerate(script.outputs):
        takers = ", ".join(emitted.taken_by) or "nobody"
        event = "" if emitted.event == emitted.name else f", as {emitted.event}"
        said = f"{emitted.type} {emitted.name}{event}, to {takers}"
        yield f"  {'emits' if not number else '':<10}  {said}"
    if script.keys:
        yield f"  group       {_typed(script.keys)}"
    yield f"  variables   {_typed(script.variables) or 'none'}"
    per = " a key" if script.keys else ""
    yield f"  stores      {script.bytes_max:,} bytes of variables{per}{script.bytes_why}"
    yield f"  time        {_time(script)}"
    yield from (f"              {why}" for why in script.unbounded)
    yield f"  start       state 0{_done(script.start)}"
    yield from _table(script)


def _input(taken: ScriptInput) -> str:
    of = f".{taken.value}" if taken.value else ""
    ordered = f", ordered by {', '.join(taken.order_by)}" if taken.order_by else ""
    return f"{taken.type} {taken.name}, from {taken.kind} {taken.event}{of}{ordered}"


def _typed(named: Mapping[str, str]) -> str:
    return ", ".join(f"{kind} {name}" for name, kind in named.items())


def _time(script: Script) -> str:
    if script.unbounded:
        return "not bounded but by script_steps_max:"
    if script.statements_max is None:
        return "bounded, by how many paths there are"
    return f"bounded: at most {script.statements_max:,} statements a transition"


def _done(actions: Sequence[str]) -> str:
    return f": {', '.join(actions)}" if actions else ""


def _table(script: Script) -> Iterator[str]:
    shown = script.table[:STATES_MAX]
    rows = [
        ("" if number else str(state.number), move.event, str(move.next), ", ".join(move.actions))
        for state in shown
        for number, move in enumerate(state.moves)
    ]
    lines = iter(columns(("state", "event", "next", "actions"), rows, _UNFOLDED, left=4))
    yield f"  {next(lines)}"
    for state in shown:
        yield from (f"  {next(lines)}" for _ in state.moves)
        number = "" if state.moves else str(state.number)
        if state.unexpected:
            yield f"  {number:<5}  unexpected: {', '.join(state.unexpected)}"
        elif not state.moves:
            yield f"  {number:<5}  the end"
    more = len(script.table) - len(shown) + script.states_more
    if more:
        yield f"  .. and {counted(more, 'state')} more"
