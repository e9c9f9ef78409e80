"""Registers, and the instructions of one program as they are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tidegate.engine.detect.scripts.compiled.instructions import JUMPS, Instruction, Op
from tidegate.engine.detect.scripts.compiled.layout import Layout, Word
from tidegate.rules.eventscript.types import Basic

_LOAD, _STORE = (Op.LOAD_I, Op.LOAD_F), (Op.STORE_I, Op.STORE_F)


class Register(NamedTuple):
    """A register. `word`: that of the instance which it stands for, -1 = none."""

    number: int
    double: bool
    word: int = -1


class Registers:
    """The registers of a script. Those of its variables come first. Constants and temporary values
    get theirs when they are needed. `texts`: the strings in the script, by code."""

    def __init__(self, layout: Layout) -> None:
        self.integers: list[int] = [0] * layout.own.integers
        self.doubles: list[float] = [0.0] * layout.own.integers
        self.texts = [""]
        self._constants: dict[tuple[bool, str], Register] = {}

    def new(self, double: bool, value: Any = 0) -> Register:
        file: list[Any] = self.doubles if double else self.integers
        file.append(value)
        return Register(len(file) - 1, double)

    def constant(self, value: Any, kind: Basic) -> Register:
        """The register of a constant."""
        if kind == Basic.STRING:
            if value not in self.texts:
                self.texts.append(value)
            value = self.texts.index(value)
        double = kind == Basic.DOUBLE
        found = self._constants.get((double, repr(value)))
        if found is None:
            found = self._constants[double, repr(value)] = self.new(double, value)
        return found


class Program:
    """The instructions of one program. Variables are loaded on entry if they are read, or written
    only on some paths. Written ones are stored on exit."""

    def __init__(self, layout: Layout, registers: Registers) -> None:
        self.layout = layout
        self._registers = registers
        self._pools: tuple[list[Register], list[Register]] = ([], [])
        self._locals: dict[str, tuple[Register, ...]] = {}
        self.begin()

    def begin(self) -> None:
        """Start a program."""
        self._code: list[Instruction] = []
        self._read: set[Register] = set()
        self._written: set[Register] = set()
        self._sure: set[Register] = set()
        self._used, self._floor = [0, 0], [0, 0]

    def ended(self) -> list[Instruction]:
        """The whole program."""
        if not self._code:
            return []
        loads = sorted(self._read | (self._written - self._sure))
        before = [Instruction(_LOAD[r.double], r.number, r.word) for r in loads]
        after = [Instruction(_STORE[r.double], r.number, r.word) for r in sorted(self._written)]
        placed = [
            each._replace(a=each.a + len(before)) if each.op in JUMPS else each
            for each in self._code
        ]
        return [*before, *placed, *after]

    # instructions ------------------------------------------------------------------------------

    def add(self, op: Op, a: int = 0, b: int = 0, c: int = 0) -> None:
        self._code.append(Instruction(op, a, b, c))

    def put(self, op: Op, to: Register, b: int = 0, c: int = 0) -> None:
        """An instruction whose result goes into a register."""
        if to.word >= 0:
            self._written.add(to)
            self._sure.add(to)
        self.add(op, to.number, b, c)

    def read(self, register: Register) -> int:
        """The number of a register that is read."""
        if register.word >= 0 and register not in self._sure:
            self._read.add(register)
        return register.number

    def here(self) -> int:
        return len(self._code)

    def jump(self, op: Op, test: Register | None = None) -> int:
        """A jump to where `land` will say."""
        self.add(op, 0, 0 if test is None else self.read(test))
        return len(self._code) - 1

    def land(self, jump: int) -> None:
        """Let a jump lead here; the number of an instruction until the program is placed."""
        self._code[jump] = self._code[jump]._replace(a=len(self._code))

    @contextmanager
    def perhaps(self) -> Iterator[None]:
        """What is written meanwhile is perhaps not written."""
        before = self._sure.copy()
        yield
        self._sure = before

    # registers ---------------------------------------------------------------------------------

    def constant(self, value: Any, kind: Basic) -> Register:
        return self._registers.constant(value, kind)

    def variable(self, name: str) -> tuple[Register, ...]:
        """The registers of a variable."""
        return tuple(map(self._register, self.layout.variables[name]))

    def _register(self, word: Word) -> Register:
        return Register(word.place, word.double, word.place)

    def temporary(self, kind: Basic) -> Register:
        """A register up to the end of the statement."""
        double = kind == Basic.DOUBLE
        pool, used = self._pools[double], self._used[double]
        if used == len(pool):
            pool.append(self._registers.new(double))
        self._used[double] += 1
        return pool[used]

    def lasting(self, kind: Basic) -> Register:
        """A register up to the end of the frame."""
        found = self.temporary(kind)
        self._floor = self._used.copy()
        return found

    def release(self) -> None:
        """Take temporary registers back."""
        self._used = self._floor.copy()

    @contextmanager
    def frame(self) -> Iterator[dict[str, tuple[Register, ...]]]:
        """Of a loop with a local name, whose registers are to be put into what is yielded."""
        floor, outer = self._floor, self._locals
        self._locals = dict(outer)
        yield self._locals
        self._floor, self._locals = floor, outer

    def local(self, name: str) -> tuple[Register, ...]:
        return self._locals[name]
