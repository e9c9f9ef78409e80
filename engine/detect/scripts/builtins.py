"""The functions that every script has, and the way to and from the Python functions it declares."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from tidegate.engine.core.text.times import micros_text
from tidegate.engine.detect.scripts.numbers import FailedError
from tidegate.engine.detect.scripts.value_types import LARGEST, SMALLEST, wrapped
from tidegate.rules.eventscript.types import Array, Basic, Structure, Type

_LONG = re.compile(r"[+-]?[0-9]+")
_DIGITS_MAX = 4_000
"""Of a text that is read as a `long`, zeros before it included: Python refuses longer ones."""
_PYTHON = {Basic.BOOLEAN: bool, Basic.LONG: int, Basic.STRING: str, Basic.TIME: int}


def built_in(name: str, kinds: Sequence[Type], result: Type) -> Callable[..., Any]:
    """The function of a name for operands of these types, none of which is null. It raises
    `FailedError`."""
    match name:
        case "length":
            return len
        case "concat":
            return lambda *parts: "".join(parts)
        case "substring":
            return _substring
        case "abs":
            return abs if result == Basic.DOUBLE else lambda value: wrapped(abs(value))
        case "min" | "max":
            return _extreme(min if name == "min" else max, result)
        case "floor" | "ceil":
            rounded = math.floor if name == "floor" else math.ceil
            return lambda x: math.copysign(rounded(x), x) if math.isfinite(x) else x
        case "sqrt":
            return lambda x: math.sqrt(x) if x >= 0 else math.nan
        case "microseconds":
            return int
        case "round":
            return lambda x: _whole(_nearest(x) if math.isfinite(x) else x)
        case "long":
            return _long if kinds[0] == Basic.STRING else _whole
        case "double":
            return _double if kinds[0] == Basic.STRING else float
        case "string":
            return _text(kinds[0])
        case "object":
            return lambda value: to_object(value, kinds[0])
    raise KeyError(name)


def to_object(value: Any, kind: Type) -> Any:
    """A value as an object."""
    if value is None or kind == Basic.OBJECT:
        return value
    given = to_python(value, kind)
    return pa.scalar(given, pa.timestamp("us", "UTC") if kind == Basic.TIME else None)


def to_python(value: Any, kind: Type) -> Any:
    """A value as a Python function takes it: a structure as a dict; a time in microseconds."""
    if value is None:
        return None
    if kind == Basic.OBJECT:
        return value.as_py()
    if isinstance(kind, Array):
        return [to_python(each, kind.of) for each in value]
    if isinstance(kind, Structure):
        return {n: to_python(v, k) for (n, k), v in zip(kind.fields, value, strict=True)}
    return value


def of_python(value: Any, kind: Type) -> Any:
    """What a Python function returns, as a value of the type. Raises `FailedError`."""
    if value is None:
        return None
    if kind == Basic.OBJECT:
        return pa.scalar(value)
    if isinstance(kind, Array) and isinstance(value, list | tuple):
        return [of_python(each, kind.of) for each in value]
    if isinstance(kind, Structure) and isinstance(value, dict):
        return tuple(of_python(value.get(name), type_) for name, type_ in kind.fields)
    if kind == Basic.DOUBLE and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(kind, Basic) and type(value) is _PYTHON.get(kind):
        return wrapped(value) if isinstance(value, int) and kind != Basic.BOOLEAN else value
    raise FailedError("function", f"a function of type {kind} has returned {type(value).__name__}")


def _substring(text: str, begin: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= begin <= end <= len(text):
        raise FailedError("index", f"characters {begin} to {end} of {len(text)}")
    return text[begin:end]


def _extreme(choose: Callable[..., Any], result: Type) -> Callable[..., Any]:
    """Of doubles as in Java: with a NaN among them NaN, and -0.0 is below 0.0."""
    if result != Basic.DOUBLE:
        return choose

    def extreme(*values: float) -> Any:
        if any(v != v for v in values):
            return math.nan
        return choose(values, key=lambda v: (v, math.copysign(1.0, v)))

    return extreme


def _nearest(value: float) -> int:
    """The nearest integer, of two the greater. `value + 0.5` would be rounded itself."""
    below = math.floor(value)
    return below + (value - below >= 0.5)


def _whole(value: float) -> int:
    """Truncated; what is out of range as the nearest `long`, no number as 0."""
    if value != value:
        return 0
    if math.isinf(value):
        return LARGEST if value > 0 else SMALLEST
    return min(max(int(value), SMALLEST), LARGEST)


def _long(text: str) -> int:
    """As Java has it: a sign and digits, nothing else."""
    value = int(text) if len(text) <= _DIGITS_MAX and _LONG.fullmatch(text) else None
    if value is None or not SMALLEST <= value <= LARGEST:
        raise FailedError("function", f"no number: {text[:40]!r}")
    return value


def _double(text: str) -> float:
    """Python's, but for `1_0` and digits that are not ASCII."""
    try:
        if text.isascii() and "_" not in text:
            return float(text)
    except ValueError:
        pass
    raise FailedError("function", f"no number: {text[:40]!r}")


def _text(kind: Type) -> Callable[[Any], str]:
    if kind == Basic.BOOLEAN:
        return lambda value: "true" if value else "false"
    if kind == Basic.TIME:
        return lambda value: micros_text(value) + "Z"
    return repr if kind == Basic.DOUBLE else str
