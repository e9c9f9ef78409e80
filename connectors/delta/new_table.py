"""Local Delta tables that are made and changed without a Spark job: for tests of rulebooks.

A commit is written as Delta's protocol says: a Parquet file of the rows, then the JSON of the
version that adds it. That takes milliseconds; CREATE TABLE and INSERT take a fifth of a second.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.engine.core.types.spark import schema_json

_PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.checkpointInterval": "1000000",  # no table of a test is worth a checkpoint
}
_PROTOCOL = {  # a table can get columns of any type
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["timestampNtz"],
    "writerFeatures": ["timestampNtz", "appendOnly", "changeDataFeed", "invariants"],
}
_CHANGES = "_change_data"


def create_table(folder: Path, table_id: str, rows: pa.Table) -> None:
    """Make a table whose version 0 has these rows, with its change data feed on."""
    (folder / "_delta_log").mkdir(parents=True)
    metadata = {
        "id": table_id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_json(rows.schema),
        "partitionColumns": [],
        "configuration": _PROPERTIES,
    }
    _commit(
        folder,
        0,
        "CREATE TABLE AS SELECT",
        {"numOutputRows": str(rows.num_rows)},
        {"protocol": _PROTOCOL},
        {"metaData": metadata},
        *_added(folder, rows),
    )


def append(folder: Path, version: int, rows: pa.Table) -> None:
    """Commit rows as a version, the one after the last."""
    metrics = {"numOutputRows": str(rows.num_rows)}
    _commit(folder, version, "WRITE", metrics, *_added(folder, rows))


def replace_rows(
    folder: Path,
    version: int,
    operation: str,
    metrics: Mapping[str, str],
    rows: pa.Table,
    changes: pa.Table,
) -> None:
    """Commit a version, the one after the last, that has these rows and no others. `changes`: how
    it comes to them, at least one row; the columns of the table, and `_change_type`."""
    gone = [
        {"remove": {"path": path, "deletionTimestamp": _now(), "dataChange": True}}
        for path in _files(folder, version - 1)
    ]
    (folder / _CHANGES).mkdir(exist_ok=True)
    file = {**_written(folder, f"{_CHANGES}/cdc", changes), "dataChange": False}
    _commit(folder, version, operation, metrics, *gone, *_added(folder, rows), {"cdc": file})


def read_rows(folder: Path, schema: pa.Schema, version: int) -> pa.Table:
    """The rows as of a version. Columns that a file does not have yet are null. No file has
    deletion vectors, or partitions: the tables are those that `create_table` makes."""
    parts = [schema.empty_table()]
    for path in _files(folder, version):
        # Spark writes timestamps as INT96, which are nanoseconds for Arrow unless it is told.
        found = pq.read_table(folder / unquote(path), coerce_int96_timestamp_unit="us")
        columns = [
            found[field.name].cast(field.type)
            if field.name in found.column_names
            else pa.nulls(found.num_rows, field.type)
            for field in schema
        ]
        parts.append(pa.table(columns, schema))
    return pa.concat_tables(parts)


def _commit(
    folder: Path,
    version: int,
    operation: str,
    metrics: Mapping[str, str],
    *actions: Mapping[str, Any],
) -> None:
    info = {
        "timestamp": _now(),
        "operation": operation,
        "operationParameters": {},
        "isBlindAppend": operation == "WRITE",
        "operationMetrics": metrics,
    }
    if operation == "WRITE":
        info["operationParameters"] = {"mode": "Append", "partitionBy": "[]"}
    if version:
        info["readVersion"] = version - 1
    lines = [{"commitInfo": info}, *actions]
    with (folder / "_delta_log" / f"{version:020d}.json").open("x", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)


def _added(folder: Path, rows: pa.Table) -> Iterator[Mapping[str, Any]]:
    """The action that adds a new file with rows; none if there are no rows."""
    if rows.num_rows:
        yield {
            "add": {
                **_written(folder, "part", rows),
                "modificationTime": _now(),
                "dataChange": True,
                "stats": json.dumps({"numRecords": rows.num_rows}),
            }
        }


def _written(folder: Path, name: str, rows: pa.Table) -> Mapping[str, Any]:
    """A new file with rows, as an action tells it."""
    path = f"{name}-00000-{uuid.uuid4()}.parquet"
    pq.write_table(rows, folder / path)
    return {"path": path, "partitionValues": {}, "size": (folder / path).stat().st_size}


def _files(folder: Path, last: int) -> list[str]:
    """The files with the rows of a version. There are no checkpoints."""
    found: dict[str, None] = {}
    for version in range(last + 1):
        log = folder / "_delta_log" / f"{version:020d}.json"
        for line in log.read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            if "add" in action:
                found[action["add"]["path"]] = None
            elif "remove" in action:
                found.pop(action["remove"]["path"], None)
    return list(found)


def _now() -> int:
    return time.time_ns() // 1_000_000
