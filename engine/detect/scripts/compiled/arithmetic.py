"""Operations on values of one word, as Java has them: a `long` wraps, a `double` is IEEE 754's.

Each is a function of the function that is built and of the operands, and gives the result. A
boolean is the integer 0 or 1. Example: `LONGS["+"](function, x, y)`.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from llvmlite import ir

from tidegate.engine.detect.scripts.compiled.function import F64, I64, Function, integer, real

Operation = Callable[..., Any]
_NAN = ir.Constant(F64, float("nan"))


def _of_builder(name: str) -> Operation:
    return lambda f, *operands: getattr(f.b, name)(*operands)


def _of_llvm(name: str) -> Operation:
    return lambda f, x: f.intrinsic(f"llvm.{name}.f64", x)


def _test(compare: str, sign: str) -> Operation:
    return lambda f, x, y: f.b.zext(getattr(f.b, compare)(sign, x, y), I64)


def _as_it_is(_: Function, x: Any) -> Any:
    return x


def _quotient(f: Function, x: Any, y: Any) -> Any:
    """Truncated towards 0; the least number by -1 wraps, which the processor refuses."""
    b = f.b
    f.fail_if(b.icmp_signed("==", y, integer(0)))
    minus = b.icmp_signed("==", y, integer(-1))
    return b.select(minus, b.neg(x), b.sdiv(x, b.select(minus, integer(1), y)))


def _remainder(f: Function, x: Any, y: Any) -> Any:
    return f.b.sub(x, f.b.mul(_quotient(f, x, y), y))


def _absolute(f: Function, x: Any) -> Any:
    return f.b.select(f.b.icmp_signed("<", x, integer(0)), f.b.neg(x), x)


def _chosen(sign: str) -> Operation:
    """The second operand if it is less, or greater."""
    return lambda f, x, y: f.b.select(f.b.icmp_signed(sign, y, x), y, x)


def _double_quotient(f: Function, x: Any, y: Any) -> Any:
    b = f.b
    found = b.fdiv(x, y)
    none = b.and_(b.fcmp_ordered("==", y, real(0.0)), b.fcmp_unordered("uno", found, found))
    return b.select(none, _NAN, found)


def _double_remainder(f: Function, x: Any, y: Any) -> Any:
    b = f.b
    endless = b.fcmp_ordered("==", f.intrinsic("llvm.fabs.f64", x), real(float("inf")))
    none = b.or_(b.fcmp_ordered("==", y, real(0.0)), endless)
    return b.select(none, _NAN, b.frem(x, y))


def _root(f: Function, x: Any) -> Any:
    there = f.b.fcmp_ordered(">=", x, real(0.0))
    return f.b.select(there, f.intrinsic("llvm.sqrt.f64", x), _NAN)


def whole(f: Function, x: Any) -> Any:
    """Truncated; what is out of range as the nearest integer, no number as 0."""
    return f.intrinsic("llvm.fptosi.sat.i64.f64", x, I64)


def _rounded(f: Function, x: Any) -> Any:
    """The nearest integer, of two the greater. `x + 0.5` would be rounded itself."""
    b, lower = f.b, f.intrinsic("llvm.floor.f64", x)
    up = b.fcmp_ordered(">=", b.fsub(x, lower), real(0.5))
    return whole(f, b.select(up, b.fadd(lower, real(1.0)), lower))


def _extreme(sign: str) -> Operation:
    """The less, or the greater; -0.0 is less than 0.0, and NaN prevails."""

    def extreme(f: Function, x: Any, y: Any) -> Any:
        b = f.b
        one, other = (y, x) if sign == "<" else (x, y)
        negative = b.icmp_signed("<", b.bitcast(one, I64), integer(0))
        signs = b.and_(b.fcmp_ordered("==", x, y), negative)
        second = b.or_(b.fcmp_ordered("<", one, other), signs)
        return b.select(b.fcmp_unordered("uno", x, y), _NAN, b.select(second, y, x))

    return extreme


_SIGNS = ("<", "<=", ">", ">=", "==", "!=")
LONGS: Mapping[str, Operation] = {
    "+": _of_builder("add"), "-": _of_builder("sub"), "*": _of_builder("mul"), "/": _quotient,
    "%": _remainder, "-x": _of_builder("neg"), "abs": _absolute, "min": _chosen("<"),
    "max": _chosen(">"), "double": lambda f, x: f.b.sitofp(x, F64), "long": _as_it_is,
    "microseconds": _as_it_is, **{sign: _test("icmp_signed", sign) for sign in _SIGNS},
}  # fmt: skip
"""By their names in a script; also of booleans, times, durations and codes of strings."""
DOUBLES: Mapping[str, Operation] = {
    "+": _of_builder("fadd"), "-": _of_builder("fsub"), "*": _of_builder("fmul"),
    "/": _double_quotient, "%": _double_remainder, "-x": _of_builder("fneg"),
    "abs": _of_llvm("fabs"), "min": _extreme("<"), "max": _extreme(">"), "sqrt": _root,
    "floor": _of_llvm("floor"), "ceil": _of_llvm("ceil"), "double": _as_it_is, "long": whole,
    "round": _rounded, **{sign: _test("fcmp_ordered", sign) for sign in _SIGNS},
    "!=": _test("fcmp_unordered", "!="),
}  # fmt: skip
