"""The table of moves that the kernel looks up, made as its states are reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.engine.detect.scripts.compiled import kernel
from tidegate.engine.detect.scripts.compiled.context import Context
from tidegate.engine.detect.scripts.compiled.function import Function, integer
from tidegate.engine.detect.scripts.compiled.layout import Layout, UncompiledError
from tidegate.engine.detect.scripts.compiled.native import Native
from tidegate.engine.detect.scripts.compiled.statements import Statements
from tidegate.engine.detect.scripts.machine import Move, State
from tidegate.engine.detect.scripts.paths import TooManyPathsError
from tidegate.engine.detect.scripts.places import Action
from tidegate.engine.detect.scripts.program import Compiled
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.tree import nodes

FUNCTIONS_MAX = 1_000
"""A script whose moves need more functions is interpreted: each takes some milliseconds to make."""


_Transition = tuple[tuple[int, ...], int | None, tuple[int, ...], frozenset[int]]
"""The places of a move; the input of the event that one of them takes; the timed markers of the
next state; those of them whose timers stay."""


TIMED_MAX = 64
"""The timers of a script with more timed markers are fired by the interpreter."""


class FullError(Exception):
    """There are more states than are kept, or more functions than are compiled."""


class Numbers:
    """An array that grows."""

    def __init__(self, kind: type) -> None:
        self._room: npt.NDArray[Any] = np.empty(64, kind)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def whole(self) -> npt.NDArray[Any]:
        return self._room[: self._count]

    def extend(self, numbers: Sequence[int]) -> None:
        count = self._count + len(numbers)
        while count > len(self._room):
            self._room = np.concatenate([self._room, np.empty_like(self._room)])
        self._room[self._count : count] = numbers
        self._count = count


class Table:
    """`moves` as `kernel.Automaton`, which grows. `symbols`: (input, name) by number; behind them
    come the timers. Raises
    `UncompiledError` where a script has something that is interpreted only."""

    def __init__(self, compiled: Compiled, symbols: Sequence[tuple[int, str]]) -> None:
        self.layout, self._compiled = Layout(compiled), compiled
        self.symbols = symbols
        self.states: list[State] = []
        timed = len(self.layout.timed)
        self._width = len(symbols) + (timed if timed <= TIMED_MAX else 0)
        self.context = Context(self.layout)
        self._machine, self._program = compiled.machine, compiled.script.program
        self._places, steps_max = compiled.places.places, compiled.script.limits.steps
        inner = [n for p in self._places if isinstance(p, Action) for n in nodes(p.block)]
        self.loops = any(isinstance(n, tree.Count | tree.Each | tree.While) for n in inner)
        self.statements = sum(isinstance(n, tree.Statement) for n in inner)
        self._steps_max = steps_max if self.loops or self.statements > steps_max else None
        self._check()
        self._native = Native()
        self._numbers: dict[int, int] = {}
        self._functions: dict[_Transition, int] = {}
        self._rows, self._to, self._address = (
            Numbers(np.int32),
            Numbers(np.int32),
            Numbers(np.int64),
        )
        self._start()

    def _check(self) -> None:
        """Try each place with each event that it takes; copies of one place once."""
        trial, tried = self._statements(Function(self.context)), set()
        for part in self._places:
            node = part.block if isinstance(part, Action) else part.tree
            if id(node) in tried:
                continue
            tried.add(id(node))
            if isinstance(node, tree.Block):
                trial.place(part, None)
            elif isinstance(node, tree.Named):
                for source in {n for n, name in self.symbols if node.event in (None, name)}:
                    trial.place(part, source)
            else:
                trial.place(part, None)
                trial.timer(part)

    def _statements(self, function: Function) -> Statements:
        return Statements(function, self.layout, self._program, self._steps_max)

    def _start(self) -> None:
        try:
            move = self._machine.start()
        except TooManyPathsError:
            raise UncompiledError("its start has too many paths") from None
        self._add(move, None, frozenset())

    def number(self, state: State) -> int:
        """The number of a state. Raises `FullError`."""
        if state.number < 0:
            raise FullError
        found = self._numbers.get(state.number)
        if found is None:
            found = self._numbers[state.number] = len(self.states)
            self.states.append(state)
            self._rows.extend([kernel.UNKNOWN] * self._width)
        return found

    def find(self, state: int, symbol: int) -> None:
        """Enter the move of a state by a symbol. Raises `FullError`."""
        timed = symbol - len(self.symbols)
        source, name = (
            self.symbols[symbol] if timed < 0 else (None, frozenset([self.layout.timed[timed]]))
        )
        try:
            move = self._machine.move(self.states[state], name)
        except TooManyPathsError:
            entry = kernel.INTERPRETED
        else:
            taken = name if isinstance(name, frozenset) else frozenset[int]()
            stood = self._compiled.standing.intersection(self.states[state].timed) - taken
            entry = kernel.UNEXPECTED if move is None else self._add(move, source, stood)
        self._rows.whole[state * self._width + symbol] = entry

    def _add(self, move: Move, source: int | None, stood: frozenset[int]) -> int:
        """`stood`: the `within` markers before which a path stood, and which are not taken."""
        acting = (isinstance(self._places[number], Action) for number in move.places)
        kept = stood.intersection(move.state.timed)
        made = move.places, None if all(acting) else source, move.state.timed, kept
        if made not in self._functions:
            if len(self._functions) == FUNCTIONS_MAX:
                raise FullError
            self._functions[made] = self._made(*made)
        self._to.extend([self.number(move.state)])
        self._address.extend([self._functions[made]])
        return len(self._to) - 1

    def _made(
        self,
        places: tuple[int, ...],
        source: int | None,
        timed: tuple[int, ...],
        kept: frozenset[int],
    ) -> int:
        """The address of a function; 0 if it has nothing to do."""
        function = Function(self.context)
        to = self._statements(function)
        for number in places:
            to.place(self._places[number], source)
        for number in timed:
            if number in kept:
                function.set_timer(self.layout.timed.index(number), integer(kernel.KEPT))
            else:
                to.timer(self._places[number])
        return 0 if function.empty else self._native.address(function)

    def arrays(self) -> kernel.Automaton:
        """All that is known by now."""
        return kernel.Automaton(
            self._rows.whole.reshape(len(self.states), self._width),
            self._to.whole,
            self._address.whole,
        )
