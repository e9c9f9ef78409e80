"""Markers of Delta tables: `engine.markers.Markers`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import orjson
from pyspark.sql import SparkSession

from connectors.delta.commit import MILLISECOND
from connectors.delta.faults import SPARK_ERRORS, fault
from connectors.delta.log import TableLog
from connectors.delta.session import new_session
from engine.markers import Marked, Marker, Noted, Notes, parse_marker
from rules.errors import EngineError

_TABLES_AT_ONCE = 8
_MS_PER_DAY = 86_400_000
_READ_ACTION = re.compile(r'\s*\{\s*"(?:commitInfo|txn)"')


class DeltaMarkers:
    """Reads through the snapshots that Delta keeps: what the first write to a table would have had
    to look up is only looked up earlier. `locations`: by table."""

    def __init__(self, spark: SparkSession, locations: Mapping[str, str]) -> None:
        self._session = new_session(spark)
        self._locations = locations

    def latest(self, tables: Collection[str]) -> tuple[Marked, ...]:
        """See `engine.markers.Markers`. Tables are read beside each other."""
        if not tables:
            return ()
        with ThreadPoolExecutor(min(len(tables), _TABLES_AT_ONCE), "markers") as threads:
            return tuple(threads.map(self._latest, tables))

    def noted(self, table: str, after: int) -> Notes:
        """See `engine.markers.Markers`."""
        with _readable(table):
            log = TableLog(self._session, self._locations[table])
            versions = [v for v in log.listing(after + 1).commits if v > after]
            found = (self._noted(log, version) for version in versions)
            commits = tuple(noted for of_version in found for noted in of_version)
            return Notes(commits, versions[0] if versions else after + 1)

    def _latest(self, table: str) -> Marked:
        location = self._locations[table]
        jvm: Any = self._session._jvm
        delta, none = jvm.org.apache.spark.sql.delta, jvm.scala.Option.empty()
        with _readable(table), self._active():
            log = delta.DeltaLog.forTable(self._session._jsparkSession, location)
            snapshot = log.update(False, none, none)
            mapper = delta.util.JsonUtils.mapper()
            found = orjson.loads(mapper.writeValueAsString(snapshot.setTransactions()))
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

    def _noted(self, log: TableLog, version: int) -> Iterator[Noted]:
        actions = [orjson.loads(x) for x in log.lines(version) if _READ_ACTION.match(x)]
        infos = [a["commitInfo"] for a in actions if "commitInfo" in a]
        info = infos[0] if infos else {}
        markers = _markers(a["txn"] for a in actions if "txn" in a)
        for marker in markers:
            at = info.get("inCommitTimestamp") or info.get("timestamp") or 0
            yield Noted(version, int(at) * MILLISECOND, marker, _firings(info.get("userMetadata")))


def _markers(found: Iterator[Any] | list[Any]) -> tuple[Marker, ...]:
    made = (
        parse_marker(t["appId"], int(t["version"]), _micros(t.get("lastUpdated"))) for t in found
    )
    return tuple(marker for marker in made if marker is not None)


def _micros(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds * MILLISECOND


def _firings(user_metadata: Any) -> int | None:
    """How many firings a commit's userMetadata names; others may have written what they like."""
    try:
        count = orjson.loads(user_metadata)["tidegate"]["firings"]
    except (ValueError, KeyError, TypeError):
        return None
    return count if isinstance(count, int) else None


@contextmanager
def _readable(table: str) -> Iterator[None]:
    try:
        yield
    except SPARK_ERRORS as error:
        found = fault(error)
        raise EngineError(
            "table-unreadable",
            f"table `{table}`: its markers cannot be read: [{found.condition}] {found.message}",
            "nothing was run: what was done before is not known without them; repair the table, "
            "then start again",
        ) from error
