"""Markers: which entry of a store and rule a target's log shows last (G16, G20).

Example: the `txn` action `tidegate/9f3c../bank/pay` with version 12: entry 12 has landed or was
sealed, and no earlier entry of `pay` can land any more.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

_FIRST = "tidegate"


@dataclass(frozen=True, slots=True)
class Marker:
    """Delta's `txn` action of an entry: its store, rulebook and rule, its `number`, and when it was
    committed (microseconds, None if the log does not say). `rule` may have more parts, such as
    `pay/otherwise`."""

    store: str
    rulebook: str
    rule: str
    number: int
    committed_at: int | None = None

    @property
    def app_id(self) -> str:
        return "/".join((_FIRST, self.store, self.rulebook, self.rule))


def parse_marker(app_id: str, number: int, committed_at: int | None) -> Marker | None:
    """A `txn` action as a marker, None if another program wrote it."""
    match app_id.split("/", 3):
        case [first, store, rulebook, rule] if first == _FIRST:
            return Marker(store, rulebook, rule, number, committed_at)
    return None


@dataclass(frozen=True, slots=True)
class Marked:
    """A table's latest markers, one for each app id. `retention`: how long Delta keeps them, as the
    table's property says it; `retention_days`: the same in days. Both None: for ever."""

    table: str
    location: str
    markers: tuple[Marker, ...]
    retention: str | None = None
    retention_days: float | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """A commit that names its entry: it is the effect for so many `firings`, or the seal."""

    version: int
    marker: Marker
    firings: int
    sealed: bool = False


@dataclass(frozen=True, slots=True)
class Notes:
    """The commits of a table that name an entry, by version. `first`: the first version that the
    log still has."""

    commits: tuple[Noted, ...]
    first: int


class Markers(Protocol):
    """Reads markers. Raises EngineError `table-unreadable`."""

    def latest(self, tables: Collection[str]) -> tuple[Marked, ...]:
        """The markers of tables now, in the order of the tables."""
        ...

    def noted(self, table: str, after: int) -> Notes:
        """The commits of entries in a table after a version, from its log."""
        ...
