"""What the engine needs of the outside world, as protocols. `connectors` implement them; simulation
and tests bring their own. For what it keeps see `engine.core.ledger`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

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

Given = TypeVar("Given")
Made = TypeVar("Made")
Part = TypeVar("Part")
AppIds = Callable[[Collection[int]], Mapping[int, str]]
"""Looks up the app ids of entries by number, of all rulebooks of the store. Empty for an entry that
another history passed: the marker at its number belongs to that history. Purged entries are left
out."""


class Clock(Protocol):
    """Wall clock and monotonic clock, microseconds. Only G1 uses them for occurrence times."""

    def wall(self) -> int: ...

    def monotonic(self) -> int: ...


@dataclass(frozen=True, slots=True)
class TableHead:
    """What a listing of one table shows: the commits after a cursor, up to the first obstacle.

    `cursor`: the stored one, or where `start:` begins. `head`: the latest version that was seen.
    `commits`: those after the cursor, without gaps; their instants are the log's times until they
    are fixed (G1). `left_out`: the commit after these that is not to be taken yet. Why it is an
    obstacle is raised once it is the first one after the cursor. `snapshot`: the rows as of the
    cursor are to be read first, as inserts (G9). `coarse_times`: the log's times are whole seconds.
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

    `changes`: change types of the feed, of FEED_KINDS. `where`: Spark SQL predicates by name. Each
    becomes a boolean column of that name: true; false, also if the predicate is null; null if it
    raises (G25). `only`: predicates; rows of which none is true or raises may be left out. `same`:
    adds the columns SAME_1 and SAME_2, two hashes of all columns. Rows that are equal in both are
    equal (G11).
    """

    columns: Sequence[str]
    changes: frozenset[str]
    where: Mapping[str, str] = field(default_factory=dict)
    only: Sequence[str] = ()
    same: bool = False


# Columns that a feed adds: the kind of change (a value of FEED_KINDS), the version, and two hashes
# of all columns.
KIND, VERSION = "_tidegate_kind", "_commit_version"
SAME_1, SAME_2 = "_tidegate_same_1", "_tidegate_same_2"
WHY = "_why"
"""Suffix of the column with the reasons why a predicate could not decide rows, such as `p_why` for
`p`. A predicate that just raises gives no reason. Without any reason there is no such column."""

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
        """List the log after the cursor, without a Spark job once the table is known. `after` None:
        from where the table's `start` says (G9). Only new versions are looked at. Identity and
        contiguity are checked if there are new versions, and now and then (G10)."""
        ...

    def version(self, table: Table) -> int:
        """The latest version of a table."""
        ...

    def earliest(self, table: Table, cursor: Cursor, column: str) -> int | None:
        """The earliest time in a column of a table as of a cursor, microseconds; None if it has
        none. One Spark job."""
        ...

    def version_at(self, table: Table, instant: int) -> int | None:
        """The last version of a table that was committed at `instant` or before, by its log. None
        if there is none, or the log does not reach back so far."""
        ...

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        """The changes of `span` in any order of rows: KIND, VERSION and what the request asks for.
        A snapshot's rows are inserts. It takes one Spark job; plain appends may take none."""
        ...

    def history(self, table: Table, span: TableRange) -> pa.Table:
        """The commits of `span` without the seals of engines (G18): a row each, in order, with the
        columns of `on: commit` (`engine.core.parameters.commit_schema`). No Spark job."""
        ...

    def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
        """Decide predicates over rows at hand. The columns are those of `ReadRequest.where`, in
        the order of the rows. `source`: a table's name, or `signal` and an event type."""
        ...


class Analyst(Protocol):
    """Decides on SQL, and says what it reads, without running it (G19, G25, G27).

    `event`: the full schema of the rule's parameter relation. All methods raise InputError, with
    places inside the text if Spark tells them. Its code is `sql-analysis` for a text that is
    allowed, but does not fit the tables as they are. Without `resolve` that is not checked, and the
    text counts as reading all of `event`.
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
        """Reads one statement. `parameters`: the named parameters that it may use."""
        ...

    def condition(
        self, rule: Rule, event: pa.Schema, per_firing: Sequence[str], *, resolve: bool = True
    ) -> Reading:
        """Reads the rule's `if`. An expression may name the columns `per_firing` outside
        aggregates."""
        ...

    def sample(self, text: str, place: Place) -> tuple[Reading, pa.DataType]:
        """Reads a query of one value over declared tables. Returns also the value's type."""
        ...

    def fields(
        self,
        rule: Rule,
        action: SignalAction | Webhook,
        event: pa.Schema,
        per_firing: Sequence[str],
        types: Mapping[str, str],
    ) -> Reading:
        """Reads the fields of a signal or webhook: expressions as in `if`. `types`: the Spark types
        to which a signal's fields are cast. A webhook's keep their own."""
        ...


