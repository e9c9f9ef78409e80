"""Registers, and the instructions of one program as they are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tidegate.engine.script.compiled import execute as x
from tidegate.engine.script.compiled.layout import Items, Layout, Word
from tidegate.rules.eventscript.types import Basic


class Register(NamedTuple):
    """A register. `word`: that of the instance which it stands for, -1 = none."""

    number: int
    double: bool
    word: int = -1


class Registers:
    """The registers of a script: its variables' come first, constants and temporary ones as they
    are needed. `texts`: the strings that stand in it, by code."""

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
    """The instructions of one program. Registers of variables are loaded before them where they are
    read, or perhaps not written; what is written is stored behind."""

    def __init__(self, layout: Layout, registers: Registers) -> None:
        self.layout = layout
        self._registers = registers
        self._pools: tuple[list[Register], list[Register]] = ([], [])
        self._locals: dict[str, tuple[Register, ...]] = {}
        self._arrays: dict[str, Items] = layout.arrays
        self.begin()

    def begin(self) -> None:
        """Start a program."""
        self._code: list[list[int]] = []
        self._landed = -1
        self._read: set[Register] = set()
        self._written: set[Register] = set()
        self._sure: set[Register] = set()
        self._used, self._floor = [0, 0], [0, 0]

    def ended(self) -> list[int]:
        """The whole program."""
        if not self._code:
            return []
        loads = sorted(self._read | (self._written - self._sure))
        before = [[x.LOAD_F if r.double else x.LOAD_I, r.number, r.word, 0] for r in loads]
        after = [
            [x.STORE_F if r.double else x.STORE_I, r.number, r.word, 0]
            for r in sorted(self._written)
        ]
        for line in self._code:
            if line[0] in x.JUMPS:
                line[1] += len(before)
        return [n for line in [*before, *self._code, *after, [x.END, 0, 0, 0]] for n in line]

    # instructions ------------------------------------------------------------------------------

    def add(self, op: int, a: int = 0, b: int = 0, c: int = 0) -> None:
        self._code.append([op, a, b, c])

    def put(self, op: int, to: Register, b: int = 0, c: int = 0) -> None:
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

    def jump(self, op: int, test: Register | None = None) -> int:
        """A jump to where `land` will say."""
        self.add(op, 0, 0 if test is None else self.read(test))
        return len(self._code) - 1

    def unless(self, test: Register) -> int:
        """A jump unless a condition holds, which is not read again: a comparison that was made just
        for it becomes part of it."""
        if self.made_last(test) and self._code[-1][0] in x.TESTS:
            made, _, b, c = self._code[-1]
            self._code[-1] = [x.TESTS[made], 0, b, c]
            return len(self._code) - 1
        return self.jump(x.JUMP_UNLESS, test)

    def land(self, jump: int) -> None:
        """Let a jump lead here; the number of an instruction until the program is placed."""
        self._code[jump][1] = self._landed = len(self._code)

    def made_last(self, register: Register) -> bool:
        """Whether the last instruction has just made the value of a temporary register."""
        if register.word >= 0 or not self._code or self._landed == len(self._code):
            return False
        double = register.double
        passing = self._pools[double][self._floor[double] : self._used[double]]
        op, to = self._code[-1][:2]
        made = op in (x.MAKES_F if double else x.MAKES_I)
        return made and to == register.number and register in passing

    def remake(self, to: Register) -> None:
        """Let the last instruction put its value into another register."""
        if to.word >= 0:
            self._written.add(to)
            self._sure.add(to)
        self._code[-1][1] = to.number

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
