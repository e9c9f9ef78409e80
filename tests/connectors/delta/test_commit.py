"""Commits of a Delta log, read from their JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate.connectors.delta.commit import DamagedCommit, parse_commit


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
    bare = {"add": {"path": "f", "size": 12_345, "dataChange": True, "stats": '{"size":9}'}}
    assert parse_commit(1, commit(info(), bare, ADD), 0).rows == 123 + 7


def test_a_commit_that_changes_no_data_has_no_rows() -> None:
    moved = {"add": {**ADD["add"], "dataChange": False}}
    found = parse_commit(1, commit(info(operation="OPTIMIZE"), moved), 0)
    assert (found.changes_data, found.rows) == (False, 0)
    assert parse_commit(1, commit(info(), {"cdc": {"path": "c"}}), 0).changes_data


def test_g10_what_a_commit_shows_of_itself() -> None:
    moved = {"add": {**ADD["add"], "dataChange": False}}
    added = parse_commit(3, commit(info(operation="ADD COLUMNS", readVersion=2)), 0).shown
    assert added == {
        "operation": "ADD COLUMNS",
        "operation_parameters": None,
        "operation_metrics": None,
        "user_metadata": None,
        "version": 3,
        "read_version": 2,
        "changes_rows": False,
    }
    told = [parse_commit(1, commit(info(), *more), 0).shown for more in ((ADD,), (moved,), ())]
    assert [one["changes_rows"] for one in told] == [True, False, False]


def test_g18_a_seal_is_one_of_any_store_and_hides_nothing_else() -> None:
    def sealed(*more: dict[str, Any], sealed: object = True, **named: Any) -> bool:
        entry = {"app_id": "tidegate/theirs/bank/r", "entry": 7}
        note = {"store": "theirs", "sealed": sealed, **entry, **named}
        said = json.dumps({"tidegate": note})
        return parse_commit(1, commit(info(userMetadata=said), *more), 0).seal

    marker = {"txn": {"appId": "tidegate/theirs/bank/r", "version": 7}}
    moved = {"add": {**ADD["add"], "dataChange": False}}
    assert sealed(marker)
    assert not sealed(marker, sealed="true")
    assert not parse_commit(1, commit(info(), marker), 0).seal
    for action in (
        ADD,
        moved,
        {"remove": {"path": "f"}},
        {"metaData": {"id": "t", "schemaString": SCHEMA}},
    ):
        assert not sealed(marker, action)
        assert not sealed({**marker, **action})  # which Delta takes for the other action
    assert not sealed()  # no marker
    assert not sealed(marker, {"txn": {"appId": "stream", "version": 1}})
    for app_id, number in (("tidegate/theirs/bank/s", 7), ("tidegate/theirs/bank/r", 8)):
        assert not sealed({"txn": {"appId": app_id, "version": number}})
    for app_id in ("stream", "tidegate/theirs", "tidegates/theirs/bank/r"):  # of other programs
        assert not sealed({"txn": {"appId": app_id, "version": 7}}, app_id=app_id)
    for forged in ({"app_id": None}, {"app_id": ["x"]}, {"entry": "7"}):
        assert not sealed(marker, **forged)


def test_g16_the_depth_of_our_own_commits_and_of_nobody_elses() -> None:
    def depth(user_metadata: Any) -> int:
        told = commit(info(userMetadata=user_metadata))
        return parse_commit(1, told, 0, own_stores={"mine"}).depth

    def noted(depth: Any, store: Any = "mine") -> str:
        return json.dumps({"tidegate": {"store": store, "depth": depth}})

    assert depth(noted(3)) == 3
    assert depth(noted(3, "theirs")) == 0
    assert depth(noted(3, ["mine"])) == 0
    shared = [
        {"store": "mine", "depth": 2},
        {"store": "mine", "depth": 5},
        {"store": "theirs", "depth": 9},
    ]
    assert depth(json.dumps({"tidegate": shared})) == 5
    assert depth(json.dumps({"tidegate": [*shared, 7]})) == 0
    for forged in (2147483648, 1e300, -1, True, "3", [3], None, 10**30, 3.0):
        assert depth(noted(forged)) == 0
    for foreign in ("free text", "{}", '{"tidegate":1}', "[1]", None, 7, "[" * 100_000, "\ud800"):
        assert depth(foreign) == 0


def test_g22_whose_action_wrote_one_of_our_own_commits() -> None:
    def of(noted: Any) -> tuple[str, str] | None:
        told = commit(info(userMetadata=json.dumps({"tidegate": noted})))
        return parse_commit(1, told, 0, own_stores={"mine"}).writer

    def writer(**note: Any) -> tuple[str, str] | None:
        return of(note)

    assert writer(store="mine", rulebook="bank", rule="r") == ("bank", "r")
    assert writer(store="theirs", rulebook="bank", rule="r") is None
    assert writer(store="mine", rulebook="bank") is None
    assert writer(store="mine", rulebook=["bank"], rule="r") is None
    one, other = ({"store": "mine", "rulebook": "bank", "rule": rule} for rule in "rs")
    assert of([one, one]) == ("bank", "r")
    assert of([one, other]) is None
    assert of([one, {**one, "store": "theirs"}]) is None
    assert of([]) is None


SCHEMA = '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'
DAMAGED = {
    "commitInfo is no JSON object": {"commitInfo": [1]},
    "inCommitTimestamp": {"commitInfo": {"inCommitTimestamp": "5"}},
    "no time in": {"commitInfo": {"inCommitTimestamp": 1 << 62}},
    "metaData is no JSON object": {"metaData": 7},
    "no id": {"metaData": {"schemaString": SCHEMA}},
    "has no id": {"metaData": {"id": {"a": 1}, "schemaString": SCHEMA}},
    "no schema": {"metaData": {"id": "i", "schemaString": "[]"}},
    "is no schema": {"metaData": {"id": "i", "schemaString": '{"fields":[{"name":1}]}'}},
    "schemaString of": {"metaData": {"id": "i"}},
    "configuration": {"metaData": {"id": "i", "schemaString": SCHEMA, "configuration": [1]}},
    "protocol is no": {"protocol": "x"},
    "readerFeatures": {"protocol": {"readerFeatures": [["a"]]}},
    "writerFeatures": {"protocol": {"writerFeatures": {"a": 1}}},
}


@pytest.mark.parametrize("reason", DAMAGED)
def test_what_is_needed_and_has_another_shape_is_damage(reason: str) -> None:
    with pytest.raises(DamagedCommit, match=reason) as caught:
        parse_commit(4, commit(DAMAGED[reason]), 9)
    assert caught.value.version == 4
    with pytest.raises(DamagedCommit):
        parse_commit(4, '{"commitInfo":' + "[" * 100_000, 9)


def test_what_is_only_a_note_is_passed_over() -> None:
    odd = {"operation": ["WRITE"], "operationMetrics": [1], "userMetadata": {"a": 1}}
    found = parse_commit(1, commit({"commitInfo": None}, info(**odd), ADD), 9)
    assert (found.operation, found.rows, found.instant) == ("", 7, 9_000)
    counts = {"numOutputRows": "²", "numUpdatedRows": "9" * 5_000, "numDeletedRows": "3"}
    assert parse_commit(1, commit(info(operationMetrics=counts), ADD), 9).rows == 3
    twice = '{"commitInfo":{"operation":"A","operation":"B"}}'
    assert parse_commit(1, twice, 9).operation == "B"
    half = '{"commitInfo":{"operation":"W","userMetadata":"\\ud800"}}'
    assert parse_commit(1, half, 9).operation == "W"


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
            "schemaString": SCHEMA,
            "configuration": {"delta.enableChangeDataFeed": True},
        }
    }
    protocol = {"protocol": {"readerFeatures": ["a"], "writerFeatures": ["a", "b"]}}
    found = parse_commit(0, commit(info(), metadata, protocol), 0)
    assert found.metadata
    assert found.metadata.feed
    assert not found.metadata.in_commit_timestamps
    assert found.features == {"a", "b"}
