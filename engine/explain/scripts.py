"""The scripts of a rulebook, as `explain` shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.engine.core.text.layout import counted
from tidegate.engine.detect.scripts.doubts import doubts, explored_of, too_many_states
from tidegate.engine.detect.scripts.exploration import OTHER, Explored
from tidegate.engine.detect.scripts.paths import markers
from tidegate.engine.detect.scripts.places import Marker
from tidegate.engine.detect.scripts.programs import whole_reasons
from tidegate.engine.explain import model
from tidegate.engine.explain.phrases import action_text, marker_text, position, symbol_text
from tidegate.engine.explain.script_costs import Sizes, bytes_of, statements_max, unbounded
from tidegate.rules.analysis.graph import in_order, users_of
from tidegate.rules.errors import Problem
from tidegate.rules.errors import in_order as by_place
from tidegate.rules.eventscript import tree
from tidegate.rules.model import ClockEvent, Rulebook, Script, ScriptEvent, TableEvent

TABLE_MAX = 200
"""States of a table."""


class Scripts:
    """All scripts of a rulebook, or the one named `only`."""

    def __init__(self, book: Rulebook, only: str | None = None) -> None:
        self._book, self._whole = book, whole_reasons(book)
        self.scripts: list[model.Script] = []
        self.warnings: list[Problem] = []
        """Doubts that the automata raise."""
        ordered = [each.name for each in in_order(book) if each.name in book.scripts]
        shown = [book.scripts[name] for name in ordered if only in (None, name)]
        explored = explored_of(book, shown)
        for script in shown:
            self._add(script, explored[script.name])

    def _add(self, script: Script, explored: Explored) -> None:
        book, program = self._book, script.program
        refused = too_many_states(book, script, explored)
        found = [*doubts(book, script, explored), *([] if refused is None else [refused])]
        self.warnings += by_place(found)
        sizes = bytes_of(program)
        why = tuple(dict.fromkeys(unbounded(program, sizes)))
        machine, said = _machine(script, explored)
        shown = _table(script, explored)
        self.scripts.append(
            model.Script(
                script.name,
                script.enabled,
                machine,
                said,
                None if explored.too_large else len(explored.states),
                _actions(explored, explored.started.places),
                shown,
                len(explored.states) - len(shown),
                tuple(self._inputs(script)),
                tuple(self._outputs(script)),
                {name: str(kind) for name, kind in program.variables.items()},
                dict(zip(program.key_names, map(str, program.key_types), strict=True)),
                *_bytes(sizes, book.settings.script_state_bytes_max),
                None if why else statements_max(explored, sizes),
                why,
                self._whole.get(script.name),
            )
        )

    def _inputs(self, script: Script) -> Iterator[model.ScriptInput]:
        for each in script.program.inputs:
            taken = script.inputs[each.name]
            yield model.ScriptInput(
                each.name,
                str(each.type),
                taken.event,
                self._kind(taken.event),
                taken.value,
                taken.order_by,
                bool(each.group),
            )

    def _kind(self, event: str) -> str:
        match self._book.events.get(event):
            case ScriptEvent(script=script):
                return f"script {script}"
            case TableEvent():
                return "table"
            case ClockEvent():
                return "clock"
            case None:
                return f"rule {event}"
        return "signal"

    def _outputs(self, script: Script) -> Iterator[model.ScriptOutput]:
        kinds = {**dict.fromkeys(script.outputs, "error"), **script.program.outputs}
        for name, event in script.outputs.items():
            takers = (
                f"{'script' if isinstance(of, Script) else 'rule'} {of.name}"
                for of in users_of(event, self._book)
            )
            yield model.ScriptOutput(name, str(kinds[name]), event, tuple(takers))


def _bytes(sizes: Sizes, most: int) -> tuple[int, str]:
    """The most bytes of all variables; and, where only the setting bounds them, a note on that."""
    longer = [name for name, each in sizes.items() if each is None]
    if longer:
        return most, f" (script_state_bytes_max; of any length: {', '.join(longer)})"
    return sum(each for each in sizes.values() if each is not None), ""


def _machine(script: Script, explored: Explored) -> tuple[str, str]:
    """Which machine runs the script, and why."""
    if script.machine == "hierarchical":
        return "hierarchical", "as the rulebook says"
    states = counted(len(explored.states), "state")
    match explored.too_large:
        case "":
            return "dfa", states
        case "script_exploring_steps_max":
            return "dfa", f"{states} or more (script_exploring_steps_max)"
        case "script_paths_max":
            return "dfa", "sets of more paths than script_paths_max"
    more = f"more than {states} (script_states_max)"
    return ("dfa", f"refused: {more}") if script.machine == "dfa" else ("hierarchical", more)


def _table(script: Script, explored: Explored) -> tuple[model.State, ...]:
    events = [*dict.fromkeys(event for each in script.program.inputs for event in each.events)]
    marked = {
        part.tree.event
        for part in explored.places.places
        if isinstance(part, Marker) and isinstance(part.tree, tree.Named)
    }
    return tuple(
        _state(explored, number, events, marked) for number in range(min(explored.seen, TABLE_MAX))
    )


def _state(
    explored: Explored, number: int, events: Iterable[str], marked: set[str | None]
) -> model.State:
    """`marked`: the events that markers name."""
    places, moves = explored.places, explored.moves[number]
    found = tuple(
        model.Move(symbol_text(places, symbol), target, _actions(explored, reached.places))
        for symbol, (target, reached) in moves.items()
    )
    unexpected = tuple(e for e in events if (e if e in marked else OTHER) not in moves)
    waits = sorted({*markers(explored.states[number])})
    return model.State(number, tuple(_waits(explored, waits)), found, unexpected)


def _waits(explored: Explored, waits: Iterable[int]) -> Iterator[str]:
    for number in waits:
        part = explored.places.places[number]
        if isinstance(part, Marker):
            yield f"{marker_text(part.tree)} {position(part.tree.place)}"


def _actions(explored: Explored, reached: frozenset[int]) -> tuple[str, ...]:
    """The actions at the places that a move reaches, in order."""
    places = explored.places
    said = (action_text(places, number) for number in places.order(reached))
    return tuple(each for each in said if each is not None)
