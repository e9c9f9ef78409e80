"""What statements and expressions work on beside an instance's variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidegate.engine.detect.scripts.value_types import size
from tidegate.rules.errors import Place

Variables = list[Any]
"""An instance's variables, and behind them the names of its loops."""
ERROR = -1
"""The number of the output `$error`."""


class RunawayError(Exception):
    """A transition that has reached a limit: it is undone."""


class Fault(NamedTuple):
    """The value of `$error`. `kind`: unexpected, arithmetic, index, null, function, elapse or
    runaway. `event`: the event that was taken. `place`: the place in the text that failed."""

    kind: str
    event: str
    message: str
    place: str
    at: int


@dataclass(slots=True)
class Context:
    """The context of a transition. All instances of a script share one; it is set before each
    transition.

    now, event   the instant and the name of the event
    key          the key of the instance
    raw          the value of an input, for its `case` and `group`
    found        the transition's emissions in order, as pairs of output and value
    undo         the elements of arrays that the transition has overwritten, as they were
    fresh        the bytes stored since the instance was last measured
    """

    steps_max: int
    bytes_max: int
    functions: Mapping[str, Callable[..., Any]]
    now: int = 0
    event: str = ""
    key: tuple[Any, ...] = ()
    raw: Any = None
    found: list[tuple[int, Any]] = field(default_factory=list)
    undo: list[tuple[list[Any], int, Any]] = field(default_factory=list)
    steps: int = 0
    fresh: int = 0

    def fail(self, kind: str, message: str, place: Place | None = None) -> None:
        """Emit `$error`."""
        where = str(place) if place else ""
        self.found.append((ERROR, Fault(kind, self.event, message, where, self.now)))

    def count(self, statements: int) -> None:
        """Raises `RunawayError` after too many statements of one transition."""
        self.steps += statements
        if self.steps > self.steps_max:
            raise RunawayError(
                f"more than {self.steps_max:,} statements (setting script_steps_max)"
            )

    def room(self, count: int) -> None:
        """Raises `RunawayError` if so many bytes are more than an instance may have."""
        if count > self.bytes_max:
            raise RunawayError(
                f"more than {self.bytes_max:,} bytes (setting script_state_bytes_max)"
            )

    def stored(self, value: Any, variables: Variables) -> None:
        """Note a value that was stored; measures the instance once it may have grown too large."""
        self.fresh += size(value)
        if self.fresh > self.bytes_max:
            self.measure(variables)

    def measure(self, variables: Variables) -> None:
        """Raises `RunawayError` if the variables take too many bytes."""
        self.fresh = 0
        self.room(sum(map(size, variables)))

    def undone(self) -> None:
        """Put the elements of arrays back that a transition has written, and drop what it emits."""
        for array, index, value in reversed(self.undo):
            array[index] = value
        self.undo.clear()
        self.found.clear()
        self.fresh = 0
