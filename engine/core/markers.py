"""Markers: the last entry of each store that a target's log shows (G16, G20)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

_FIRST = "tidegate"


@dataclass(frozen=True, slots=True)
class Marker:
    """Delta's `txn` action of an entry: whose it is, its `number`, and when it was committed
    (microseconds, None where the log does not say). `rule` may go on, as in `pay/otherwise`."""

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
    parts = app_id.split("/", 3)
    if len(parts) < 4 or parts[0] != _FIRST:
        return None
    _, store, rulebook, rule = parts
    return Marker(store, rulebook, rule, number, committed_at)


@dataclass(frozen=True, slots=True)
class Marked:
    """A table's latest markers, one for each app id, and how long Delta keeps them:
    `retention` as the property has it, in days, both None where they are kept for ever."""

    table: str
    location: str
    markers: tuple[Marker, ...]
    retention: str | None = None
    retention_days: float | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """A commit that says which entry it is of: the effect on so many `firings`, or the seal."""

    version: int
    marker: Marker
    firings: int
    sealed: bool = False


@dataclass(frozen=True, slots=True)
class Notes:
    """The commits of a table that are of entries, by version. Its log has none before `first`."""

    commits: tuple[Noted, ...]
    first: int


class Markers(Protocol):
    """Reads markers. Raises EngineError `table-unreadable`."""

    def latest(self, tables: Collection[str]) -> tuple[Marked, ...]:
        """The markers that stand in tables now, in their order."""
        ...

    def noted(self, table: str, after: int) -> Notes:
        """The commits of entries in a table after a version, from its log."""
        ...
