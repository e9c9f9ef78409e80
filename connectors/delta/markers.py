"""Markers of Delta tables: `engine.core.markers.Markers`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.pool import ThreadPool  # works on while the interpreter ends, as engines do
from typing import Any

import orjson
from pyspark.sql import SparkSession

from tidegate.connectors.delta.commit import MILLISECOND, LoggedCommit
from tidegate.connectors.delta.faults import SPARK_ERRORS, check_alive, fault
from tidegate.connectors.delta.log import TableLog
from tidegate.connectors.delta.session import new_session
from tidegate.engine.core.markers import Marked, Marker, Noted, Notes, parse_marker
from tidegate.rules.errors import EngineError

_TABLES_AT_ONCE = 8
_MS_PER_DAY = 86_400_000


class DeltaMarkers:
    """Reads through the snapshots that Delta keeps: what is looked up here, the first write to
    a table need not look up again. `locations`: by table."""

    def __init__(self, spark: SparkSession, locations: Mapping[str, str]) -> None:
        self._session = new_session(spark)
        self._locations = locations

    def latest(self, tables: Collection[str]) -> tuple[Marked, ...]:
        """See `engine.core.markers.Markers`. Tables are read beside each other."""
        if not tables:
            return ()
        with ThreadPool(min(len(tables), _TABLES_AT_ONCE)) as threads:
            return tuple(threads.map(self._latest, tables))

    def noted(self, table: str, after: int) -> Notes:
        """See `engine.core.markers.Markers`."""
        with _readable(table):
            log = TableLog(self._session, self._locations[table])
            versions = [v for v in log.listing(after + 1).commits if v > after]
            found = (log.commit(version) for version in versions)
            commits = (_noted(commit) for commit in found if commit is not None)
            kept = tuple(noted for noted in commits if noted is not None)
            return Notes(kept, versions[0] if versions else after + 1)

    def _latest(self, table: str) -> Marked:
        location = self._locations[table]
        jvm: Any = self._session._jvm
        delta, none = jvm.org.apache.spark.sql.delta, jvm.scala.Option.empty()
        with _readable(table), self._active():
            log = delta.DeltaLog.forTable(self._session._jsparkSession, location)
            snapshot = log.update(False, none, none)
            mapper = delta.util.JsonUtils.mapper()
            found = orjson.loads(mapper.writeValueAsString(_transactions(snapshot)))
            configured = delta.DeltaConfigs.TRANSACTION_ID_RETENTION_DURATION()
            kept = configured.fromMetaData(snapshot.metadata())
            if kept.isEmpty():
                return Marked(table, location, _markers(found))
            text = str(snapshot.metadata().configuration().apply(configured.key()))
            days = int(delta.DeltaConfigs.getMilliSeconds(kept.get())) / _MS_PER_DAY
            return Marked(table, location, _markers(found), text, days)

    @contextmanager
    def _active(self) -> Iterator[None]:
        """The settings of small jobs for what Delta runs in this thread."""
        jvm: Any = self._session._jvm
        sessions = jvm.org.apache.spark.sql.SparkSession
        sessions.setActiveSession(self._session._jsparkSession)
        try:
            yield
        finally:
            sessions.clearActiveSession()


def _transactions(snapshot: Any) -> Any:
    """All that set a transaction: from the checksum file of the version, which has them unless they
    are too many, or it was not written; else Spark has to run a job over the table's state."""
    checksum = snapshot.checksumOpt()
    kept = checksum.get().setTransactions() if checksum.isDefined() else checksum
    return kept.get() if kept.isDefined() else snapshot.setTransactions()


def _markers(found: list[dict[str, Any]]) -> tuple[Marker, ...]:
    made = (
        parse_marker(txn["appId"], int(txn["version"]), _micros(txn.get("lastUpdated")))
        for txn in found
    )
    return tuple(marker for marker in made if marker is not None)


def _noted(commit: LoggedCommit) -> Noted | None:
    """What a commit says of its entry; others may have written what they like."""
    note = commit.note
    app_id, number, firings = note.get("app_id"), note.get("entry"), note.get("firings", 0)
    if not (isinstance(app_id, str) and type(number) is type(firings) is int):
        return None
    marker = parse_marker(app_id, number, commit.instant)
    sealed = note.get("sealed") is True
    return None if marker is None else Noted(commit.version, marker, firings, sealed)


def _micros(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds * MILLISECOND


@contextmanager
def _readable(table: str) -> Iterator[None]:
    try:
        yield
    except SPARK_ERRORS as error:
        check_alive(error)
        found = fault(error)
        raise EngineError(
            "table-unreadable",
            f"table `{table}`: its markers cannot be read: [{found.condition}] {found.message}",
            "nothing was run: what was done before is not known without them; repair the table, "
            "then start again",
        ) from error
