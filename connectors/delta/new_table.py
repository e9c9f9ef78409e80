"""Local Delta tables that are made, and appended to, without a Spark job: for tests of rulebooks.

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

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.engine.core.types.spark import schema_json

_PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.checkpointInterval": "1000000",  # no table of a test is worth a checkpoint
}
_WRITER_FEATURES = ["appendOnly", "changeDataFeed", "invariants"]
_NTZ = ["timestampNtz"]


def create_table(folder: Path, table_id: str, rows: pa.Table) -> None:
    """Make a table whose version 0 has these rows, with its change data feed on."""
    (folder / "_delta_log").mkdir(parents=True)
    ntz = _NTZ if any(map(_is_ntz, _types(rows.schema))) else []
    protocol: dict[str, Any] = {
        "minReaderVersion": 3 if ntz else 1,
        "minWriterVersion": 7,
        "writerFeatures": [*ntz, *_WRITER_FEATURES],
    }
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
        rows,
        {"protocol": {**protocol, "readerFeatures": ntz} if ntz else protocol},
        {"metaData": metadata},
    )


def append(folder: Path, version: int, rows: pa.Table) -> None:
    """Commit rows as a version, the one after the last."""
    _commit(folder, version, "WRITE", rows)


def _commit(
    folder: Path, version: int, operation: str, rows: pa.Table, *actions: Mapping[str, Any]
) -> None:
    now = time.time_ns() // 1_000_000
    info = {
        "timestamp": now,
        "operation": operation,
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "isBlindAppend": True,
        "operationMetrics": {"numOutputRows": str(rows.num_rows)},
    }
    if version:
        info["readVersion"] = version - 1
    lines = [{"commitInfo": info}, *actions, *_added(folder, rows, now)]
    with (folder / "_delta_log" / f"{version:020d}.json").open("x", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)


def _added(folder: Path, rows: pa.Table, now: int) -> Iterator[Mapping[str, Any]]:
    """The action that adds a new file with rows; none if there are no rows."""
    if rows.num_rows:
        file = folder / f"part-00000-{uuid.uuid4()}.parquet"
        pq.write_table(rows, file)
        yield {
            "add": {
                "path": file.name,
                "partitionValues": {},
                "size": file.stat().st_size,
                "modificationTime": now,
                "dataChange": True,
                "stats": json.dumps({"numRecords": rows.num_rows}),
            }
        }


def _types(schema: pa.Schema) -> Iterator[pa.DataType]:
    for field in schema:
        yield from _parts(field.type)


def _parts(kind: pa.DataType) -> Iterator[pa.DataType]:
    """A type, and those that it is made of."""
    yield kind
    for at in range(kind.num_fields):
        yield from _parts(kind.field(at).type)


def _is_ntz(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is None
