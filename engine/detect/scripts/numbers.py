"""Arithmetic of `long`s, which wrap at 64 bits, and of `double`s (IEEE 754). Java's, both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tidegate.engine.detect.scripts.value_types import LARGEST, SMALLEST, wrapped

NULL = "null is no operand"


class FailedError(Exception):
    """An expression has failed. `kind`: arithmetic, index, null or function."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def _add(a: int, b: int) -> int:
    c = a + b
    return c if SMALLEST <= c <= LARGEST else wrapped(c)


def _subtract(a: int, b: int) -> int:
    c = a - b
    return c if SMALLEST <= c <= LARGEST else wrapped(c)


def _multiply(a: int, b: int) -> int:
    return wrapped(a * b)


def _check_known(a: float | None, b: float | None) -> None:
    if a is None or b is None:
        raise FailedError("null", NULL)


def _check_divisor(a: int, b: int) -> None:
    _check_known(a, b)
    if not b:
        raise FailedError("arithmetic", "division by zero")


def _divide(a: int, b: int) -> int:
    """Truncated towards 0."""
    _check_divisor(a, b)
    quotient = abs(a) // abs(b)
    return wrapped(quotient if (a < 0) == (b < 0) else -quotient)


def _remainder(a: int, b: int) -> int:
    """With the sign of the dividend."""
    _check_divisor(a, b)
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def _double_divide(a: float, b: float) -> float:
    if b:
        return a / b
    _check_known(a, b)
    if not a or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _double_remainder(a: float, b: float) -> float:
    _check_known(a, b)
    if not b or math.isinf(a):
        return math.nan
    return math.fmod(a, b)


LONGS: Mapping[str, Callable[[int, int], int]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
}
DOUBLES: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _double_divide,
    "%": _double_remainder,
}
