"""What operators and built-in functions give.

Longs and times are ints within 64 bits, doubles floats, arrays tuples, structures dicts that nobody
changes; null is None. `Fault` is what a failing expression raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tidegate.rules.eventscript.types import Array, Basic, Structure, Type

BLANK = " \t\n\r\f\v\x1c\x1d\x1e\x1f"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Fault(Exception):
    """A failing expression; `kind` is what its `$error` says."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def default(of: Type) -> Any:
    """What a variable of a type starts as, and what a failing expression gives."""
    match of:
        case Array():
            return ()
        case Structure(fields):
            return {name: default(each) for name, each in fields}
        case Basic.BOOLEAN:
            return False
        case Basic.DOUBLE:
            return 0.0
        case Basic.STRING:
            return ""
        case Basic.OBJECT:
            return None
    return 0


def wrap(number: int) -> int:
    """A long, or a time in microseconds, as 64 bits keep it."""
    return (number + 2**63) % 2**64 - 2**63


def truncated(left: int, right: int) -> int:
    """The quotient towards zero. Raises `Fault` where `right` is 0."""
    if right == 0:
        raise Fault("arithmetic")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def quotient(left: float, right: float) -> float:
    """IEEE 754's quotient."""
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def remainder(left: float, right: float) -> float:
    """Java's `%` of doubles: with the sign of the dividend."""
    if math.isinf(left) or right == 0:
        return math.nan
    return math.fmod(left, right)


def arithmetic(op: str, left: Any, right: Any) -> Any:
    """`+ - * / %` of two longs or times, two doubles, or two strings (only `+`)."""
    if isinstance(left, float):
        match op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return quotient(left, right)
        return remainder(left, right)
    match op:
        case "+":
            return left + right if isinstance(left, str) else wrap(left + right)
        case "-":
            return wrap(left - right)
        case "*":
            return wrap(left * right)
        case "/":
            return wrap(truncated(left, right))
    return left - right * truncated(left, right)


COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: same(left, right),
    "!=": lambda left, right: not same(left, right),
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def same(left: Any, right: Any) -> bool:
    """Equality by value. Of doubles IEEE's, within arrays and structures too."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    return bool(left == right)


# Built-in functions ---------------------------------------------------------------------------


def _substring(text: str, begin: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= begin <= end <= len(text):
        raise Fault("index")
    return text[begin:end]


def _long(value: Any) -> int:
    """Of a double truncated, at the nearest long where it is beyond; NaN is 0 (as in Java)."""
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        return max(-(2**63), min(2**63 - 1, int(value) if math.isfinite(value) else _huge(value)))
    if isinstance(value, str):
        number = _parsed(int, r"[+-]?[0-9]{1,4000}", value)
        if not -(2**63) <= number < 2**63:
            raise Fault("function")
        return int(number)
    return int(value)


def _huge(value: float) -> int:
    return 2**64 if value > 0 else -(2**64)


def _parsed(kind: Callable[[str], Any], pattern: str, text: str) -> Any:
    if re.fullmatch(pattern, text) is None:
        raise Fault("function")
    return kind(text)


def _double(value: Any) -> float:
    """A text's decimal, or no number or an infinity in any case; spaces around it are passed by."""
    if not isinstance(value, str):
        return float(value)
    digits = r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
    return float(_parsed(float, rf"[+-]?({digits}|(?i:nan|inf|infinity))", value.strip(BLANK)))


def _rounded(value: float) -> int:
    """The nearest long, a half upwards."""
    if not math.isfinite(value) or abs(value) >= 2**53:
        return _long(value)
    below = math.floor(value)
    return below + 1 if value - below >= 0.5 else below


def _whole(round_: Callable[[float], int], value: float) -> float:
    """`floor` and `ceil`, which keep the sign of a zero."""
    return math.copysign(float(round_(value)), value) if math.isfinite(value) else value


def _least(pick: Callable[[Any, Any], Any], values: tuple[Any, ...]) -> Any:
    """`min` and `max`; with a NaN among them NaN, and -0.0 is below 0.0 (as in Java)."""
    best = values[0]
    for value in values[1:]:
        if best != best or value != value:
            best = math.nan
        elif isinstance(value, float) and value == best == 0:
            best = pick((math.copysign(1, best), best), (math.copysign(1, value), value))[1]
        else:
            best = pick(best, value)
    return best


BUILT_IN: Mapping[str, Callable[..., Any]] = {
    "length": len,
    "concat": lambda *parts: "".join(parts),
    "substring": _substring,
    "microseconds": int,
    "abs": lambda value: wrap(abs(value)) if isinstance(value, int) else abs(value),
    "min": lambda *values: _least(min, values),
    "max": lambda *values: _least(max, values),
    "floor": lambda value: _whole(math.floor, value),
    "ceil": lambda value: _whole(math.ceil, value),
    "sqrt": lambda value: math.sqrt(value) if value >= 0 else math.nan,
    "round": _rounded,
    "long": _long,
    "double": _double,
}


def string(value: Any, of: Type) -> str:
    """`string(x)`: `true`, `false`; a number's shortest decimals; a time in ISO 8601, in UTC."""
    match of:
        case Basic.BOOLEAN:
            return "true" if value else "false"
        case Basic.TIME:
            try:
                instant = EPOCH + timedelta(microseconds=value)
            except OverflowError:
                raise Fault("function") from None
            return instant.replace(tzinfo=None).isoformat() + "Z"
    return str(value)
