"""Reads the markers in Delta tables. Implements `engine.core.markers.Markers`."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from multiprocessing.pool import ThreadPool  # works on while the interpreter ends, as engines do
from typing import Any

import orjson
from pyspark.sql import SparkSession

from tidegate.connectors.delta.catalog import active_session_kept, latest_snapshot
from tidegate.connectors.delta.commit import MILLISECOND, LoggedCommit
from tidegate.connectors.delta.faults import SPARK_ERRORS, check_alive, fault
from tidegate.connectors.delta.java_classes import compiled, java_class
from tidegate.connectors.delta.log import TableLog
from tidegate.connectors.delta.session import SESSION, new_session
from tidegate.engine.core.markers import Marked, Marker, Noted, Notes, parse_marker
from tidegate.rules.errors import EngineError

_TABLES_AT_ONCE = 8
_MS_PER_DAY = 86_400_000

log = logging.getLogger(__name__)


class DeltaMarkers:
    """Reads markers from the snapshots that Delta caches: the first write to a table finds them
    there. `locations`: by table."""

    def __init__(self, spark: SparkSession, locations: Mapping[str, str]) -> None:
        self._session = new_session(spark)
        self._locations = locations

    def latest(self, tables: Collection[str]) -> tuple[Marked, ...]:
        """See `engine.core.markers.Markers`. Several tables are read at the same time."""
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
            kept = tuple(chain.from_iterable(commits))
            return Notes(kept, versions[0] if versions else after + 1)

    def _latest(self, table: str) -> Marked:
        location = self._locations[table]
        session = self._session
        configs = java_class(session, "org.apache.spark.sql.delta.DeltaConfigs")
        texts = java_class(session, "org.apache.spark.sql.delta.util.JsonUtils")
        sessions = java_class(session, SESSION)
        with _readable(table), active_session_kept(session):
            # Delta's jobs then have the settings of small jobs
            sessions.setActiveSession(session._jsparkSession)
            snapshot = latest_snapshot(session, location)
            found = orjson.loads(texts.mapper().writeValueAsString(_transactions(snapshot)))
            configured = configs.TRANSACTION_ID_RETENTION_DURATION()
            kept = configured.fromMetaData(snapshot.metadata())
            if kept.isEmpty():
                return Marked(table, location, _markers(found))
            text = str(snapshot.metadata().configuration().apply(configured.key()))
            days = int(configs.getMilliSeconds(kept.get())) / _MS_PER_DAY
            return Marked(table, location, _markers(found), text, days)


def _transactions(snapshot: Any) -> Any:
    """All transactions (markers) of a snapshot. The version's checksum file holds them. Where it is
    missing, or they are too many for it, Spark runs a job over the table's state."""
    checksum = snapshot.checksumOpt()
    kept = checksum.get().setTransactions() if checksum.isDefined() else checksum
    return kept.get() if kept.isDefined() else snapshot.setTransactions()


def prepare(session: SparkSession, snapshot: Any) -> bool:
    """Give a snapshot its markers from its checksum (Markers.java), so that a marked statement
    does not make Delta compute them. Returns whether it has them: False where the checksum does not
    list them, and for a Delta that keeps them in another way than ours."""
    try:
        return bool(compiled(session, "Markers").prepare(snapshot))
    except SPARK_ERRORS as error:
        check_alive(error)
        log.warning("Delta computes the markers of each commit anew: %s", fault(error).line)
        return False


def _markers(found: list[dict[str, Any]]) -> tuple[Marker, ...]:
    made = (
        parse_marker(txn["appId"], int(txn["version"]), _micros(txn.get("lastUpdated")))
        for txn in found
    )
    return tuple(marker for marker in made if marker is not None)


def _noted(commit: LoggedCommit) -> Iterator[Noted]:
    """The notes of a commit about its entries; none of any other note, which anybody may write."""
    for note in commit.notes:
        app_id, number, firings = note.get("app_id"), note.get("entry"), note.get("firings", 0)
        if isinstance(app_id, str) and type(number) is type(firings) is int:
            marker = parse_marker(app_id, number, commit.instant)
            if marker is not None:
                yield Noted(commit.version, marker, firings, note.get("sealed") is True)


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
            "nothing was run: without its markers it is not known what was done before; repair the "
            "table, then start again",
        ) from error
