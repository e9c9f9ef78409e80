"""A function of LLVM's as it is built: registers, words of the instance, columns, failures."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from tidegate.engine.detect.scripts.compiled import context as at
from tidegate.engine.detect.scripts.compiled.kernel import FAILED
from tidegate.engine.detect.scripts.compiled.layout import Layout
from tidegate.engine.detect.scripts.compiled.registers import Registers

I64, F64 = ir.IntType(64), ir.DoubleType()
WORDS = I64.as_pointer()
KIND = ir.FunctionType(I64, [WORDS, WORDS, *[I64] * 5])
"""row, context, now, place, key, cause, records: records."""


def integer(value: int) -> Any:
    return ir.Constant(I64, int(value))


def real(value: float) -> Any:
    return ir.Constant(F64, value)


class Builder:
    """Registers are variables in memory, which LLVM makes registers of the processor."""

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
        self._undo, self._steps = self._variable(integer(0)), self._variable(integer(0))
        self._status = self._variable(integer(FAILED))
        self._failure = function.append_basic_block("failure")

    def _fail_if(self, condition: Any, status: int = FAILED) -> None:
        b = self._b
        if status != FAILED:
            b.store(b.select(condition, integer(status), b.load(self._status)), self._status)
        past = self._function.append_basic_block()
        b.cbranch(condition, self._failure, past)
        b.position_at_end(past)

    def _fail(self) -> None:
        """Put back what was overwritten, last first, and take back what was emitted."""
        b = self._b
        b.position_at_end(self._failure)
        with self._loop(lambda: b.icmp_signed(">", b.load(self._undo), integer(0))):
            undo = b.sub(b.load(self._undo), integer(1))
            b.store(undo, self._undo)
            place = b.load(b.gep(self._address(at.WHERE), [undo]))
            b.store(b.load(b.gep(self._address(at.WAS), [undo])), self._word(place))
        outputs = b.bitcast(self._address(at.OUTPUT), ir.IntType(16).as_pointer())
        with self._loop(lambda: b.icmp_signed(">", b.load(self._records), self._first)):
            records = b.sub(b.load(self._records), integer(1))
            b.store(records, self._records)
            output = b.sext(b.load(b.gep(outputs, [records])), I64)
            count = b.gep(self._address(at.COUNTS), [output])
            b.store(b.sub(b.load(count), integer(1)), count)
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
            value = real(own.doubles[number]) if double else integer(own.integers[number])
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
        return self._b.bitcast(found, F64) if double else found

    def _store(self, value: Any, address: Any, double: bool) -> None:
        self._b.store(self._b.bitcast(value, I64) if double else value, address)

    def _known(self, place: int) -> Any:
        """A word of the context, loaded once."""
        if place not in self._kept:
            where = self._first_block.gep(self._context, [integer(place)])
            self._kept[place] = self._first_block.load(where)
        return self._kept[place]

    def _address(self, place: int) -> Any:
        if ("to", place) not in self._kept:
            found = self._first_block.inttoptr(self._known(place), WORDS)
            self._kept["to", place] = found
        return self._kept["to", place]

    def _column(self, of: int, double: bool, number: int) -> Any:
        return self._address(self._columns.place(of, double, number))

    def _bit(self, condition: Any) -> Any:
        return self._b.zext(condition, I64)

    def _call(self, name: str, value: Any) -> Any:
        kind = ir.FunctionType(F64, [F64])
        return self._b.call(self._declared(f"llvm.{name}.f64", kind), [value])

    def _declared(self, name: str, kind: Any) -> Any:
        module = self._function.module
        return module.globals.get(name) or ir.Function(module, kind, name)
