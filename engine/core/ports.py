"""What the engine needs of the outside world, as protocols. `connectors` and `engine.store`
implement them; simulation and tests bring their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from tidegate.engine.core.entries import Control, Entry, Fate, Outcome
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.core.state import Parked, State, Taken
from tidegate.engine.core.suspect import Strikes, Suspect
from tidegate.engine.core.values import (
    Answers,
    ChangeKind,
    Commit,
    Cursor,
    Failure,
    Firings,
    Question,
    Reading,
    Signal,
    TableRange,
)
from tidegate.rules.errors import EngineError, Place
from tidegate.rules.model import Rule, SignalAction, Sql, Table, Webhook

AppIds = Callable[[Collection[int]], Mapping[int, str]]
"""Looks up entries: see `Store.app_ids`."""


class Clock(Protocol):
    """Wall clock and monotonic clock, microseconds. Never used for occurrence times but by G1."""

    def wall(self) -> int: ...

    def monotonic(self) -> int: ...


@dataclass(frozen=True, slots=True)
class TableHead:
    """What a listing of one table shows: the commits after a cursor, up to the first obstacle.

    `cursor` is the stored one, or where `start:` begins, `head` the latest version known of, which
    later ones may have followed. `commits` are contiguous and ascending
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

    `changes`: the feed's change types, of FEED_KINDS.
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


# Columns of what a feed gives: what kind of row it is (a value of FEED_KINDS), which commit's, and
# the two hashes of all its columns.
KIND, VERSION = "_tidegate_kind", "_commit_version"
SAME_1, SAME_2 = "_tidegate_same_1", "_tidegate_same_2"
WHY = "_why"
"""Ends the name of the column that says why a predicate could not decide a row, where it did not
just raise: `p` and `p_why`. The column is there only if there is such a row."""

PRE_IMAGE = -1
FEED_KINDS: Mapping[str, int] = {
    "insert": ChangeKind.INSERT,
    "delete": ChangeKind.DELETE,
    "update_postimage": ChangeKind.UPDATE,
    "update_preimage": PRE_IMAGE,
}


class Feed(Protocol):
    """Reads declared tables. Errors are `EngineError`s naming table, version and remedy."""

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        """List the log after the cursor, without a Spark job once the table is known. Only what is
        new is looked at; where something is, and at times, identity and contiguity are checked
        (G10). None: where the table's `start` says (G9)."""
        ...

    def version(self, table: Table) -> int:
        """The latest version of a table."""
        ...

    def earliest(self, table: Table, cursor: Cursor, column: str) -> int | None:
        """The earliest time in a column, microseconds, of a table as of a cursor; None where there
        is none. One Spark job."""
        ...

    def version_at(self, table: Table, instant: int) -> int | None:
        """The last version of a table whose instant, by its log, is not after `instant`. None where
        the table has none, or its log does not reach back so far."""
        ...

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        """The changes of `span` in one Spark job, in any order of rows: KIND, VERSION and what the
        request asks for. A snapshot's rows are inserts."""
        ...

    def history(self, table: Table, span: TableRange) -> pa.Table:
        """The commits of `span` but for the seals of any engine (G18), a row each, in order, with
        the columns of an `on: commit` (`engine.core.parameters.COMMITS`). No Spark job."""
        ...

    def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
        """Predicates over rows at hand: a boolean column for each, row by row, as a request's.
        `source` says whose rows they are: a table's name, or `signal` and its event type."""
        ...


class Analyst(Protocol):
    """Decides on SQL, and says what it reads, without running it (G19, G25, G27).

    `event` is the full schema of the rule's parameter relation. All raise InputError, with places
    inside the text where Spark tells them; code `sql-analysis` where a text is let in, but does not
    fit the tables as they are. Without `resolve` that is not looked at: the text reads all of
    `event`.
    """

    def action(
        self,
        rule: Rule,
        action: Sql,
        event: pa.Schema,
        parameters: Sequence[str],
        *,
        resolve: bool = True,
    ) -> Reading:
        """One statement; `parameters` are the named ones that it may use."""
        ...

    def condition(
        self, rule: Rule, event: pa.Schema, per_firing: Sequence[str], *, resolve: bool = True
    ) -> Reading:
        """The rule's `if`; an expression may name the columns `per_firing` outside aggregates."""
        ...

    def sample(self, text: str, place: Place) -> tuple[Reading, pa.DataType]:
        """A query of one value over declared tables, and the value's type."""
        ...

    def fields(
        self,
        rule: Rule,
        action: SignalAction | Webhook,
        event: pa.Schema,
        per_firing: Sequence[str],
        types: Mapping[str, str],
    ) -> Reading:
        """The fields of a signal, expressions as in `if`, cast to the signal's Spark `types`; those
        of a webhook are of whatever types they are."""
        ...


