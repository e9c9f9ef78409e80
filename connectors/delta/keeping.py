"""Reads for how long Delta keeps the past of tables, from their properties (`engine.core.keeping`).

It works with every file system. Delta keeps the snapshots that it asks, so no job runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from tidegate.connectors.delta.catalog import Catalog, active_session_kept
from tidegate.connectors.delta.faults import SPARK_ERRORS, check_alive, fault
from tidegate.connectors.delta.java_classes import java_class
from tidegate.connectors.delta.log import TableLog
from tidegate.engine.core.keeping import Keeping
from tidegate.rules.errors import EngineError

_COMMIT = re.compile(r"(\d{20})\.json")


def keepings(catalog: Catalog, tables: Collection[str]) -> list[Keeping]:
    """The keeping of each of these tables that is there. Raises EngineError `table-unreadable`."""
    found = []
    for table in tables:
        if table in catalog.locations:
            try:
                with active_session_kept(catalog.spark):
                    found.append(_keeping(catalog, table))
            except SPARK_ERRORS as error:
                check_alive(error)
                said = fault(error)
                message = f"table `{table}`: its properties cannot be read: "
                message += f"[{said.condition}] {said.message}"
                raise EngineError("table-unreadable", message, "repair the table") from error
    return found


def _keeping(catalog: Catalog, table: str) -> Keeping:
    configs = java_class(catalog.spark, "org.apache.spark.sql.delta.DeltaConfigs")
    snapshot = catalog.snapshot(table)
    metadata = snapshot.metadata()
    cleaned = bool(configs.ENABLE_EXPIRED_LOG_CLEANUP().fromMetaData(metadata))
    log, files = (
        int(configs.getMilliSeconds(config.fromMetaData(metadata))) * 1_000
        for config in (configs.LOG_RETENTION(), configs.TOMBSTONE_RETENTION())
    )
    head = int(snapshot.version())
    names = TableLog(catalog.spark, catalog.locations[table]).files.names_from(0)
    commits = (int(match[1]) for name in names if (match := _COMMIT.fullmatch(name)))
    return Keeping(table, log if cleaned else None, files, next(commits, head), head)
