"""The past of tables, in front of a feed: it ends where the span ends, and shows what stands up to
a clock.

Example: `orders` has the versions 0 to 90, and the span begins after version 40 and ends with 80.
All that the log says of the versions 41 to 80 is read first. With the clock at 10:00 the feed shows
those that were committed until then. Their rows are read in larger pieces.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile

import numpy as np
import pyarrow as pa

from tidegate.engine.core.instants import MILLISECOND, floor_millisecond
from tidegate.engine.core.ports import VERSION, Feed, ReadRequest, TableHead
from tidegate.engine.core.text import json_text
from tidegate.engine.core.values import Commit, Cursor, Int64, TableRange
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Start, Table

PAGE_COMMITS = 1_000  # that are shown at a time
PIECE_ROWS = 200_000  # that are read at a time, where less is asked for
_UNREADABLE = ("version-gone", "feed-off")
Stored = Mapping[int, int]
"""The instants of a table's versions as a store knows them."""


class HistoryError(EngineError):
    """The history of a table begins later than asked: `earliest` is the instant of the first
    version that can be read."""

    exit_code = 1

    def __init__(self, table: str, version: int, earliest: int) -> None:
        super().__init__(
            "history-begins-later",
            f"the changes of table `{table}` can be read from version {version} on, which was "
            f"committed at {json_text.instant(earliest)}: its history begins later than asked",
        )
        self.table, self.version, self.earliest = table, version, earliest


@dataclass(frozen=True, slots=True)
class TablePast:
    """The commits of a table in a span, placed at their instants. `cursor`: just before them."""

    cursor: Cursor
    commits: tuple[Commit, ...]
    instants: tuple[int, ...]

    def until(self, instant: int) -> int:
        """How many of the commits stand at or before an instant."""
        return bisect_right(self.instants, instant)

    def behind(self, version: int) -> int:
        """How many of the commits have this version or an earlier one."""
        return version - self.cursor.version

    def version_at(self, instant: int) -> int | None:
        """The last version at an instant; None where that is before the span."""
        count = self.until(instant)
        if count or instant >= self.cursor.instant:
            return self.cursor.version + count if self.cursor.version + count >= 0 else None
        return None


class Listing:
    """The commits of a table after an instant, listed as far as they are asked for. Versions that
    are not `stored` have the log's instants, made monotonic (G1).

    Raises HistoryError, and EngineError where the feed cannot go on.
    """

    def __init__(self, feed: Feed, table: Table, after: int, stored: Stored) -> None:
        cursor = cursor_before(feed, table, _first_after(feed, table, after, stored), stored)
        self.cursor = replace(cursor, instant=min(cursor.instant, after))
        self._stored = stored
        self._coming = listed(feed, table, self.cursor)
        self._commits: list[Commit] = []

    def instant(self, version: int) -> int:
        """Where a version stands; a version before all of them, or after: the nearest."""
        while self._last.version < version and self._take():
            pass
        at = version - self.cursor.version - 1
        if at < 0 or not self._commits:
            return self.cursor.instant
        return self._commits[min(at, len(self._commits) - 1)].instant

    def until(self, end: int) -> TablePast:
        """The commits up to an instant."""
        while self._last.instant <= end and self._take():
            pass
        commits = tuple(takewhile(lambda each: each.instant <= end, self._commits))
        return TablePast(self.cursor, commits, tuple(commit.instant for commit in commits))

    @property
    def _last(self) -> Commit | Cursor:
        return self._commits[-1] if self._commits else self.cursor

    def _take(self) -> bool:
        commit = next(self._coming, None)
        if commit is None:
            return False
        self._commits.append(_placed(commit, self._last.instant, self._stored))
        return True


def _first_after(feed: Feed, table: Table, before: int, stored: Stored) -> int:
    """The first version that stands after an instant."""
    logged = feed.version_at(table, before)
    first = 0 if logged is None else logged + 1
    if not stored:
        return first
    passed = max((version for version, at in stored.items() if at <= before), default=None)
    if passed is None:
        return min(first, min(stored))
    return passed + 1 if passed + 1 in stored else max(first, passed + 1)


def cursor_before(feed: Feed, table: Table, first: int, stored: Stored) -> Cursor:
    """The cursor just before a version. Raises HistoryError."""
    try:
        cursor = feed.head(replace(table, start=Start("version", first)), None).cursor
    except EngineError as error:
        found = feed.head(replace(table, start=Start("earliest")), None)
        if error.code not in _UNREADABLE or not found.commits:
            raise
        earliest = found.commits[0]
        at = stored.get(earliest.version, earliest.instant)
        raise HistoryError(table.name, earliest.version, at) from error
    for commit in takewhile(lambda each: each.version < first, listed(feed, table, cursor)):
        cursor = _after(cursor, commit)
    return replace(cursor, instant=stored.get(cursor.version, cursor.instant))


def listed(feed: Feed, table: Table, cursor: Cursor) -> Iterator[Commit]:
    """The commits after a cursor. One that a feed cannot go on with is given, too; what is wrong
    with it is raised behind it."""
    while True:
        try:
            head = feed.head(table, cursor)
        except EngineError as error:
            hint = f"end the backtest before it, or let it begin behind it ({table.name}@VERSION)"
            raise EngineError(error.code, error.message, hint) from error
        yield from head.commits
        if head.left_out is not None:
            yield head.left_out
        if not head.commits:
            return
        for commit in head.commits:
            cursor = _after(cursor, commit)


