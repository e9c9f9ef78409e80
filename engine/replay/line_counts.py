"""What a pass over the lines of a trace counts and notes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

# Seconds since the epoch: later than the year 5138, which as milliseconds is 1973.
_MILLISECONDS = 100_000_000_000


@dataclass(slots=True)
class LineCounts:
    """What a pass has counted and noted.

    lines        the number of lines that are not blank
    later        the number of lines after --until
    of           event type -> the number of its lines
    lacking      (event type, key field) -> the number of lines without a value of the field
    undeclared   (event type, field) of fields that are not declared
    missing      (event type, declared field) of fields that some line lacks -> the field of that
                 line that may be meant, or ""
    kinds        (event type, key field) -> one value of each kind
    """

    lines: int = 0
    later: int = 0
    of: Counter[str] = field(default_factory=Counter)
    lacking: Counter[tuple[str, str]] = field(default_factory=Counter)
    undeclared: set[tuple[str, str]] = field(default_factory=set)
    missing: dict[tuple[str, str], str] = field(default_factory=dict)
    kinds: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)


def kind_of(value: Any) -> str:
    """The kind of a key's value. Values of different kinds are never equal."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "a list" if isinstance(value, list) else "a struct"


def looks_like(seconds: float) -> str:
    """The unit that a number is probably in; "" if it may be seconds.

    >>> looks_like(1_767_225_600), looks_like(1_767_225_600_000)
    ('', 'milliseconds')
    """
    powers = (("nanoseconds", 10**17), ("microseconds", 10**14), ("milliseconds", _MILLISECONDS))
    return next((unit for unit, least in powers if abs(seconds) >= least), "")
