"""The functions that every script has.

    length(string or array)      long
    concat(string, string, ..)   string
    substring(s, begin)          string; from `begin`, the first character is 0
    substring(s, begin, end)     string; up to `end`, which is not part of it
    abs(n)                       long, double or duration, as n
    min(a, b, ..) max(a, b, ..)  long, double, time or duration, as the operands
    floor(x) ceil(x) sqrt(x)     double
    round(x)                     long; the nearest, a half upwards
    long(x)                      long; of a double truncated, of a time its microseconds
    double(x)                    double
    microseconds(d)              long, of a duration
    string(x)                    string, of a boolean, long, double, time or string
    isNull(x)                    boolean
    now()                        time: the instant of the event

Operators: `time - time` is a duration, `time + duration` and `time - duration` are a time,
`duration / duration` is a long, truncated, and a duration times a number is a duration.
Source: EventScript, section 2.2; `eventscript.md` 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.rules.eventscript.conversion import join
from tidegate.rules.eventscript.tree import Function
from tidegate.rules.eventscript.types import Array, Basic, Type, holds_duration

Signature = tuple[Sequence[Type], Type]  # of each operand, and of the result
_B = Basic
_ONE_OF: dict[str, list[Signature]] = {
    "abs": [((each,), each) for each in (_B.LONG, _B.DOUBLE, _B.DURATION)],
    "microseconds": [((_B.DURATION,), _B.LONG)],
    "floor": [((_B.DOUBLE,), _B.DOUBLE)],
    "ceil": [((_B.DOUBLE,), _B.DOUBLE)],
    "sqrt": [((_B.DOUBLE,), _B.DOUBLE)],
    "round": [((_B.DOUBLE,), _B.LONG)],
    "long": [((each,), _B.LONG) for each in (_B.LONG, _B.DOUBLE, _B.STRING, _B.TIME)],
    "double": [((each,), _B.DOUBLE) for each in (_B.DOUBLE, _B.STRING)],
    "string": [
        ((each,), _B.STRING) for each in (_B.STRING, _B.LONG, _B.DOUBLE, _B.BOOLEAN, _B.TIME)
    ],
    "substring": [
        ((_B.STRING, _B.LONG), _B.STRING),
        ((_B.STRING, _B.LONG, _B.LONG), _B.STRING),
    ],
    "now": [((), _B.TIME)],
}
FORMS = {
    "length": "length(string), length(array)",
    "concat": "concat(string, string, ..)",
    "substring": "substring(string, begin), substring(string, begin, end)",
    "abs": "abs(number or duration)",
    "min": "min(a, b, ..) of numbers, times or durations",
    "max": "max(a, b, ..) of numbers, times or durations",
    "floor": "floor(number)",
    "ceil": "ceil(number)",
    "round": "round(number)",
    "sqrt": "sqrt(number)",
    "long": "long(number, string or time)",
    "double": "double(number or string)",
    "microseconds": "microseconds(duration)",
    "string": "string(boolean, number, time or string)",
    "isNull": "isNull(value)",
    "now": "now()",
}


def signature(name: str, operands: Sequence[Type], declared: Function | None) -> Signature | None:
    """The types that the function takes and the type that it gives; operands are widened to those
    that it takes. None where it does not take such operands."""
    if declared is not None:
        return (
            (declared.arguments, declared.result) if _takes(declared.arguments, operands) else None
        )
    for takes, gives in _ONE_OF.get(name, ()):
        if _takes(takes, operands):
            return takes, gives
    if name == "isNull" and len(operands) == 1:
        return operands, _B.BOOLEAN
    if name == "length" and len(operands) == 1:
        return (operands, _B.LONG) if _has_length(operands[0]) else None
    if len(operands) < 2 or name not in ("concat", "min", "max"):
        return None
    together: Type | None = operands[0]
    for operand in operands[1:]:
        together = together and join(together, operand)
    of = {_B.STRING} if name == "concat" else {_B.LONG, _B.DOUBLE, _B.TIME, _B.DURATION}
    return ([together] * len(operands), together) if together in of and together else None


def _takes(wanted: Sequence[Type], operands: Sequence[Type]) -> bool:
    if len(wanted) != len(operands):
        return False
    pairs = zip(wanted, operands, strict=True)
    return all(
        not holds_duration(gives) if takes == _B.OBJECT else join(takes, gives) == takes
        for takes, gives in pairs
    )


def _has_length(of: Type) -> bool:
    return of == _B.STRING or isinstance(of, Array)