def _after(cursor: Cursor, commit: Commit) -> Cursor:
    schema = commit.schema or cursor.schema
    found = replace(cursor, version=commit.version, schema=schema, digest=commit.digest)
    return replace(found, instant=commit.instant)


def _placed(commit: Commit, last: int, stored: Stored) -> Commit:
    """The commit at its instant, after the `last` one: also a stored one, if the log says that what
    no bucket placed stands behind it."""
    least = floor_millisecond(last) + MILLISECOND
    at = stored.get(commit.version, floor_millisecond(commit.instant))
    return replace(commit, instant=max(at, least))


@dataclass(slots=True)
class _Piece:
    """The rows of the versions [first, last]. They are put in order of `versions` once a part of
    them is asked for."""

    request: ReadRequest
    first: int
    last: int
    rows: pa.Table
    versions: Int64 | None = None

    def holds(self, span: TableRange, request: ReadRequest) -> bool:
        return self.first <= span.first and span.last <= self.last and self.request == request

    def of(self, span: TableRange) -> pa.Table:
        if (span.first, span.last) == (self.first, self.last):
            return self.rows
        if self.versions is None:
            self.rows = self.rows.sort_by(VERSION)
            self.versions = self.rows[VERSION].to_numpy()
        begin = int(np.searchsorted(self.versions, span.first))
        end = int(np.searchsorted(self.versions, span.last, side="right"))
        return self.rows.slice(begin, end - begin)


@dataclass(slots=True)
class PastFeed:
    """Implements `engine.core.ports.Feed` by another one. `pasts`: of the tables that raise events.
    `now`: the clock up to which commits are shown."""

    feed: Feed
    pasts: Mapping[str, TablePast]
    now: Callable[[], int]
    _pieces: dict[str, _Piece] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)  # of other tables

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        """See `engine.core.ports.Feed.head`."""
        past = self.pasts[table.name]
        cursor = after or past.cursor
        first, last = past.behind(cursor.version), past.until(self.now())
        shown = past.commits[first : min(last, first + PAGE_COMMITS)]
        left_out = past.commits[first + PAGE_COMMITS] if last > first + PAGE_COMMITS else None
        return TableHead(cursor, past.cursor.version + last, shown, left_out)

    def version(self, table: Table) -> int:
        """See `engine.core.ports.Feed.version`."""
        past = self.pasts.get(table.name)
        if past is not None:
            return past.cursor.version + past.until(self.now())
        if table.name not in self._versions:
            self._versions[table.name] = self.feed.version(table)
        return self._versions[table.name]

    def earliest(self, table: Table, cursor: Cursor, column: str) -> int | None:
        """See `engine.core.ports.Feed.earliest`."""
        return self.feed.earliest(table, cursor, column)

    def version_at(self, table: Table, instant: int) -> int | None:
        """See `engine.core.ports.Feed.version_at`."""
        past = self.pasts.get(table.name)
        found = None if past is None else past.version_at(instant)
        return self.feed.version_at(table, instant) if found is None else found

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        """See `engine.core.ports.Feed.read`. Raises HistoryError where its first versions are
        gone."""
        piece = self._pieces.get(table.name)
        if piece is None or not piece.holds(span, request):
            wider = self._wider(span)
            try:
                rows = self.feed.read(table, wider, request)
            except EngineError as error:
                if error.code in _UNREADABLE:
                    self._tell_earliest(table, span, request)
                raise
            piece = _Piece(request, wider.first, wider.last, rows)
            self._pieces[table.name] = piece
        return piece.of(span)

    def _wider(self, span: TableRange) -> TableRange:
        """The span, and what follows it up to the size of a piece and to another schema."""
        past = self.pasts[span.table]
        rows, last, skipped = span.rows_estimate, span.last, set(span.skipped)
        for commit in past.commits[past.behind(span.last) :]:
            rows += commit.rows_estimate
            if rows > PIECE_ROWS or commit.schema is not None:
                break
            last = commit.version
            skipped |= {last} if commit.skip else set()
        return replace(span, last=last, rows_estimate=rows, skipped=frozenset(skipped))

    def _tell_earliest(self, table: Table, span: TableRange, request: ReadRequest) -> None:
        """Raise HistoryError for the first version from which on all can be read, if there is one.
        VACUUM takes files that no later version needs: others of the same age may be left."""
        past = self.pasts[table.name]
        end = past.cursor.version + len(past.commits) + 1
        marks = ReadRequest((), request.changes)
        low, high = span.first + 1, end
        while low < high:
            middle = (low + high) // 2
            try:
                self.feed.read(table, replace(span, first=middle, last=end - 1), marks)
            except EngineError as error:
                if error.code not in _UNREADABLE:
                    raise  # such as an outage: it says nothing of what is gone
                low = middle + 1
            else:
                high = middle
        if low < end:
            raise HistoryError(table.name, low, past.instants[past.behind(low) - 1])

    def history(self, table: Table, span: TableRange) -> pa.Table:
        """See `engine.core.ports.Feed.history`."""
        return self.feed.history(table, span)

    def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
        """See `engine.core.ports.Feed.decide`."""
        return self.feed.decide(rows, where, source)
