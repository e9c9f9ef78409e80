"""Commits to Delta tables as Spark writes them, without Spark: in a hundredth of the time.

A test of what follows a commit has no use for the statement that makes one."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.engine.core.types.spark import arrow_type, schema_json

FEATURES = {
    "delta.appendOnly": "appendOnly",
    "delta.enableChangeDataFeed": "changeDataFeed",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
}
STAMPED = '"inCommitTimestamp"'
COMMITS = f"{'[0-9]' * 20}.json"


def create(folder: Path, columns: str, properties: Mapping[str, str]) -> bool:
    """Make an empty table of columns as in DDL. False, and nothing is made, if it is not plain:
    another property than those of FEATURES, or a column with more than a name and a simple type."""
    parts = [column.split() for column in columns.split(",")]
    plain = all(len(part) == 2 and part[1].isalpha() for part in parts)
    if folder.exists() or not plain or not properties.keys() <= FEATURES.keys():
        return False
    schema = pa.schema([(name, arrow_type(kind.lower())) for name, kind in parts])
    features = [FEATURES[name] for name, value in properties.items() if value == "true"]
    (folder / "_delta_log").mkdir(parents=True)
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_json(schema),
        "partitionColumns": [],
        "configuration": dict(properties),
        "createdTime": time.time_ns() // 1_000_000,
    }
    protocol = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": sorted({*features, "invariants", "appendOnly"}),
    }
    parameters = {"partitionBy": "[]", "clusterBy": "[]", "description": None, "isManaged": "false"}
    _commit(
        folder,
        {"operation": "CREATE TABLE", "operationParameters": parameters, "operationMetrics": {}},
        {"metaData": metadata},
        {"protocol": protocol},
        stamped="inCommitTimestamp" in features,
    )
    return True


def append(folder: Path, rows: Sequence[Sequence[Any]]) -> None:
    """One commit of rows to a table that is neither partitioned nor has it mapped columns. Its
    schema is that of version 0."""
    first = (folder / "_delta_log" / f"{0:020d}.json").read_text()
    schema = _schema(first.splitlines())
    columns = zip(*rows, strict=True)
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
    path = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    pq.write_table(table, folder / path)
    size = (folder / path).stat().st_size
    metrics = {"numFiles": "1", "numOutputRows": str(len(rows)), "numOutputBytes": str(size)}
    _commit(
        folder,
        {
            "operation": "WRITE",
            "operationParameters": {"mode": "Append", "partitionBy": "[]"},
            "operationMetrics": metrics,
        },
        {
            "add": {
                "path": path,
                "partitionValues": {},
                "size": size,
                "modificationTime": time.time_ns() // 1_000_000,
                "dataChange": True,
                "stats": json.dumps({"numRecords": len(rows)}),
            }
        },
        stamped=STAMPED in first,
    )


def _sum_up(log: Path, version: int, actions: Mapping[str, Any]) -> None:
    """The checksum file of a version, from that of the one before, if there is one. Without it
    Spark runs jobs to learn what a table is, and again before it commits."""
    before = log / f"{version - 1:020d}.crc"
    if version == 0:
        summed = {"tableSizeBytes": 0, "numFiles": 0, "numMetadata": 1, "numProtocol": 1}
        summed |= {"setTransactions": [], "domainMetadata": []}
        summed |= {"metadata": actions["metaData"], "protocol": actions["protocol"]}
    elif before.exists():
        summed = json.loads(before.read_text())
        for detail in ("txnId", "histogramOpt", "fileSizeHistogram", "allFiles"):
            summed.pop(detail, None)
        summed["tableSizeBytes"] += actions["add"]["size"]
        summed["numFiles"] += 1
    else:
        return
    if (stamp := actions["commitInfo"].get("inCommitTimestamp")) is not None:
        summed["inCommitTimestampOpt"] = stamp
    (log / f"{version:020d}.crc").write_text(json.dumps(summed, separators=(",", ":")) + "\n")


def _schema(lines: Sequence[str]) -> pa.Schema:
    (metadata,) = (line["metaData"] for line in map(json.loads, lines) if "metaData" in line)
    fields = json.loads(metadata["schemaString"])["fields"]
    return pa.schema([(field["name"], arrow_type(field["type"])) for field in fields])


def _commit(
    folder: Path, info: Mapping[str, Any], *actions: Mapping[str, Any], stamped: bool
) -> None:
    """The version after the last. With in-commit timestamps it stands after that one, too."""
    log = folder / "_delta_log"
    last = max(log.glob(COMMITS), default=None)
    now = time.time_ns() // 1_000_000
    more: dict[str, Any] = {"timestamp": now}
    version = 0
    if last is not None:
        version = int(last.stem) + 1
        more["readVersion"] = version - 1
        before = json.loads(last.read_text().partition("\n")[0])["commitInfo"]
        now = max(now, before.get("inCommitTimestamp", 0) + 1)
    if stamped:
        more = {"inCommitTimestamp": now, **more}
    noted = {
        **more,
        **info,
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0",
        "txnId": str(uuid.uuid4()),
    }
    actions = ({"commitInfo": noted}, *actions)
    lines = [json.dumps(action, separators=(",", ":")) for action in actions]
    with (log / f"{version:020d}.json").open("x") as file:
        file.write("\n".join(lines) + "\n")
    _sum_up(log, version, {name: value for action in actions for name, value in action.items()})
    while time.time_ns() // 1_000_000 <= now:  # what another table gets next stands later
        time.sleep(0.0002)