class Conditions(Protocol):
    """Asks conditions."""

    def hold(self, questions: Sequence[Question]) -> Answers:
        """For which firings of all relations the condition of their rule holds. A condition that
        fails does so alone."""
        ...

    def sample(self, text: str, pinned: Mapping[str, int]) -> pa.Scalar | Failure | None:
        """The one value of a query over pinned versions of tables; None where it has
        no row. Otherwise a `Failure`: it raised, or has several rows."""
        ...


class Sink(Protocol):
    """Runs entries against the declared tables. `firings` are those of the entry, all to be acted
    on."""

    def run(self, entry: Entry, firings: Firings) -> None:
        """Run one sql entry under its marker (G16). What became of it is then asked of `fate`: a
        statement whose marker has been passed, or moved by another history, is skipped in silence.
        Raises SinkError; nothing has been committed then, as far as Spark can tell."""
        ...

    def ready(self, targets: Collection[str]) -> None:
        """Bring what is known of tables up to date, so that an entry need not wait for it. May be
        called from another thread; what fails here will fail again where it matters."""
        ...

    def fate(self, entry: Entry, firings: Firings) -> Fate:
        """What became of an entry, from its target's log after `entry.target_version` (G16b). A
        commit of its number for other firings is another history's. What cannot be known is
        `Fate.UNKNOWN`."""
        ...

    def seal(self, entry: Entry) -> None:
        """Commit the entry's marker without an effect, so that it can land no more (G18). Raises
        SinkError where the target cannot be written."""
        ...

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:
        """The fields of a signal or webhook entry: a row a firing, in any order, `firing_id` (hex)
        first. Raises SinkError."""
        ...


LOST = frozenset({"lease-lost", "spark-lost", "stopped"})
"""The codes of errors that end a run, whatever it was at."""


class OutageError(EngineError):
    """Something that may pass by itself: the store or a table cannot be reached just now."""


class SinkError(Exception):
    """A statement failed. The message is one line, the error's class first, without values of the
    user's tables; `details` is all that was said; `overrun`: it took longer than its deadline."""

    def __init__(self, message: str, details: str | None = None, *, overrun: bool = False) -> None:
        super().__init__(message)
        self.details = details
        self.overrun = overrun


