"""What instructions calculate, as Java does: a `long` wraps, a `double` is IEEE 754's."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

from llvmlite import ir

from tidegate.engine.detect.scripts.compiled.builder import F64, I64, Builder, integer, real
from tidegate.engine.detect.scripts.compiled.instructions import Instruction, Op

_NAN = ir.Constant(F64, float("nan"))
_INTEGERS = {Op.ADD_I: "add", Op.SUB_I: "sub", Op.MUL_I: "mul"}
_DOUBLES = {Op.ADD_F: "fadd", Op.SUB_F: "fsub", Op.MUL_F: "fmul"}
_TESTS_I = {Op.LESS_I: "<", Op.MOST_I: "<=", Op.SAME_I: "==", Op.OTHER_I: "!="}
_TESTS_F = {Op.LESS_F: "<", Op.MOST_F: "<=", Op.SAME_F: "==", Op.OTHER_F: "!="}
_ROUNDED = {Op.ABS_F: "fabs", Op.FLOOR: "floor", Op.CEIL: "ceil"}


class Arithmetic(Builder):
    """Adds the instructions a = b op c."""

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
                self._put(to, b.sub(integer(1), self._i(of.b)))
            case Op.DOUBLE:
                self._put(to, b.sitofp(self._i(of.b), F64), True)
            case Op.LONG:
                self._put(to, self._whole(self._f(of.b)))
            case Op.ROUND:  # `value + 0.5` would be rounded itself
                value = self._f(of.b)
                lower = self._call("floor", value)
                up = b.fcmp_ordered(">=", b.fsub(value, lower), real(0.5))
                self._put(to, self._whole(b.select(up, b.fadd(lower, real(1.0)), lower)))
            case Op.DIV_I:
                self._put(to, self._quotient(self._i(of.b), self._i(of.c)))
            case Op.MOD_I:
                x, y = self._i(of.b), self._i(of.c)
                self._put(to, b.sub(x, b.mul(self._quotient(x, y), y)))
            case Op.NEG_I:
                self._put(to, b.neg(self._i(of.b)))
            case Op.ABS_I:
                x = self._i(of.b)
                self._put(to, b.select(b.icmp_signed("<", x, integer(0)), b.neg(x), x))
            case Op.MIN_I | Op.MAX_I:
                x, y = self._i(of.b), self._i(of.c)
                less = b.icmp_signed("<", *((y, x) if op == Op.MIN_I else (x, y)))
                self._put(to, b.select(less, y, x))
            case Op.DIV_F:
                x, y = self._f(of.b), self._f(of.c)
                zero = b.fcmp_ordered("==", y, real(0.0))
                found = b.fdiv(x, y)
                none = b.and_(zero, b.fcmp_unordered("uno", found, found))
                self._put(to, b.select(none, _NAN, found), True)
            case Op.MOD_F:
                x, y = self._f(of.b), self._f(of.c)
                endless = b.fcmp_ordered("==", self._call("fabs", x), real(float("inf")))
                none = b.or_(b.fcmp_ordered("==", y, real(0.0)), endless)
                self._put(to, b.select(none, _NAN, b.frem(x, y)), True)
            case Op.NEG_F:
                self._put(to, b.fneg(self._f(of.b)), True)
            case Op.SQRT:
                x = self._f(of.b)
                there = b.fcmp_ordered(">=", x, real(0.0))
                self._put(to, b.select(there, self._call("sqrt", x), _NAN), True)
            case Op.MIN_F | Op.MAX_F:
                self._put(to, self._extreme(op, self._f(of.b), self._f(of.c)), True)
            case _:
                raise AssertionError(op)

    def _quotient(self, x: Any, y: Any) -> Any:
        """Truncated towards 0; the least number by -1 wraps, which the processor refuses."""
        b = self._b
        self._fail_if(b.icmp_signed("==", y, integer(0)))
        minus = b.icmp_signed("==", y, integer(-1))
        return b.select(minus, b.neg(x), b.sdiv(x, b.select(minus, integer(1), y)))

    def _whole(self, value: Any) -> Any:
        """Truncated; what is out of range as the nearest integer, no number as 0."""
        kind = ir.FunctionType(I64, [F64])
        return self._b.call(self._declared("llvm.fptosi.sat.i64.f64", kind), [value])

    def _extreme(self, op: Op, x: Any, y: Any) -> Any:
        """The less, or the greater; -0.0 is less than 0.0, and NaN prevails."""
        b = self._b
        one, other = (y, x) if op == Op.MIN_F else (x, y)
        negative = b.icmp_signed("<", b.bitcast(one, I64), integer(0))
        signs = b.and_(b.fcmp_ordered("==", x, y), negative)
        second = b.or_(b.fcmp_ordered("<", one, other), signs)
        return b.select(b.fcmp_unordered("uno", x, y), _NAN, b.select(second, y, x))