class Conditions(Protocol):
    """Asks conditions."""

    def hold(self, questions: Sequence[Question]) -> Answers:
        """Asks all questions. One that fails does not keep the others from being answered."""
        ...

    def sample(self, text: str, pinned: Mapping[str, int]) -> pa.Scalar | Failure | None:
        """The one value of a query over pinned versions of tables; None if it has no row. A
        `Failure` if it raises, or has several rows."""
        ...


class Sink(Protocol):
    """Runs entries against the declared tables. `firings`: those of the entry that are acted on."""

    def run(self, entry: Entry, firings: Firings) -> None:
        """Run one sql entry under its marker (G16). Delta skips it in silence if the marker is at
        its number or above, so ask `fate` afterwards. Raises SinkError; nothing has been committed
        then, as far as Spark can tell."""
        ...

    def run_together(self, entries: Sequence[tuple[Entry, Firings]]) -> None:
        """Run several sql entries that append to one table in one commit, or those of them that one
        commit can hold. Ask the `fate` of each afterwards: what was left out is `absent`. Raises
        SinkError as `run` does; then none has landed."""
        ...

    def ready(self, targets: Collection[str]) -> None:
        """Bring what is known of tables up to date, so that no entry waits for it. May be called
        from another thread. Errors are left to the entry, which meets them again."""
        ...

    def fate(self, entry: Entry, firings: Firings) -> Fate:
        """What became of an entry, by its target's log after `entry.target_version` (G16b). A
        commit with its number, but other firings, belongs to another history."""
        ...

    def seal(self, entry: Entry) -> None:
        """Commit the entry's marker without an effect, so that the entry cannot land any more
        (G18). Raises SinkError if the target cannot be written."""
        ...

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:
        """The fields of a signal or webhook entry: a row a firing, in any order, `firing_id` (hex)
        first. Raises SinkError."""
        ...


WORKER_ROWS = 1_000_000
"""So many rows are one task's, or twice as many: it has them in a worker's memory."""


class Executors(Protocol):
    """Processes that run functions for Spark, on this machine or on others."""

    @property
    def slots(self) -> int:
        """How many calls run at a time."""
        ...

    def map(self, call: Callable[[Given], Made], given: Sequence[Given]) -> list[Made]:
        """What a function gives for each of some values, in their order. It may be called again
        for a value, where an executor was lost. All of these go through pickle. Raises EngineError
        `executors-differ`."""
        ...

    def rows(self, table: Table, span: TableRange, request: ReadRequest) -> Any:
        """What `Feed.read` gives, where it is: for `map_rows`. No job runs. With `same`, the two
        images of an update are together."""
        ...

    def map_rows(
        self,
        rows: Sequence[Any],
        cut: Callable[[int, int, pa.Table], Sequence[tuple[int, Part]]],
        call: Callable[[Given, Sequence[Part]], Made],
        given: Sequence[Given],
    ) -> tuple[list[Made], list[Part]]:
        """`map` of a function that also takes the parts which were cut from `rows` for the value.
        `cut` is given some rows: of which table they are, a number that theirs are counted from, as
        no others are, and the rows. It gives parts, each with the place of its value; at -1 it is
        for the caller, in the second list."""
        ...


class LeftToDriverError(Exception):
    """Rows that executors were to read themselves, and cannot: the driver reads them. The message
    says why, without values of the rows."""


class TooManyError(Exception):
    """Executors have detected more than the driver takes of a bucket: `found`. Nothing of it is
    taken."""

    def __init__(self, found: int) -> None:
        super().__init__(f"{found:,} detections")
        self.found = found


LOST = frozenset({"lease-lost", "spark-lost", "stopped"})
"""The codes of errors that end a run at once."""


class StoppedError(EngineError):
    """The engine was asked to stop, and gives up what it was doing. The next run does it again."""

    def __init__(self, when: str) -> None:
        super().__init__("stopped", f"the engine was stopped {when}", "nothing is lost: run again")


def check_going_on(stopped: Callable[[], bool]) -> None:
    """Raise StoppedError if the engine was asked to stop. Called between two statements, before the
    transaction that stores what they said."""
    if stopped():
        raise StoppedError("between two statements")


class OutageError(EngineError):
    """The store or a table cannot be reached just now. It may pass by itself."""


class SinkError(Exception):
    """A statement failed. The message is one line: the error's class first, without values of the
    user's tables. `details`: the whole error. `overrun`: it took longer than its deadline."""

    def __init__(self, message: str, details: str | None = None, *, overrun: bool = False) -> None:
        super().__init__(message)
        self.details = details
        self.overrun = overrun


class QuarantinedError(SinkError):
    """A statement was not run, because it has ended Spark's Java or overrun its deadline before."""
