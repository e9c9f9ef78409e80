"""Programs as machine code, made by LLVM through llvmlite, which numba brings.

A function makes one transition of one instance:

    records = function(row, context, now, place, key, cause, records)

row: the instance's words; context: addresses; place: where the event's values stand in
their columns; records: how many emissions there are before it, and after it. FAILED: Python shall
make the transition; FULL: there is no room for an emission. Neither has changed anything.
The text of a script is never part of what is compiled: only operations and numbers are.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir

from tidegate.engine.script.compiled import context as at
from tidegate.engine.script.compiled.instructions import JUMPS, Instruction, Op
from tidegate.engine.script.compiled.kernel import FAILED, FULL
from tidegate.engine.script.compiled.layout import Items, Layout
from tidegate.engine.script.compiled.registers import Registers
from tidegate.engine.values import FOREVER

UNDO = 1 << 14
"""Elements of arrays that a transition may change; one that changes more is interpreted."""
_OPTIMISED = 2

_I64, _F64 = ir.IntType(64), ir.DoubleType()
_WORDS = _I64.as_pointer()
_KIND = ir.FunctionType(_I64, [_WORDS, _WORDS, *[_I64] * 5])
_NAN = ir.Constant(_F64, float("nan"))

_INTEGERS = {Op.ADD_I: "add", Op.SUB_I: "sub", Op.MUL_I: "mul"}
_DOUBLES = {Op.ADD_F: "fadd", Op.SUB_F: "fsub", Op.MUL_F: "fmul"}
_TESTS_I = {Op.LESS_I: "<", Op.MOST_I: "<=", Op.SAME_I: "==", Op.OTHER_I: "!="}
_TESTS_F = {Op.LESS_F: "<", Op.MOST_F: "<=", Op.SAME_F: "==", Op.OTHER_F: "!="}
_ROUNDED = {Op.ABS_F: "fabs", Op.FLOOR: "floor", Op.CEIL: "ceil"}


class Native:
    """The functions of one script; an address holds as long as this does."""

    def __init__(self, layout: Layout, registers: Registers, steps_max: int) -> None:
        self.context = at.Context(layout)
        self._given = self.context, layout, registers, steps_max
        self._made: list[Any] = []

    def function(self, program: Sequence[Instruction]) -> int:
        """The address of a program's function."""
        module = ir.Module()
        name = "transition"
        _Function(ir.Function(module, _KIND, name), *self._given).make(program)
        machine = _machine()
        built = llvm.parse_assembly(str(module))
        passes = llvm.create_pass_builder(
            machine, llvm.create_pipeline_tuning_options(speed_level=_OPTIMISED)
        )
        passes.getModulePassManager().run(built, passes)
        engine = llvm.create_mcjit_compiler(built, machine)
        engine.finalize_object()
        self._made.append(engine)
        return int(engine.get_function_address(name))


def _machine() -> Any:
    """This processor, with all it can do."""
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # not known for this processor
        features = ""
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=_OPTIMISED
    )


