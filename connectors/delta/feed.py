"""Reads the changes of Delta tables. Implements `engine.core.ports.Feed`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidegate.connectors.delta import stops
from tidegate.connectors.delta.appends import read_appends, readable
from tidegate.connectors.delta.catalog import collected, quoted
from tidegate.connectors.delta.changes import changes, decisions, sortable, to_arrow
from tidegate.connectors.delta.commit import DamagedCommit, LoggedCommit
from tidegate.connectors.delta.executors import ApartRows
from tidegate.connectors.delta.faults import SPARK_ERRORS
from tidegate.connectors.delta.jobs import Jobs, OverrunError
from tidegate.connectors.delta.log import CATALOG_FEATURES, LogListing, Snapshot, TableLog
from tidegate.connectors.delta.session import new_session
from tidegate.connectors.delta.start import start_cursor
from tidegate.engine.core.parameters import INSTANT, commit_schema
from tidegate.engine.core.ports import (
    KIND,
    SAME_1,
    SAME_2,
    VERSION,
    WORKER_ROWS,
    ReadRequest,
    TableHead,
)
from tidegate.engine.core.types.schemas import same_schema
from tidegate.engine.core.values import Commit, Cursor, TableRange
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Change, Table

SECONDS_MAX = 3_600  # for one read, where no setting says otherwise
_COMMITS_MAX = 1_000  # of one table in one look; the next look takes further ones
_LOOK_SECONDS = 10.0  # how often an idle log is searched for gaps, and its table identified
_OF_ONE_TASK = ("spark.sql.leafNodeDefaultParallelism", "spark.databricks.delta.snapshotPartitions")
"""Settings under which a job is one task, if it can be."""
_WHOLE_SECOND_SCHEMES = frozenset(
    {"s3", "s3a", "s3n", "gs", "oss", "cos", "obs", "wasb", "wasbs", "abfs", "abfss"}
)


@dataclass(slots=True)
class _Source:
    """What is known of one table."""

    log: TableLog
    listing: LogListing = field(default_factory=lambda: LogListing((), frozenset()))
    looked_at: float = float("-inf")  # when the whole log was searched last
    in_commit_timestamps: bool = True
    version: int = -1  # the latest that is known
    readable: bool = False  # whether added files hold the rows as they are


class DeltaFeed:
    """Reads tables in a session of its own.

    `locations`: where the tables are that a catalog's name declares. `spool_rows`: a read with a
    larger estimate goes through a memory-mapped file (G8). `own_stores`: ids of the stores whose
    notes of cascade depth are believed (G16, G22). `seconds_max`: a longer read is cancelled.
    """

    def __init__(
        self,
        spark: SparkSession,
        locations: Mapping[str, str] | None = None,
        spool_rows: int = 1_000_000,
        own_stores: Collection[str] = (),
        jobs: Jobs | None = None,
        seconds_max: int = SECONDS_MAX,
    ) -> None:
        self._session = new_session(spark)
        self._locations = locations or {}
        self._spool_rows = spool_rows
        self._own_stores = own_stores
        self._jobs = jobs or Jobs(spark)
        self._seconds_max = seconds_max
        self._sources: dict[str, _Source] = {}
        self._looking = threading.RLock()  # entries look for versions beside the loop

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        """See `engine.core.ports.Feed.head`. Raises EngineError `table-missing`, `table-replaced`,
        `table-truncated`, `log-rewritten`, `table-restored`, `log-gap`, `log-damaged`,
        `version-gone`, `feed-off`, `catalog-managed`, `start-version`."""
        with self._looking:
            source = self._source(table)
            begun, looked_at = time.monotonic(), source.looked_at
            whole = after is None or begun - looked_at > _LOOK_SECONDS
            source.looked_at = float("-inf")  # if this look raises, the next one is whole again
            if after is None:
                source.log.forget()
                with _undamaged(table):
                    cursor = start_cursor(table, source.log, self._snapshot(table, source))
            else:
                cursor = after
            source.log.forget(cursor.version)
            new = self._is_new(table, source, cursor)
            if after is not None and (whole or new):
                with _undamaged(table):
                    self._identify(table, source, cursor)
            commits, left_out = self._follow(table, source, cursor, new, whole)
            source.looked_at = begun if whole else looked_at
            last = left_out or (commits[-1] if commits else cursor)
            source.version = max(source.version, last.version)
            coarse = (
                not source.in_commit_timestamps and source.log.files.scheme in _WHOLE_SECOND_SCHEMES
            )
            return TableHead(
                cursor=cursor,
                head=source.version,
                commits=tuple(commits),
                left_out=left_out,
                snapshot=after is None and table.start.kind == "snapshot",
                in_commit_timestamps=source.in_commit_timestamps,
                coarse_times=coarse,
            )

    def version(self, table: Table) -> int:
        """See `engine.core.ports.Feed.version`. Raises EngineError `table-missing`."""
        with self._looking:
            source = self._source(table)
            files = source.log.files
            if source.version < 0 or not files.exists(source.version):
                source.version = self._snapshot(table, source, source_of_events=False).version
            while files.exists(source.version + 1):
                source.version += 1
            return source.version

    def earliest(self, table: Table, cursor: Cursor, column: str) -> int | None:
        """See `engine.core.ports.Feed.earliest`. Raises EngineError `table-unreadable`,
        `read-overrun`."""
        location = self._source(table).log.location
        reader = self._session.read.format("delta").option("versionAsOf", cursor.version)
        what = f"table `{table.name}`: looking for the earliest `{column}`"
        with stops.reading(table.name, cursor.version, cursor.version):
            frame = reader.load(location).select(F.min(quoted(column)))
            first = self._run(what, (), lambda: collected(frame)).column(0)
        found: int | None = first.cast(INSTANT).cast(pa.int64())[0].as_py()
        return found

    def version_at(self, table: Table, instant: int) -> int | None:
        """See `engine.core.ports.Feed.version_at`. The commits of a log are in order of time: steps
        that double lead down from the head, then a binary search follows."""
        with self._looking:
            source, last = self._source(table), self.version(table)

            def is_after(version: int) -> bool:
                at = self._instant(table, source, version)
                return at is not None and at > instant

            low, high, step = last, last + 1, 1  # `high` and later ones are after the instant
            while low >= 0 and is_after(low):
                low, high, step = low - step, low, 2 * step
            low = max(low, -1)
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if is_after(middle) else (middle, high)
            return low if self._instant(table, source, low) is not None else None

    def _instant(self, table: Table, source: _Source, version: int) -> int | None:
        """A commit's instant by its log; None where its file is gone."""
        logged = self._commit(table, source, version) if version >= 0 else None
        return logged.instant if logged else None

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        """See `engine.core.ports.Feed.read`. Raises EngineError `version-gone`, `log-gap`,
        `feed-off`, `schema-incompatible`, `table-unreadable`, `read-overrun`."""
        location = self._source(table).log.location
        spool = span.rows_estimate > self._spool_rows
        where = {*request.where.values(), *request.only}
        what = f"table `{table.name}`: reading versions {span.first} to {span.last}"
        with stops.reading(table.name, span.first, span.last):
            return self._run(
                what, where, lambda: self._changes(location, table, span, request, spool=spool)
            )

    def rows_apart(self, table: Table, span: TableRange, request: ReadRequest) -> ApartRows:
        """What `read` gives, as a frame; no job has run yet. With `same`, the two images of an
        update are in one partition, whose rows are in one order, however they come. What Spark
        cannot order of the table's key is left out there: rows are together that need not be."""
        location = self._source(table).log.location
        with stops.reading(table.name, span.first, span.last):
            frame = changes(self._of_executors, location, span, request)
            if not request.same:
                return ApartRows(frame, whole=False)
            key = [name for name in table.key if sortable(frame.schema[name].dataType)]
            by = [F.col(quoted(name)) for name in (VERSION, *key)]
            parts = max(self._jobs.slots.count, -(-span.rows_estimate // WORKER_ROWS))
            ordered = frame.repartition(parts, *by).sortWithinPartitions(*by, KIND, SAME_1, SAME_2)
            return ApartRows(ordered, whole=True)

    @cached_property
    def _of_executors(self) -> SparkSession:
        """A session whose jobs have as many tasks as there are slots for."""
        session = new_session(self._session)
        for setting in _OF_ONE_TASK:
            session.conf.unset(setting)
        return session

    def _changes(
        self, location: str, table: Table, span: TableRange, request: ReadRequest, *, spool: bool
    ) -> pa.Table:
        appended = self._appended(table, span, request, spool=spool)
        if appended is not None:
            return appended
        return to_arrow(changes(self._session, location, span, request), spool=spool)

    def _appended(
        self, table: Table, span: TableRange, request: ReadRequest, *, spool: bool
    ) -> pa.Table | None:
        """The rows of plain appends to a table in a local folder; None if Spark must read them."""
        source = self._source(table)
        folder = source.log.files.folder
        if folder is None or span.snapshot:
            return None
        files = []
        with self._looking:
            for version in range(span.first, span.last + 1):
                if version in span.skipped:
                    continue
                commit = self._commit(table, source, version)
                if commit is None or commit.appended is None:
                    return None
                files += [(version, file) for file in commit.appended]
            if not source.readable:
                return None
        return read_appends(folder, files, request, span.cursor.schema, spool=spool)

    def history(self, table: Table, span: TableRange) -> pa.Table:
        """See `engine.core.ports.Feed.history`. Raises EngineError `version-gone`, `log-damaged`,
        `table-unreadable`."""
        source = self._source(table)
        found = []
        for version in range(span.first, span.last + 1):
            logged = self._commit(table, source, version)
            if logged is None:
                raise stops.version_gone(table.name, version, "its log file was cleaned up")
            if not logged.seal:
                found.append(logged.shown)
        return pa.Table.from_pylist(found, commit_schema(Change.COMMIT))

    def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
        """See `engine.core.ports.Feed.decide`. Raises EngineError `table-unreadable`,
        `read-overrun`."""
        try:
            return self._run(
                f"{source}: deciding rows at hand",
                where.values(),
                lambda: decisions(self._session, rows, where),
            )
        except SPARK_ERRORS as error:
            raise stops.undecided(source, error) from error

    def _run(self, what: str, where: Iterable[str], call: Callable[[], pa.Table]) -> pa.Table:
        """What a call returns within its deadline. Raises EngineError `read-overrun`."""
        try:
            return self._jobs.run(self._seconds_max, call)
        except OverrunError as error:
            raise stops.read_overrun(what, where, error) from error

    def _source(self, table: Table) -> _Source:
        if table.name not in self._sources:
            location = self._locations.get(table.name, table.path)
            if location is None:
                raise stops.table_missing(table.name, str(table.catalog))
            with stops.reading(table.name, 0, 0):
                self._sources[table.name] = _Source(
                    TableLog(self._session, location, self._own_stores)
                )
        return self._sources[table.name]

    def _snapshot(self, table: Table, source: _Source, source_of_events: bool = True) -> Snapshot:
        """The table as it is now. Raises EngineError `table-missing`, and for a source of events
        `catalog-managed`: its log does not show all commits."""
        try:
            snapshot = source.log.snapshot(trusting=not source_of_events)
        except Py4JJavaError as error:
            raise _unbuilt(table, source.log, error) from error
        if snapshot.version < 0:
            raise stops.table_missing(table.name, source.log.location)
        source.in_commit_timestamps = snapshot.metadata.in_commit_timestamps
        source.version = snapshot.version
        source.readable = readable(snapshot.features, snapshot.metadata.configuration)
        if source_of_events and snapshot.catalog_managed:
            raise stops.catalog_managed(table.name)
        return snapshot

    def _identify(self, table: Table, source: _Source, cursor: Cursor) -> None:
        """Check that the table is still the one that the cursor was read from (G10).

        Where the cursor's commit file is as it was seen in this run, the table is the same. Else
        the metadata id as of the cursor's version is compared, then the digest of that file: a copy
        that somebody put back has the same id. A file that was cleaned up proves nothing.
        """
        log = source.log
        modified = log.files.modified_ms(cursor.version)
        if modified is None or modified != log.parsed_ms(cursor.version):
            self._identify_anew(table, source, cursor)
        logged = log.commit(cursor.version)
        if logged is not None and cursor.digest not in (None, logged.digest):
            raise stops.log_rewritten(table.name, logged, cursor.instant)

    def _identify_anew(self, table: Table, source: _Source, cursor: Cursor) -> None:
        log = source.log
        log.forget()
        head = self._snapshot(table, source)
        known = head
        if head.metadata.id != cursor.table_id and 0 <= cursor.version <= head.version:
            with suppress(Py4JJavaError):
                known = log.snapshot(cursor.version)
        if known.metadata.id != cursor.table_id and cursor.version >= 0:
            raise stops.table_replaced(table.name, 0, known.metadata.id, cursor.table_id)
        if head.version < cursor.version:
            raise stops.table_truncated(table.name, head.version, cursor.version)

    def _is_new(self, table: Table, source: _Source, cursor: Cursor) -> bool:
        """Whether there is a commit that is not known yet. It takes one call of the file system,
        and none where more commits are known than one look takes."""
        version = cursor.version + 1
        while source.log.known(version) is not None:
            version += 1
        if version > cursor.version + 1 + _COMMITS_MAX:
            return False
        with stops.reading(table.name, version, version):
            return source.log.files.exists(version)

    def _follow(
        self, table: Table, source: _Source, cursor: Cursor, new: bool, whole: bool
    ) -> tuple[list[Commit], Commit | None]:
        """The commits after the cursor, and the first one that is left out, if any.

        A commit that is an obstacle is left out, and so are all after it; where it comes first, it
        is raised. `new`: read commits that are not known yet. `whole`: search the log for gaps too.
        """
        commits: list[Commit] = []
        schema, version = cursor.schema, cursor.version + 1
        while True:
            logged = source.log.known(version)
            if logged is None and (new or whole):
                logged = self._commit(table, source, version)
            if logged is None:
                obstacle = self._gap(table, source, cursor, version, whole)
                if obstacle is None:
                    return commits, None
                logged = self._commit(table, source, self._next(source, version) or version)
            else:
                obstacle = _obstacle(table, cursor, logged)
            if obstacle is not None and not commits:
                raise obstacle
            if logged is None:
                return commits, None
            commit = _as_commit(table, logged, schema)
            if obstacle is not None or len(commits) == _COMMITS_MAX:
                return commits, commit
            schema = commit.schema or schema
            commits.append(commit)
            version += 1

    def _commit(self, table: Table, source: _Source, version: int) -> LoggedCommit | None:
        with _undamaged(table), stops.reading(table.name, version, version):
            logged = source.log.commit(version)
        if logged is not None:
            properties = logged.metadata.configuration if logged.metadata else {}
            source.readable &= readable(logged.features, properties)
        return logged

    def _gap(
        self, table: Table, source: _Source, cursor: Cursor, version: int, whole: bool
    ) -> EngineError | None:
        """What is wrong where a version is missing: None if the log ends there."""
        files = source.log.files
        if whole:
            source.listing = source.log.listing(version)
        next_version = self._next(source, version)
        if next_version is None or files.exists(version):
            return None
        if version == cursor.version + 1 and not files.exists(cursor.version):
            return stops.version_gone(table.name, version, "its log file was cleaned up")
        return stops.log_gap(table.name, version, next_version)

    def _next(self, source: _Source, version: int) -> int | None:
        return next((v for v in source.listing.commits if v > version), None)


@contextmanager
def _undamaged(table: Table) -> Iterator[None]:
    """Turns DamagedCommit into an EngineError."""
    try:
        yield
    except DamagedCommit as error:
        raise stops.log_damaged(table.name, error.version, str(error)) from error


def _unbuilt(table: Table, log: TableLog, error: Py4JJavaError) -> EngineError:
    """Why Delta cannot build the table's latest state: the first gap in the log, else its error."""
    commits = log.listing().commits
    for version, following in pairwise(commits):
        if following != version + 1:
            return stops.log_gap(table.name, version + 1, following)
    return stops.translated(table.name, 0, commits[-1] if commits else 0, error)


def _obstacle(table: Table, cursor: Cursor, logged: LoggedCommit) -> EngineError | None:
    """Why the engine must stop before a commit; None where it can take it."""
    found = logged.metadata
    if found is not None and found.id != cursor.table_id:
        return stops.table_replaced(table.name, logged.version, found.id, cursor.table_id)
    if found is not None and not found.feed:
        return stops.feed_off(table.name, logged.version)
    if (found is not None and found.coordinated) or logged.features & CATALOG_FEATURES:
        return stops.catalog_managed(table.name)
    if logged.operation == "RESTORE" and table.on_restore == "stop":
        return stops.table_restored(table.name, logged.version)
    return None


def _as_commit(table: Table, logged: LoggedCommit, schema: str) -> Commit:
    found = logged.metadata
    changed = found is not None and not same_schema(schema, found.schema)
    return Commit(
        version=logged.version,
        instant=logged.instant,
        rows_estimate=logged.rows,
        depth=logged.depth,
        writer=logged.writer,
        digest=logged.digest,
        schema=found.schema if found is not None and changed else None,
        skip=not logged.changes_data
        or (logged.operation == "RESTORE" and table.on_restore == "skip"),
    )
