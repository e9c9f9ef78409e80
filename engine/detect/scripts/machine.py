"""A script's automaton, made as its states are reached.

A state is a path set. A move of a state, by an event, is the next state and the places that run, in
order. States are kept with their moves, so each is found once; past `script_states_max` they are
not kept any more, and every move is found anew on the tree, with the same result: `hierarchical`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tidegate.engine.detect.scripts.paths import Paths, Symbol, text_of
from tidegate.engine.detect.scripts.places import PathSet, Places, Reached
from tidegate.rules.errors import EngineError

WAYS_OUT = "use fewer counted wildcards, as `.{9}`, or split the script in two"
"""The two ways out of a machine that is too large (paper 7)."""


@dataclass(eq=False, slots=True)
class State:
    """A path set; its timed markers in the order of the text; and the moves found so far, None for
    an event that is not expected. `number` is its place among the states kept, -1 if it is not."""

    paths: PathSet
    timed: tuple[int, ...]
    number: int = -1
    moves: dict[Symbol, Move | None] = field(default_factory=dict)
    _text: str | None = None

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = text_of(self.paths)
        return self._text


@dataclass(eq=False, slots=True)
class Move:
    """To the next state; `places` run in this order."""

    state: State
    places: tuple[int, ...]
    runs: tuple[Any, ...] | None = None  # what the places do, once it is known


class Machine:
    """The automaton of a script. `kind`: `auto`, `dfa` or `hierarchical`.

    `states` are the states kept, in the order of their numbers. `full`: a state was reached beyond
    `states_max`. The methods raise `TooManyPathsError`, and `EngineError('script-states')` if a
    `dfa` is full.
    """

    def __init__(self, places: Places, kind: str, states_max: int, paths_max: int) -> None:
        self.places = places
        self.states: list[State] = []
        self.full = False
        self._kind = kind
        self._most = 0 if kind == "hierarchical" else states_max
        self._paths = Paths(places, paths_max)
        self._known: dict[PathSet, State] = {}

    def start(self) -> Move:
        """The state at the start, and what runs then."""
        return self._move(self._paths.enter())

    def move(self, state: State, symbol: Symbol) -> Move | None:
        """The move of a state when an event comes; None if it is not expected."""
        if symbol in state.moves:
            return state.moves[symbol]
        found = self._paths.step(state.paths, symbol)
        move = self._move(found) if found.paths or found.matched else None
        if state.number >= 0:
            state.moves[symbol] = move
        return move

    def state(self, paths: PathSet) -> State:
        """The state of a path set."""
        found = self._known.get(paths)
        if found is not None:
            return found
        state = State(paths, self._paths.timed(paths))
        if len(self.states) < self._most:
            state.number = len(self.states)
            self.states.append(state)
            self._known[paths] = state
        elif self._kind != "hierarchical":
            self.full = True
            if self._kind == "dfa":
                raise EngineError(
                    "script-states",
                    f"the script has more than {self._most:,} states (setting script_states_max)",
                    f"{WAYS_OUT}; or say `machine: hierarchical`",
                )
        return state

    def _move(self, found: Reached) -> Move:
        return Move(self.state(found.paths), self.places.order(found.places))