class _Function:
    """A program as one function of LLVM's. Registers are variables in memory, which LLVM makes
    registers of the processor."""

    def __init__(
        self,
        function: Any,
        columns: at.Context,
        layout: Layout,
        registers: Registers,
        steps_max: int,
    ) -> None:
        self._function = function
        self._columns, self._arrays = columns, [*layout.arrays.values()]
        self._registers, self._steps_max = registers, steps_max
        self._row, self._context, self._now, self._place, self._key, self._cause, self._first = (
            function.args
        )
        self._first_block = ir.IRBuilder(function.append_basic_block("variables"))
        self._b = ir.IRBuilder(function.append_basic_block("program"))
        self._kept: dict[Any, Any] = {}
        self._records = self._variable(self._first)
        self._undo, self._steps = self._variable(_long(0)), self._variable(_long(0))
        self._status = self._variable(_long(FAILED))
        self._failure = function.append_basic_block("failure")

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
                steps = b.add(b.load(self._steps), _long(a))
                b.store(steps, self._steps)
                self._fail_if(b.icmp_signed(">", steps, _long(self._steps_max)))
            case Op.LOAD_I | Op.LOAD_F:
                double = op == Op.LOAD_F
                self._put(a, self._load(self._word(_long(of.b)), double), double)
            case Op.STORE_I | Op.STORE_F:
                double = op == Op.STORE_F
                self._store(self._get(a, double), self._word(_long(of.b)), double)
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
                holds = b.icmp_signed("!=", self._i(of.b), _long(0))
                past = self._function.append_basic_block()
                there = (blocks[a], past) if op == Op.JUMP_IF else (past, blocks[a])
                b.cbranch(holds, *there)
                b.position_at_end(past)
            case Op.GET_I | Op.GET_F:
                double = op == Op.GET_F
                self._put(a, self._load(self._element(of), double), double)
            case Op.SET_I | Op.SET_F:
                double = op == Op.SET_F
                self._room(_long(1))
                element = self._element(of)
                self._note(self._place_of(of))
                self._store(self._get(a, double), element, double)
            case Op.NEW:
                self._fill(self._arrays[a], _long(of.b), lambda _: _long(0))
            case Op.COPY:
                other = self._arrays[of.b]
                self._fill(
                    self._arrays[a],
                    b.load(self._word(_long(other.length))),
                    lambda n: b.load(self._word(b.add(n, _long(other.first)))),
                )
            case Op.OUT_I | Op.OUT_F:
                double = op == Op.OUT_F
                self._emission_room()
                row = b.load(b.gep(self._address(at.COUNTS), [_long(of.c)]))
                word = b.gep(self._column(at.OUTPUTS, double, of.b), [row])
                self._store(self._get(a, double), word, double)
            case Op.EMIT:
                self._emit(a)
            case Op.TIMER_I | Op.TIMER_F:
                due = self._due(of)
                b.store(due, b.gep(self._address(at.TIMERS), [_long(a)]))
            case _:
                self._calculate(of)

    # values ------------------------------------------------------------------------------------

    def _calculate(self, of: Instruction) -> None:
        """a = b op c"""
        b, op = self._b, of.op
        if op in _INTEGERS:
            self._put(of.a, getattr(b, _INTEGERS[op])(self._i(of.b), self._i(of.c)))
        elif op in _DOUBLES:
            self._put(of.a, getattr(b, _DOUBLES[op])(self._f(of.b), self._f(of.c)), True)
        elif op in _TESTS_I:
            self._put(of.a, self._bit(b.icmp_signed(_TESTS_I[op], self._i(of.b), self._i(of.c))))
        elif op in _TESTS_F:
            compare = b.fcmp_unordered if op == Op.OTHER_F else b.fcmp_ordered
            self._put(of.a, self._bit(compare(_TESTS_F[op], self._f(of.b), self._f(of.c))))
        elif op in _ROUNDED:
            self._put(of.a, self._call(_ROUNDED[op], self._f(of.b)), True)
        else:
            self._calculate_more(of)

    def _calculate_more(self, of: Instruction) -> None:
        b, op, to = self._b, of.op, of.a
        match op:
            case Op.NOW:
                self._put(to, self._now)
            case Op.MOVE_I:
                self._put(to, self._i(of.b))
            case Op.MOVE_F:
                self._put(to, self._f(of.b), True)
            case Op.NOT:
                self._put(to, b.sub(_long(1), self._i(of.b)))
            case Op.DOUBLE:
                self._put(to, b.sitofp(self._i(of.b), _F64), True)
            case Op.LONG:
                self._put(to, self._whole(self._f(of.b)))
            case Op.ROUND:  # `value + 0.5` would be rounded itself
                value = self._f(of.b)
                lower = self._call("floor", value)
                up = b.fcmp_ordered(">=", b.fsub(value, lower), _double(0.5))
                self._put(to, self._whole(b.select(up, b.fadd(lower, _double(1.0)), lower)))
            case Op.DIV_I:
                self._put(to, self._quotient(self._i(of.b), self._i(of.c)))
            case Op.MOD_I:
                x, y = self._i(of.b), self._i(of.c)
                self._put(to, b.sub(x, b.mul(self._quotient(x, y), y)))
            case Op.NEG_I:
                self._put(to, b.neg(self._i(of.b)))
            case Op.ABS_I:
                x = self._i(of.b)
                self._put(to, b.select(b.icmp_signed("<", x, _long(0)), b.neg(x), x))
            case Op.MIN_I | Op.MAX_I:
                x, y = self._i(of.b), self._i(of.c)
                less = b.icmp_signed("<", *((y, x) if op == Op.MIN_I else (x, y)))
                self._put(to, b.select(less, y, x))
            case Op.DIV_F:
                x, y = self._f(of.b), self._f(of.c)
                zero = b.fcmp_ordered("==", y, _double(0.0))
                found = b.fdiv(x, y)
                none = b.and_(zero, b.fcmp_unordered("uno", found, found))
                self._put(to, b.select(none, _NAN, found), True)
            case Op.MOD_F:
                x, y = self._f(of.b), self._f(of.c)
                endless = b.fcmp_ordered("==", self._call("fabs", x), _double(float("inf")))
                none = b.or_(b.fcmp_ordered("==", y, _double(0.0)), endless)
                self._put(to, b.select(none, _NAN, b.frem(x, y)), True)
            case Op.NEG_F:
                self._put(to, b.fneg(self._f(of.b)), True)
            case Op.SQRT:
                x = self._f(of.b)
                there = b.fcmp_ordered(">=", x, _double(0.0))
                self._put(to, b.select(there, self._call("sqrt", x), _NAN), True)
            case Op.MIN_F | Op.MAX_F:
                self._put(to, self._extreme(op, self._f(of.b), self._f(of.c)), True)
            case _:
                raise AssertionError(op)

    def _quotient(self, x: Any, y: Any) -> Any:
        """Truncated towards 0; the least number by -1 wraps, which the processor refuses."""
        b = self._b
        self._fail_if(b.icmp_signed("==", y, _long(0)))
        minus = b.icmp_signed("==", y, _long(-1))
        return b.select(minus, b.neg(x), b.sdiv(x, b.select(minus, _long(1), y)))

    def _whole(self, value: Any) -> Any:
        """Truncated; what is out of range as the nearest integer, no number as 0."""
        kind = ir.FunctionType(_I64, [_F64])
        return self._b.call(self._declared("llvm.fptosi.sat.i64.f64", kind), [value])

    def _extreme(self, op: Op, x: Any, y: Any) -> Any:
        """The less, or the greater; -0.0 is less than 0.0, and NaN prevails."""
        b = self._b
        one, other = (y, x) if op == Op.MIN_F else (x, y)
        negative = b.icmp_signed("<", b.bitcast(one, _I64), _long(0))
        positive = b.icmp_signed(">=", b.bitcast(other, _I64), _long(0))
        signs = b.and_(b.fcmp_ordered("==", x, y), b.and_(negative, positive))
        second = b.or_(b.fcmp_ordered("<", one, other), signs)
        return b.select(b.fcmp_unordered("uno", x, y), _NAN, b.select(second, y, x))

    def _due(self, of: Instruction) -> Any:
        """When a timer is due; never, if that is too far."""
        b = self._b
        never, left = _long(FOREVER), b.sub(_long(FOREVER), self._now)
        unit = self._i(of.c)
        if of.op == Op.TIMER_I:
            length = self._i(of.b)
            self._fail_if(b.icmp_signed("<=", length, _long(0)))
            near = b.icmp_signed("<=", length, b.sdiv(b.sub(left, _long(1)), unit))
            return b.select(near, b.add(self._now, b.mul(length, unit)), never)
        length = self._f(of.b)
        self._fail_if(b.fcmp_unordered("<=", length, _double(0.0)))
        span = self._whole(self._call("rint", b.fmul(length, b.sitofp(unit, _F64))))
        least = b.select(b.icmp_signed("<", span, _long(1)), _long(1), span)
        return b.select(b.icmp_signed("<", span, left), b.add(self._now, least), never)

    # arrays ------------------------------------------------------------------------------------

    def _place_of(self, of: Instruction) -> Any:
        """The word of element c of array b."""
        return self._b.add(self._i(of.c), _long(self._arrays[of.b].first))

    def _element(self, of: Instruction) -> Any:
        length = self._b.load(self._word(_long(self._arrays[of.b].length)))
        self._fail_if(self._b.icmp_unsigned(">=", self._i(of.c), length))
        return self._word(self._place_of(of))

    def _room(self, count: Any) -> None:
        """Fail unless so many words more may be overwritten."""
        after = self._b.add(self._b.load(self._undo), count)
        self._fail_if(self._b.icmp_signed(">", after, _long(UNDO)))

    def _note(self, place: Any) -> None:
        """Note what a word is, which is overwritten next."""
        b = self._b
        undo = b.load(self._undo)
        b.store(place, b.gep(self._address(at.WHERE), [undo]))
        b.store(b.load(self._word(place)), b.gep(self._address(at.WAS), [undo]))
        b.store(b.add(undo, _long(1)), self._undo)

    def _fill(self, items: Items, count: Any, element: Callable[[Any], Any]) -> None:
        """Make an array one of `count` elements."""
        b = self._b
        self._room(b.add(count, _long(1)))
        self._note(_long(items.length))
        b.store(count, self._word(_long(items.length)))
        n = self._variable(_long(0))
        b.store(_long(0), n)
        with self._loop(lambda: b.icmp_signed("<", b.load(n), count)):
            place = b.add(b.load(n), _long(items.first))
            self._note(place)
            b.store(element(b.load(n)), self._word(place))
            b.store(b.add(b.load(n), _long(1)), n)

    # emissions ---------------------------------------------------------------------------------

    def _emission_room(self) -> None:
        full = self._b.icmp_signed("==", self._b.load(self._records), self._known(at.ROOM))
        self._fail_if(full, FULL)

    def _emit(self, output: int) -> None:
        b = self._b
        self._emission_room()
        records = b.load(self._records)
        count = b.gep(self._address(at.COUNTS), [_long(output)])
        row = b.load(count)
        for column, bits, value in (
            (at.CAUSE, 64, self._cause),
            (at.KEY, 32, self._key),
            (at.OUTPUT, 16, _long(output)),
            (at.NUMBER, 32, b.sub(records, self._first)),
            (at.ROW, 64, row),
        ):
            kind = ir.IntType(bits)
            first = b.bitcast(self._address(column), kind.as_pointer())
            b.store(b.trunc(value, kind) if bits < 64 else value, b.gep(first, [records]))
        b.store(b.add(row, _long(1)), count)
        b.store(b.add(records, _long(1)), self._records)

    # failures ----------------------------------------------------------------------------------

    def _fail_if(self, condition: Any, status: int = FAILED) -> None:
        b = self._b
        if status != FAILED:
            b.store(b.select(condition, _long(status), b.load(self._status)), self._status)
        past = self._function.append_basic_block()
        b.cbranch(condition, self._failure, past)
        b.position_at_end(past)

    def _fail(self) -> None:
        """Put back what was overwritten, last first, and take back what was emitted."""
        b = self._b
        b.position_at_end(self._failure)
        with self._loop(lambda: b.icmp_signed(">", b.load(self._undo), _long(0))):
            undo = b.sub(b.load(self._undo), _long(1))
            b.store(undo, self._undo)
            place = b.load(b.gep(self._address(at.WHERE), [undo]))
            b.store(b.load(b.gep(self._address(at.WAS), [undo])), self._word(place))
        outputs = b.bitcast(self._address(at.OUTPUT), ir.IntType(16).as_pointer())
        with self._loop(lambda: b.icmp_signed(">", b.load(self._records), self._first)):
            records = b.sub(b.load(self._records), _long(1))
            b.store(records, self._records)
            output = b.sext(b.load(b.gep(outputs, [records])), _I64)
            count = b.gep(self._address(at.COUNTS), [output])
            b.store(b.sub(b.load(count), _long(1)), count)
        b.ret(b.load(self._status))

    # what it is made of ------------------------------------------------------------------------

    @contextmanager
    def _loop(self, goes_on: Callable[[], Any]) -> Iterator[None]:
        b = self._b
        test, body, past = (self._function.append_basic_block() for _ in range(3))
        b.branch(test)
        b.position_at_end(test)
        b.cbranch(goes_on(), body, past)
        b.position_at_end(body)
        yield
        b.branch(test)
        b.position_at_end(past)

    def _variable(self, value: Any) -> Any:
        found = self._first_block.alloca(value.type)
        self._first_block.store(value, found)
        return found

    def _register(self, number: int, double: bool) -> Any:
        """A register as a variable; what it is before: a constant is never changed."""
        if (number, double) not in self._kept:
            own = self._registers
            value = _double(own.doubles[number]) if double else _long(own.integers[number])
            self._kept[number, double] = self._variable(value)
        return self._kept[number, double]

    def _get(self, number: int, double: bool) -> Any:
        return self._b.load(self._register(number, double))

    def _i(self, number: int) -> Any:
        return self._get(number, False)

    def _f(self, number: int) -> Any:
        return self._get(number, True)

    def _put(self, number: int, value: Any, double: bool = False) -> None:
        self._b.store(value, self._register(number, double))

    def _word(self, place: Any) -> Any:
        return self._b.gep(self._row, [place])

    def _load(self, address: Any, double: bool) -> Any:
        found = self._b.load(address)
        return self._b.bitcast(found, _F64) if double else found

    def _store(self, value: Any, address: Any, double: bool) -> None:
        self._b.store(self._b.bitcast(value, _I64) if double else value, address)

    def _known(self, place: int) -> Any:
        """A word of the context, loaded once."""
        if place not in self._kept:
            where = self._first_block.gep(self._context, [_long(place)])
            self._kept[place] = self._first_block.load(where)
        return self._kept[place]

    def _address(self, place: int) -> Any:
        if ("to", place) not in self._kept:
            found = self._first_block.inttoptr(self._known(place), _WORDS)
            self._kept["to", place] = found
        return self._kept["to", place]

    def _column(self, of: int, double: bool, number: int) -> Any:
        return self._address(self._columns.place(of, double, number))

    def _bit(self, condition: Any) -> Any:
        return self._b.zext(condition, _I64)

    def _call(self, name: str, value: Any) -> Any:
        kind = ir.FunctionType(_F64, [_F64])
        return self._b.call(self._declared(f"llvm.{name}.f64", kind), [value])

    def _declared(self, name: str, kind: Any) -> Any:
        module = self._function.module
        return module.globals.get(name) or ir.Function(module, kind, name)


def _long(value: int) -> Any:
    return ir.Constant(_I64, int(value))


def _double(value: float) -> Any:
    return ir.Constant(_F64, value)
