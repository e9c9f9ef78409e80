"""A program as one function of LLVM's: a transition of an instance."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from tidegate.engine.core.values import FOREVER
from tidegate.engine.detect.scripts.compiled import context as at
from tidegate.engine.detect.scripts.compiled.arithmetic import Arithmetic
from tidegate.engine.detect.scripts.compiled.builder import F64, integer, real
from tidegate.engine.detect.scripts.compiled.instructions import JUMPS, Instruction, Op
from tidegate.engine.detect.scripts.compiled.kernel import FULL
from tidegate.engine.detect.scripts.compiled.layout import Items

UNDO = 1 << 14
"""Elements of arrays that a transition may change; one that changes more is interpreted."""


class Function(Arithmetic):
    """Makes a function of a program."""

    def make(self, program: Sequence[Instruction]) -> None:
        start = self._b.block
        targets = {each.a for each in program if each.op in JUMPS}
        blocks = {n: self._function.append_basic_block(f"at{n}") for n in sorted(targets)}
        for n, each in enumerate(program):
            self._enter(blocks.get(n))
            self._add(each, blocks)
        self._enter(blocks.get(len(program)))
        self._b.ret(self._b.load(self._records))
        self._fail()
        self._first_block.branch(start)

    def _enter(self, block: Any) -> None:
        if block is not None:
            if not self._b.block.is_terminated:
                self._b.branch(block)
            self._b.position_at_end(block)

    def _add(self, of: Instruction, blocks: dict[int, Any]) -> None:
        b, op, a = self._b, of.op, of.a
        match op:
            case Op.COUNT:
                steps = b.add(b.load(self._steps), integer(a))
                b.store(steps, self._steps)
                self._fail_if(b.icmp_signed(">", steps, integer(self._steps_max)))
            case Op.LOAD_I | Op.LOAD_F:
                double = op == Op.LOAD_F
                self._put(a, self._load(self._word(integer(of.b)), double), double)
            case Op.STORE_I | Op.STORE_F:
                double = op == Op.STORE_F
                self._store(self._get(a, double), self._word(integer(of.b)), double)
            case Op.EVENT_I | Op.EVENT_F:
                double = op == Op.EVENT_F
                column = self._column(at.EVENTS, double, of.b)
                self._put(a, self._load(b.gep(column, [self._place]), double), double)
            case Op.KEY_I | Op.KEY_F:
                double = op == Op.KEY_F
                column = self._column(at.KEYS, double, of.b)
                self._put(a, self._load(b.gep(column, [self._key]), double), double)
            case Op.JUMP:
                b.branch(blocks[a])
            case Op.JUMP_IF | Op.JUMP_UNLESS:
                holds = b.icmp_signed("!=", self._i(of.b), integer(0))
                past = self._function.append_basic_block()
                there = (blocks[a], past) if op == Op.JUMP_IF else (past, blocks[a])
                b.cbranch(holds, *there)
                b.position_at_end(past)
            case Op.GET_I | Op.GET_F:
                double = op == Op.GET_F
                self._put(a, self._load(self._element(of), double), double)
            case Op.SET_I | Op.SET_F:
                double = op == Op.SET_F
                self._room(integer(1))
                element = self._element(of)
                self._note(self._place_of(of))
                self._store(self._get(a, double), element, double)
            case Op.NEW:
                self._fill(self._arrays[a], integer(of.b), lambda _: integer(0))
            case Op.COPY:
                other = self._arrays[of.b]
                self._fill(
                    self._arrays[a],
                    b.load(self._word(integer(other.length))),
                    lambda n: b.load(self._word(b.add(n, integer(other.first)))),
                )
            case Op.OUT_I | Op.OUT_F:
                double = op == Op.OUT_F
                self._emission_room()
                row = b.load(b.gep(self._address(at.COUNTS), [integer(of.c)]))
                word = b.gep(self._column(at.OUTPUTS, double, of.b), [row])
                self._store(self._get(a, double), word, double)
            case Op.EMIT:
                self._emit(a)
            case Op.TIMER_AT:
                instant = self._i(of.b)
                later = b.icmp_signed(">", instant, self._now)
                b.store(b.select(later, instant, integer(FOREVER)), self._timer(a))
            case Op.TIMER_CLOCK:
                b.store(self._next(of.b), self._timer(a))
            case Op.TIMER_I | Op.TIMER_F:
                due = self._due(of)
                b.store(due, self._timer(a))
            case _:
                self._calculate(of)

    # arrays ------------------------------------------------------------------------------------

    def _place_of(self, of: Instruction) -> Any:
        """The word of element c of array b."""
        return self._b.add(self._i(of.c), integer(self._arrays[of.b].first))

    def _element(self, of: Instruction) -> Any:
        length = self._b.load(self._word(integer(self._arrays[of.b].length)))
        self._fail_if(self._b.icmp_unsigned(">=", self._i(of.c), length))
        return self._word(self._place_of(of))

    def _room(self, count: Any) -> None:
        """Fail unless so many words more may be overwritten."""
        after = self._b.add(self._b.load(self._undo), count)
        self._fail_if(self._b.icmp_signed(">", after, integer(UNDO)))

    def _note(self, place: Any) -> None:
        """Note what a word is, which is overwritten next."""
        b = self._b
        undo = b.load(self._undo)
        b.store(place, b.gep(self._address(at.WHERE), [undo]))
        b.store(b.load(self._word(place)), b.gep(self._address(at.WAS), [undo]))
        b.store(b.add(undo, integer(1)), self._undo)

    def _fill(self, items: Items, count: Any, element: Callable[[Any], Any]) -> None:
        """Make an array one of `count` elements."""
        b = self._b
        self._room(b.add(count, integer(1)))
        self._note(integer(items.length))
        b.store(count, self._word(integer(items.length)))
        n = self._variable(integer(0))
        b.store(integer(0), n)
        with self._loop(lambda: b.icmp_signed("<", b.load(n), count)):
            place = b.add(b.load(n), integer(items.first))
            self._note(place)
            b.store(element(b.load(n)), self._word(place))
            b.store(b.add(b.load(n), integer(1)), n)

    # emissions ---------------------------------------------------------------------------------

    def _emission_room(self) -> None:
        full = self._b.icmp_signed("==", self._b.load(self._records), self._known(at.ROOM))
        self._fail_if(full, FULL)

    def _emit(self, output: int) -> None:
        b = self._b
        self._emission_room()
        records = b.load(self._records)
        count = b.gep(self._address(at.COUNTS), [integer(output)])
        row = b.load(count)
        for column, bits, value in (
            (at.CAUSE, 64, self._cause),
            (at.KEY, 32, self._key),
            (at.OUTPUT, 16, integer(output)),
            (at.NUMBER, 32, b.sub(records, self._first)),
            (at.ROW, 64, row),
        ):
            kind = ir.IntType(bits)
            first = b.bitcast(self._address(column), kind.as_pointer())
            b.store(b.trunc(value, kind) if bits < 64 else value, b.gep(first, [records]))
        b.store(b.add(row, integer(1)), count)
        b.store(b.add(records, integer(1)), self._records)

    # timers ------------------------------------------------------------------------------------

    def _due(self, of: Instruction) -> Any:
        """When a timer is due; never, if that is too far."""
        b = self._b
        never, left = integer(FOREVER), b.sub(integer(FOREVER), self._now)
        unit = self._i(of.c)
        if of.op == Op.TIMER_I:
            length = self._i(of.b)
            self._fail_if(b.icmp_signed("<=", length, integer(0)))
            near = b.icmp_signed("<=", length, b.sdiv(b.sub(left, integer(1)), unit))
            return b.select(near, b.add(self._now, b.mul(length, unit)), never)
        length = self._f(of.b)
        self._fail_if(b.fcmp_unordered("<=", length, real(0.0)))
        span = self._whole(self._call("rint", b.fmul(length, b.sitofp(unit, F64))))
        least = b.select(b.icmp_signed("<", span, integer(1)), integer(1), span)
        return b.select(b.icmp_signed("<", span, left), b.add(self._now, least), never)

    def _timer(self, number: int) -> Any:
        return self._b.gep(self._address(at.TIMERS), [integer(number)])

    def _next(self, clock: int) -> Any:
        """When a clock is next. Python knows it, once it has made a transition since it was."""
        b = self._b
        since, found = (
            b.load(b.gep(self._address(at.CLOCKS), [integer(2 * clock + n)])) for n in range(2)
        )
        self._fail_if(b.icmp_signed("<", self._now, since))
        self._fail_if(b.icmp_signed(">=", self._now, found))
        return found