class QuarantinedError(SinkError):
    """A statement is not run: it has ended Spark's Java, or outlasted its deadline, before."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What waits in the store for a plan: whether operators asked for something, and when the first
    and the last of the unplaced signals were received."""

    controls: bool = False
    first_received: int | None = None
    last_received: int | None = None


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Signals that no bucket has claimed, by (received_at, id). `left_out`: when the first one
    after them was received, which a limit leaves to a later bucket."""

    signals: tuple[Signal, ...] = ()
    left_out: int | None = None


class Store(Protocol):
    """The durable state. One per database; rulebooks by name. Every method is one transaction."""

    @property
    def id(self) -> str:
        """Random id of this store (G20), part of every marker."""
        ...

    def acquire(self, rulebook: str, holder: str, seconds: int) -> int:
        """Take the rulebook's lease; returns its new epoch. `EngineError('lease-held')` if another
        holder's lease has not expired, unless that is a process of this machine that has ended."""
        ...

    def renew(
        self, rulebook: str, epoch: int, seconds: int, activity: Activity | None = None
    ) -> None:
        """Extend the lease, and keep when the engine looked last; `EngineError('lease-lost')` if
        the epoch is not ours any more."""
        ...

    def say(self, rulebook: str, epoch: int, activity: Activity) -> None:
        """Keep what the engine does just now, for those who ask. It may be lost with the machine.
        Nothing happens if the epoch is not ours any more."""
        ...

    def check_lease(self, rulebook: str, epoch: int) -> None:
        """`EngineError('lease-lost')` if the epoch is not ours any more; before each entry."""
        ...

    def release(self, rulebook: str, epoch: int) -> None: ...

    def register(
        self, rulebook: str, text: str, file: str | None, added: Mapping[str, str] | None = None
    ) -> int:
        """Keep the rulebook that runs from now on, with the rules that were put beside its text;
        the number of its version, which buckets and entries from now on name."""
        ...

    def load(self, rulebook: str) -> State: ...

    def commit(self, epoch: int, taken: Taken) -> tuple[Entry, ...]:
        """Step 3: everything of a bucket in one transaction under the lease's epoch. Places the
        signals, stores cursors, W, plan, carried instances, firings, and entries; returns the
        entries with their numbers, in their order. `EngineError('lease-lost')` if the epoch is
        stale, `'bucket-order'` unless the bucket is the one after the last, `'signal-placed'` if a
        signal is in another bucket already; nothing is written then."""
        ...

    def arrivals(self, rulebook: str, epoch: int, events: Collection[str]) -> Arrivals:
        """What waits for a plan, of signals those of these event types: all that an idle engine
        asks, in one query. `EngineError('lease-lost')`."""
        ...

    def pending_controls(self, rulebook: str) -> tuple[Control, ...]:
        """What operators asked for and nobody has carried out or answered, oldest first."""
        ...

    def answer(self, rulebook: str, epoch: int, control: int, text: str) -> None:
        """Say what came of a control that no bucket carries out. `EngineError('lease-lost')`."""
        ...

    def raise_signal(self, rulebook: str, signal: Signal) -> bool:
        """Insert a signal, unplaced. False if id and body were there already; `EngineError(
        'signal-conflict')` if the id is there with another body (G4)."""
        ...

    def unplaced_signals(
        self, rulebook: str, events: Collection[str], watermark: int, limit: int
    ) -> Unplaced:
        """The first signals of these event types, at most `limit` and what shares the last one's
        cell of the grid: none of it can stand in another bucket (G4). Those received up to
        `watermark`, the last bucket's, stand just after it."""
        ...

    def open_entries(self, rulebook: str) -> tuple[Entry, ...]:
        """Entries that are pending or held, and dead ones whose alternative is still to be done, by
        (place, number)."""
        ...

    def one_entry(self, rulebook: str, number: int) -> Entry | None:
        """An entry by its number, None if there is none (any more)."""
        ...

    def last_entry(self) -> int:
        """The last number of the store's sequence of entries."""
        ...

    def app_ids(self, numbers: Collection[int]) -> Mapping[int, str]:
        """The app ids of entries, of all rulebooks, by their numbers, empty for those that another
        history passed; those purged are left out."""
        ...

    def entry_firings(self, rulebook: str, bucket: int, rule: str) -> Firings:
        """The stored firings of a rule in a bucket, to run an entry from."""
        ...

    def settle(self, rulebook: str, epoch: int, outcomes: Sequence[Outcome]) -> tuple[Entry, ...]:
        """Record outcomes; a done entry's signals (G22), its successors, what is to be remembered
        of its firings and the answer to its control are stored in the same transaction; returns
        the successors with their numbers. An entry that is done, skipped or redriven already stays
        as it is. `EngineError('lease-lost')`; `'signal-conflict'`, and nothing is written then."""
        ...

    def tell(self, rulebook: str, epoch: int, signals: Sequence[Signal]) -> None:
        """Insert signals of the engine's own; those that are there already stay.
        `EngineError('lease-lost')`."""
        ...

    def do_otherwise(
        self, rulebook: str, epoch: int, entry: Entry, made: Sequence[Entry]
    ) -> tuple[Entry, ...]:
        """Store the entries of an alternative, for those of the entry's firings for which it was
        not done (G23); the stored ones. `EngineError('lease-lost')`."""
        ...

    def dead_in_a_row(self, rulebook: str, entry: Entry, limit: int) -> int:
        """How many entries of an entry's queue have died, `limit` at most, since one was done."""
        ...

    def remembered(self, rulebook: str, rule: str, wanted: pa.Table) -> pa.Table:
        """What is remembered of a rule's firings that passed: of the rows `wanted`, those that are
        there (`engine.core.damping_memory`)."""
        ...

    def count_remembered(self, rulebook: str, rule: str, kind: int, instant: int) -> int:
        """How many rows of a kind say something of a rule's firings after an instant."""
        ...

    def version_at(self, rulebook: str, table: str, instant: int) -> int | None:
        """The last version of a table at an instant, of the commits that buckets have placed; None
        where they go not so far back."""
        ...

    def acted(self, rulebook: str, epoch: int, bucket: int, seconds: float) -> None:
        """How long it took until every entry of a bucket had been tried."""
        ...

    def begin(self, rulebook: str, epoch: int, running: Sequence[Suspect]) -> None:
        """Store what Spark runs of the rulebook's texts now, before it runs. It outlives the
        process, and may be lost with the machine. `EngineError('lease-lost')`."""
        ...

    def begun(self, rulebook: str) -> tuple[Suspect, ...]:
        """What `begin` was told last."""
        ...

    def strike(
        self, rulebook: str, epoch: int, strikes: Sequence[Strikes], running: Sequence[Suspect]
    ) -> None:
        """Store what suspects have done up to now, and what still runs.
        `EngineError('lease-lost')`."""
        ...

    def strikes(self, rulebook: str) -> tuple[Strikes, ...]:
        """What all suspects have done."""
        ...

    def forgive(self, rulebook: str, epoch: int, known: Collection[Suspect]) -> None:
        """Forget what suspects have done. `EngineError('lease-lost')`."""
        ...

    def obstacles(self, rulebook: str) -> tuple[Entry | Parked, ...]:
        """What stands in the way of rules: those that are parked, and the first entries that are
        pending, held or dead."""
        ...

    def purge(
        self, rulebook: str, epoch: int, firings_before: int, history_before: int, rows_max: int
    ) -> int:
        """Forget, in one short transaction, about `rows_max` rows at most; returns how many: call
        again while it returns `rows_max` (G13). See `engine.store.retention`."""
        ...
