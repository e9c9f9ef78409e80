"""Where a case happens: tables, a store, a clock and the loop of one rulebook.

There are two: in memory (`engine.replay.memory`), and over real Delta tables with Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tidegate.engine.replay.cases.model import Fail, Row, TableChange

Shown = Mapping[str, Any]
"""A row of what happened, as Python values: int, float, Decimal, str, bool, bytes, date, aware
datetime (timestamp), naive datetime (timestamp_ntz), list, dict, None."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What has happened so far in a world.

    `firings`: by rule of the rulebook, in order of detection:

        firing_id      hex
        key            dict
        start, at      datetime (UTC); `at` is the end of the detection
        fired_at       datetime (UTC)
        constituents   list of {event, time, and the columns of the parameter relation}
        condition      held | failed | none | dead
        damped         kind of damping that dropped it, or None
        depth          int

    `tables`: by declared table, its rows now; only of tables that no action writes unless Spark
    runs the actions. `signals`: by event type, the fields of those that actions raised.
    `webhooks`: by rule, the fields that were sent. `emissions`: by event type of a script, with
    `time`. `rejected`: rows and signals that could not become occurrences: event, reason, row.
    `dead`: entries: rule, kind, error, attempts.
    """

    firings: Mapping[str, Sequence[Shown]] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Shown]] = field(default_factory=dict)
    signals: Mapping[str, Sequence[Shown]] = field(default_factory=dict)
    webhooks: Mapping[str, Sequence[Shown]] = field(default_factory=dict)
    emissions: Mapping[str, Sequence[Shown]] = field(default_factory=dict)
    rejected: Sequence[Shown] = ()
    dead: Sequence[Shown] = ()


class World(Protocol):
    """One case's world. All instants are virtual: microseconds since the epoch. Raises InputError
    with the place of a value that does not fit its column's type, before anything has changed."""

    def begin(self, instant: int, tables: Mapping[str, Sequence[Row]]) -> None:
        """Put these rows into the tables, and activate the rulebook at `instant`."""
        ...

    def advance(self, instant: int) -> None:
        """Let time go on to `instant`: timers, clocks, retries and pauses that are due on the way
        happen, each at its own instant. What is due at `instant` itself happens in the next
        `drain`, together with what is committed at it."""
        ...

    def commit(self, tables: Mapping[str, TableChange]) -> None:
        """One commit a table, all at the present instant."""
        ...

    def signal(self, event: str, fields: Row) -> None:
        """Raise a signal at the present instant."""
        ...

    def fail(self, fail: Fail) -> None:
        """From now on the next attempts of a rule's actions fail."""
        ...

    def drain(self) -> None:
        """Take everything that is visible, and run the entries that are due. Commits of actions
        follow 1 ms apart."""
        ...

    def observe(self) -> Observation: ...

    def close(self) -> None: ...
