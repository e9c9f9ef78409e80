"""The table of moves that the kernel looks up, made as its states are reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.engine.detect.scripts.compiled import kernel
from tidegate.engine.detect.scripts.compiled.layout import Layout, UncompiledError
from tidegate.engine.detect.scripts.compiled.native import Native
from tidegate.engine.detect.scripts.compiled.transitions import Transition, Transitions
from tidegate.engine.detect.scripts.machine import Move, State
from tidegate.engine.detect.scripts.paths import TooManyPathsError
from tidegate.engine.detect.scripts.program import Compiled

FUNCTIONS_MAX = 1_000
"""A script whose moves need more functions is interpreted: each takes some milliseconds to make."""


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
    """`moves` as `kernel.Automaton`, which grows. `symbols`: (input, name) by number. Raises
    `UncompiledError` where a script has something that is interpreted only."""

    def __init__(self, compiled: Compiled, symbols: Sequence[tuple[int, str]]) -> None:
        self.layout = Layout(compiled)
        self.symbols = symbols
        self.states: list[State] = []
        self._machine = compiled.machine
        own = self._transitions = Transitions(compiled, self.layout)
        own.check(symbols)
        self.context, self.timed, self.clocks = own.context, own.timed, own.clocks
        self.loops, self.statements = own.loops, own.statements
        self._native = Native()
        self._numbers: dict[int, int] = {}
        self._functions: dict[Transition, int] = {}
        self._rows, self._to, self._address = (
            Numbers(np.int32),
            Numbers(np.int32),
            Numbers(np.int64),
        )
        self._start()

    def _start(self) -> None:
        try:
            move = self._machine.start()
        except TooManyPathsError:
            raise UncompiledError("its start has too many paths") from None
        self._add(move, None)

    def number(self, state: State) -> int:
        """The number of a state. Raises `FullError`."""
        if state.number < 0:
            raise FullError
        found = self._numbers.get(state.number)
        if found is None:
            found = self._numbers[state.number] = len(self.states)
            self.states.append(state)
            self._rows.extend([kernel.UNKNOWN] * len(self.symbols))
        return found

    def find(self, state: int, symbol: int) -> None:
        """Enter the move of a state by a symbol. Raises `FullError`."""
        source, name = self.symbols[symbol]
        try:
            move = self._machine.move(self.states[state], name)
        except TooManyPathsError:
            entry = kernel.INTERPRETED
        else:
            entry = kernel.UNEXPECTED if move is None else self._add(move, source)
        self._rows.whole[state * len(self.symbols) + symbol] = entry

    def _add(self, move: Move, source: int | None) -> int:
        made = self._transitions.of(move, source)
        if made not in self._functions:
            if len(self._functions) == FUNCTIONS_MAX:
                raise FullError
            function = self._transitions.function(made)
            self._functions[made] = 0 if function.empty else self._native.address(function)
        self._to.extend([self.number(move.state)])
        self._address.extend([self._functions[made]])
        return len(self._to) - 1

    def arrays(self) -> kernel.Automaton:
        """All that is known by now."""
        return kernel.Automaton(
            self._rows.whole.reshape(len(self.states), len(self.symbols)),
            self._to.whole,
            self._address.whole,
        )
