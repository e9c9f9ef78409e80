"""Commits of a Delta log, read from their JSON."""

from __future__ import annotations

import json
from typing import Any

from connectors.delta.commit import parse_commit


def commit(*actions: dict[str, Any]) -> str:
    return "\n".join(json.dumps(action, separators=(",", ":")) for action in actions)


def info(**fields: Any) -> dict[str, Any]:
    return {"commitInfo": {"operation": "WRITE", "timestamp": 1, **fields}}


ADD = {"add": {"path": "f", "dataChange": True, "stats": '{"numRecords":7}'}}


def test_g01_the_in_commit_timestamp_else_the_files_own_time() -> None:
    assert parse_commit(3, commit(info(inCommitTimestamp=5), ADD), 9).instant == 5_000
    assert parse_commit(3, commit(info(), ADD), 9).instant == 9_000
    assert parse_commit(3, commit(ADD), 9).instant == 9_000


def test_rows_are_estimated_from_the_metrics_else_from_the_files() -> None:
    def rows(**metrics: str) -> int:
        return parse_commit(1, commit(info(operationMetrics=metrics), ADD), 0).rows

    assert rows(numOutputRows="12") == 12
    assert rows(numUpdatedRows="4", numCopiedRows="100") == 8
    assert rows(numDeletedRows="3") == 3
    merged = {"numTargetRowsInserted": "1", "numTargetRowsUpdated": "2", "numOutputRows": "99"}
    assert rows(**merged, numTargetRowsDeleted="3") == 8
    assert rows() == 7


def test_a_commit_that_changes_no_data_has_no_rows() -> None:
    moved = {"add": {**ADD["add"], "dataChange": False}}
    found = parse_commit(1, commit(info(operation="OPTIMIZE"), moved), 0)
    assert (found.changes_data, found.rows) == (False, 0)
    assert parse_commit(1, commit(info(), {"cdc": {"path": "c"}}), 0).changes_data


def test_g16_the_depth_of_our_own_commits() -> None:
    def depth(user_metadata: Any) -> int:
        return parse_commit(1, commit(info(userMetadata=user_metadata)), 0).depth

    assert depth(json.dumps({"tidegate": {"store": "x", "depth": 3}})) == 3
    for foreign in ("free text", "{}", '{"tidegate":1}', "[1]", None):
        assert depth(foreign) == 0


def test_blanks_and_other_ends_of_lines_are_json_too() -> None:
    """As other writers, and Spark with what users type, leave it."""
    told = info(userMetadata="one\u2028two\x85three", inCommitTimestamp=5)
    text = "\n".join(json.dumps(action, ensure_ascii=False) for action in (told, ADD))
    found = parse_commit(3, text, 9)
    assert (found.operation, found.instant, found.changes_data) == ("WRITE", 5_000, True)
    assert parse_commit(1, json.dumps({"cdc": {"path": "c"}}), 0).changes_data


def test_metadata_and_features() -> None:
    metadata = {
        "metaData": {
            "id": "i",
            "schemaString": "{}",
            "configuration": {"delta.enableChangeDataFeed": "true"},
        }
    }
    protocol = {"protocol": {"readerFeatures": ["a"], "writerFeatures": ["a", "b"]}}
    found = parse_commit(0, commit(info(), metadata, protocol), 0)
    assert found.metadata
    assert found.metadata.feed
    assert not found.metadata.in_commit_timestamps
    assert found.features == {"a", "b"}
