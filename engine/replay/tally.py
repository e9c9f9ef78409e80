"""What the lines of a trace hold, counted while they are read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

# Seconds since the epoch: later than the year 5138, which as milliseconds is 1973.
_MILLISECONDS = 100_000_000_000


@dataclass(slots=True)
class Seen:
    """`lines` that are not blank, `later` than --until, `of` each event type; `lacking`: those of
    an event type that have no value of a key field; `undeclared`: the fields of events that are not
    declared, each with its event; `missing`: by event, declared fields that a line has not, each
    with a field of that line that may be meant, or nothing; `kinds`: by event and key field, one
    value of each kind."""

    lines: int = 0
    later: int = 0
    of: Counter[str] = field(default_factory=Counter)
    lacking: Counter[tuple[str, str]] = field(default_factory=Counter)
    undeclared: set[tuple[str, str]] = field(default_factory=set)
    missing: dict[tuple[str, str], str] = field(default_factory=dict)
    kinds: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)


def looks_like(seconds: float) -> str:
    """The unit that a number is probably in, where it is too large for seconds."""
    powers = (("nanoseconds", 10**17), ("microseconds", 10**14), ("milliseconds", _MILLISECONDS))
    return next((unit for unit, least in powers if abs(seconds) >= least), "")


def kind_of(value: Any) -> str:
    """What a value is as a key: values of different kinds are never equal."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "a list" if isinstance(value, list) else "a struct"
