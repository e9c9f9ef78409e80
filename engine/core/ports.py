"""What the engine needs of the outside world, as protocols. `connectors` implement them; simulation
and tests bring their own. For what it keeps see `engine.core.ledger`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from tidegate.engine.core.entries import Entry, Fate
from tidegate.engine.core.values import (
    Answers,
    ChangeKind,
    Commit,
    Cursor,
    Failure,
    Firings,
    Question,
    Reading,
    TableRange,
)
from tidegate.rules.errors import EngineError, Place
from tidegate.rules.model import Rule, SignalAction, Sql, Table, Webhook

AppIds = Callable[[Collection[int]], Mapping[int, str]]
"""Looks up entries: see `engine.core.ledger.Store.app_ids`."""


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


class StoppedError(EngineError):
    """The engine was asked to stop, and gives up what it was at. Nothing of that is lost."""

    def __init__(self, when: str) -> None:
        super().__init__("stopped", f"the engine was stopped {when}", "nothing is lost: run again")


def check_going_on(stopped: Callable[[], bool]) -> None:
    """Raise StoppedError where the engine was asked to stop: between two statements, of which the
    transaction that is to hold what they say has not begun."""
    if stopped():
        raise StoppedError("between two statements")


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
