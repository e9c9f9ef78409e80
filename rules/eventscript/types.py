"""The types of event scripts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Basic(StrEnum):
    """Types without parts. A `time` is microseconds since the epoch. A `duration` is microseconds.
    An `object` is any value; a script can only pass it on and compare it.

    A duration is the difference of two times, or `600 seconds`; no declaration names the type. It
    stays in the script: no input, output or key holds one."""

    BOOLEAN = "boolean"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    TIME = "time"
    DURATION = "duration"
    OBJECT = "object"


@dataclass(frozen=True, slots=True)
class Structure:
    """Named fields, in the order of their declaration; `{}`, without fields, carries nothing."""

    fields: tuple[tuple[str, Type], ...] = ()

    def field(self, name: str) -> Type | None:
        """The type of a field; None where there is no such field."""
        return dict(self.fields).get(name)

    def __str__(self) -> str:
        return "{" + " ".join(f"{kind} {name};" for name, kind in self.fields) + "}"


@dataclass(frozen=True, slots=True)
class Array:
    """Any number of elements of one type, from index 0 on."""

    of: Type

    def __str__(self) -> str:
        return f"{self.of}[]"


Type = Basic | Structure | Array
NOTHING = Structure()


def holds_duration(of: Type) -> bool:
    """Whether a value of the type is a duration or contains one."""
    if isinstance(of, Structure):
        return any(holds_duration(kind) for _, kind in of.fields)
    return holds_duration(of.of) if isinstance(of, Array) else of == Basic.DURATION
