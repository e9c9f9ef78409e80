"""What the engine needs of the outside world, as protocols. `connectors` and `engine.store`
implement them; simulation and tests bring their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from engine.values import (
    Carried,
    Commit,
    Cursor,
    Detections,
    Entry,
    Firings,
    Outcome,
    Plan,
    Rejected,
    Signal,
    State,
    TableRange,
)
from rules.model import Rule, Table


class Clock(Protocol):
    """Wall clock and monotonic clock, microseconds. Never used for occurrence times but by G1."""

    def wall(self) -> int: ...

    def monotonic(self) -> int: ...


@dataclass(frozen=True, slots=True)
class TableHead:
    """What a listing of one table shows: the commits after a cursor, up to the first obstacle.

    `cursor` is the stored one, or where `start:` begins. `commits` are contiguous and ascending
    from there, with the log's own times as instants until they are fixed (G1). `left_out` is the
    first commit after them that is not to be taken yet: what stops the table there is raised once
    it is the first one. `snapshot`: the rows as of the cursor are inserts to be read first (G9).
    `coarse_times`: the log's times are whole seconds.
    """

    cursor: Cursor
    head: int
    commits: tuple[Commit, ...] = ()
    left_out: Commit | None = None
    snapshot: bool = False
    in_commit_timestamps: bool = True
    coarse_times: bool = False


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What is wanted of the changes of a table.

    `changes`: the feed's change types (insert, delete, update_preimage, update_postimage).
    `where`: Spark SQL predicates, each of which becomes a boolean column of its name: true; false,
    also where the predicate is null; null where it raises (G25). `only`: predicates of which one
    must be true or raise for a row to be wanted at all; none: every row. `same`: adds columns
    SAME_1 and SAME_2, two hashes of all columns: equal in both, equal rows (G11).
    """

    columns: Sequence[str]
    changes: frozenset[str]
    where: Mapping[str, str] = field(default_factory=dict)
    only: Sequence[str] = ()
    same: bool = False


CHANGE, VERSION, SAME_1, SAME_2 = "_change_type", "_commit_version", "_same_1", "_same_2"


class Feed(Protocol):
    """Reads declared tables. Errors are `EngineError`s naming table, version and remedy."""

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        """List the log after the cursor, without a Spark job once the table is known; checks
        identity and contiguity (G10). None: where the table's `start` says (G9)."""
        ...

    def version(self, table: Table) -> int:
        """The latest version of a table."""
        ...

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        """The changes of `span` in one Spark job, in any order of rows: `_change_type`,
        `_commit_version` and what the request asks for. A snapshot's rows are inserts."""
        ...

    def decide(self, rows: pa.Table, where: Mapping[str, str]) -> pa.Table:
        """Predicates over rows at hand: a boolean column for each, row by row, as a request's."""
        ...


class Sink(Protocol):
    """Runs SQL against the declared tables: conditions at pinned versions, actions with markers."""

    def run(self, rule: Rule, entry: Entry, firings: Firings) -> None:
        """Run one sql entry under its marker (G16); returns when it is committed or was already.
        Raises on failure; nothing has been committed then, as far as Spark can tell."""
        ...

    def hold(
        self, rule: Rule, detections: Detections, relation: pa.Table, pinned: Mapping[str, int]
    ) -> Iterable[str]:
        """The firing ids (hex) of `relation` for which the rule's condition holds, each table read
        at its pinned version."""
        ...


class Store(Protocol):
    """The durable state. One per database; rulebooks by name. Every method is one transaction."""

    @property
    def id(self) -> str:
        """Random id of this store (G20), part of every marker."""
        ...

    def acquire(self, rulebook: str, holder: str, seconds: int) -> int:
        """Take the rulebook's lease; returns its new epoch. `EngineError('lease-held')` if another
        holder's lease has not expired."""
        ...

    def renew(self, rulebook: str, epoch: int, seconds: int) -> None:
        """Extend the lease; `EngineError('lease-lost')` if the epoch is not ours any more."""
        ...

    def release(self, rulebook: str, epoch: int) -> None: ...

    def register(self, rulebook: str, text: str, file: str | None) -> None:
        """Keep the active rulebook, so that commands that need the store only can use it."""
        ...

    def load(self, rulebook: str) -> State: ...

    def commit(
        self,
        epoch: int,
        plan: Plan,
        carried: Carried,
        firings: Sequence[Firings],
        entries: Sequence[Entry],
        rejected: Sequence[Rejected],
        activation_digests: Mapping[str, str],
    ) -> tuple[Entry, ...]:
        """Step 3: everything of a bucket in one transaction under the lease's epoch. Places the
        signals, stores cursors, W, plan, carried instances, firings, and entries; returns the
        entries with their numbers. `EngineError('lease-lost')` if the epoch is stale."""
        ...

    def raise_signal(self, rulebook: str, signal: Signal) -> bool:
        """Insert a signal, unplaced. False if id and body were there already; `EngineError(
        'signal-conflict')` if the id is there with another body (G4)."""
        ...

    def unplaced_signals(self, rulebook: str, limit: int) -> tuple[Signal, ...]:
        """Signals no bucket has claimed, by (received_at, id)."""
        ...

    def pending_entries(self, rulebook: str) -> tuple[Entry, ...]:
        """Entries not done and not dead, by number."""
        ...

    def entry_firings(self, rulebook: str, bucket: int, rule: str) -> Firings:
        """The stored firings of a rule in a bucket, to run an entry from."""
        ...

    def settle(self, rulebook: str, epoch: int, outcome: Outcome) -> None:
        """Record an outcome; a done entry's signals are inserted in the same transaction (G22)."""
        ...
