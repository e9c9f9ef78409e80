"""What Spark computes, on whole columns. Checked kernels raise UndecidedError where Spark may raise
on a row.

Example: `subtract(int8 [-128], int8 [1])` overflows: Spark raises, and so does this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from tidegate.engine.core.columns.decimals import unscaled
from tidegate.engine.core.evaluator.casts import scaled
from tidegate.engine.core.evaluator.division import divided
from tidegate.engine.core.evaluator.nodes import (
    RaisingError,
    UndecidedError,
    Values,
    raising,
)

Kernel = Callable[..., pa.Array]


def compared(operator: str, kind: pa.DataType) -> Kernel:
    """The kernel of a comparison of two values of one type.

    For Spark NaN equals NaN and is above every number. 0.0 equals -0.0."""
    if not types.is_floating(kind):
        return _PLAIN[operator]
    return _FLOATS[operator]


def _equal(a: Values, b: Values) -> Values:
    if isinstance(a, pa.Scalar) or isinstance(b, pa.Scalar):  # no literal is NaN
        return pc.equal(a, b)
    return pc.or_kleene(pc.equal(a, b), pc.and_kleene(pc.is_nan(a), pc.is_nan(b)))


def _less(a: Values, b: Values) -> Values:
    if isinstance(b, pa.Scalar):
        return pc.less(a, b)
    return pc.or_kleene(pc.less(a, b), pc.and_not_kleene(pc.is_nan(b), pc.is_nan(a)))


_PLAIN: Mapping[str, Kernel] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_FLOATS: Mapping[str, Kernel] = {
    "=": _equal,
    "<>": lambda a, b: pc.invert(_equal(a, b)),
    "<": _less,
    "<=": lambda a, b: pc.invert(_less(b, a)),
    ">": lambda a, b: _less(b, a),
    ">=": lambda a, b: pc.invert(_less(a, b)),
}


def is_in(values: pa.Array, options: Sequence[Any]) -> pa.Array:
    """Whether each value is one of the options. Null is neither in nor out."""
    if types.is_floating(values.type):  # a set lookup tells -0.0 from 0.0
        scalars = (pa.scalar(option, values.type) for option in options)
        return reduce(pc.or_kleene, (_equal(values, scalar) for scalar in scalars))
    held = pc.is_in(values, value_set=pa.array(options, values.type))
    return pc.if_else(values.is_valid(), held, pa.scalar(None, pa.bool_()))


# -- arithmetic ----------------------------------------------------------------------------------


def arithmetic(operator: str, kind: pa.DataType) -> tuple[Kernel, bool]:
    """The kernel of an operator whose results are of `kind`; and whether it is checked. Operands
    are of that type too, but decimals: each of its own, for a remainder both of one."""
    if operator == "%":
        return _remainder, True
    if operator == "/":
        return (_decimal_quotient(kind) if types.is_decimal(kind) else _quotient), True
    if types.is_integer(kind):
        return raising(_CHECKED[operator]), True
    return _UNCHECKED[operator], False


_CHECKED: Mapping[str, Kernel] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}
_UNCHECKED: Mapping[str, Kernel] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def negated(kind: pa.DataType) -> tuple[Kernel, bool]:
    """The kernel of `-x`; and whether it is checked."""
    return (raising(pc.negate_checked), True) if types.is_integer(kind) else (pc.negate, False)


def absolute(kind: pa.DataType) -> tuple[Kernel, bool]:
    """The kernel of `abs(x)`; and whether it is checked."""
    return (raising(pc.abs_checked), True) if types.is_integer(kind) else (pc.abs, False)


def _quotient(a: Values, b: Values) -> pa.Array:
    _check_divisor(a, b)
    return pc.divide(a, b)


def _decimal_quotient(kind: pa.DataType) -> Kernel:
    def run(a: Values, b: Values) -> pa.Array:
        _check_divisor(a, b)
        valid = pc.and_(pc.is_valid(a), pc.is_valid(b))
        count = len(valid)
        digits, by = (
            np.broadcast_to(_numbers(_digits(values), absent), count)
            for values, absent in ((a, 0), (b, 1))
        )
        by = np.where(by == 0, 1, by)  # beside a null
        found = divided(digits, by, kind.scale + b.type.scale - a.type.scale, kind)
        return pc.if_else(valid, found, pa.scalar(None, kind))

    return run


def _remainder(a: Values, b: Values) -> pa.Array:
    """The remainder, of the sign of the dividend. Decimals are of one type, of up to 18 digits."""
    _check_divisor(a, b)
    kind = a.type
    if types.is_decimal(kind):
        digits = (_digits(a), _digits(b))
        return scaled(_remainder(*digits), kind)
    valid = pc.and_(pc.is_valid(a), pc.is_valid(b))
    dividend, divisor = _numbers(a, 0), _numbers(b, 1)
    if types.is_integer(kind):
        divisor = np.where(divisor == -1, 1, divisor)  # the least integer by -1 would overflow
    with np.errstate(all="ignore"):
        found = np.fmod(dividend, divisor).astype(kind.to_pandas_dtype())
    return pa.array(found, kind, mask=~valid.to_numpy(zero_copy_only=False))


def _check_divisor(a: Values, b: Values) -> None:
    """Raises RaisingError where the divisor is 0, and the dividend is not null."""
    zero = pc.and_(pc.equal(b, _scalar(0, b.type)), pc.is_valid(a))
    if zero.as_py() if isinstance(zero, pa.Scalar) else pc.any(zero).as_py():
        raise RaisingError


def _digits(values: Values) -> Values:
    if isinstance(values, pa.Scalar):
        return unscaled(pa.array([values.as_py()], values.type))[0]
    return unscaled(values)


def _numbers(values: Values, absent: int) -> npt.NDArray[Any] | Any:
    if isinstance(values, pa.Scalar):
        return values.as_py() if values.is_valid else absent
    return pc.fill_null(values, _scalar(absent, values.type)).to_numpy(zero_copy_only=False)


def _scalar(value: int, kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(Decimal(value) if types.is_decimal(kind) else value, kind)


# -- strings -------------------------------------------------------------------------------------


def _of_ascii(kernel: Kernel) -> Kernel:
    """Letters beyond ASCII have other pairs in Java than in Arrow."""

    def run(values: pa.Array) -> pa.Array:
        if not pc.all(pc.string_is_ascii(values), min_count=0).as_py():
            raise UndecidedError
        return kernel(values)

    return run


lower = _of_ascii(pc.ascii_lower)
upper = _of_ascii(pc.ascii_upper)


def trim(values: pa.Array) -> pa.Array:
    """Without the spaces at both ends. Other white space stays."""
    return pc.ascii_trim(values, characters=" ")
