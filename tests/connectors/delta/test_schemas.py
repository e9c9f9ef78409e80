"""Schemas of real Delta tables, from their logs alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.lake import Lake
from tidegate.connectors.delta.schemas import logged_schema
from tidegate.engine.core.types.spark import arrow_schema
from tidegate.rules.errors import EngineError

ID, TWO = pa.schema([("id", pa.int64())]), pa.schema([("id", pa.int64()), ("n", pa.int32())])


def known(path: str | Path) -> pa.Schema | None:
    found = logged_schema(str(path))
    return None if found is None else arrow_schema(found)


def log(lake: Lake) -> Path:
    return lake.folder / "t" / "_delta_log"


def without_commits(lake: Lake, until: int) -> None:
    """As Delta cleans a log."""
    for version in range(until + 1):
        lake.log("t", version).unlink()


def test_a_schema_is_that_of_the_last_metadata(lake: Lake) -> None:
    types = "id BIGINT, at TIMESTAMP, cost DECIMAL(12,2), s STRUCT<a: INT, b: ARRAY<STRING>>"
    lake.create("t", types)
    lake.sql("INSERT INTO {t} (id) VALUES (1)")
    wanted = [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("cost", pa.decimal128(12, 2)),
        ("s", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])),
    ]
    assert known(lake.path("t")) == pa.schema(wanted)
    lake.sql("ALTER TABLE {t} ADD COLUMN (n INT)")
    assert known(lake.path("t")) == pa.schema([*wanted, ("n", pa.int32())])
    assert known(Path(lake.path("t")).as_uri()) is not None


@pytest.mark.parametrize("policy", ["classic", pytest.param("v2", marks=pytest.mark.long)])
def test_a_schema_stands_in_a_checkpoint(lake: Lake, policy: str) -> None:
    lake.create("t", "id BIGINT", checkpointInterval="2", checkpointPolicy=policy)
    for n in range(3):
        lake.sql(f"INSERT INTO {{t}} VALUES ({n})")
    assert any(log(lake).glob(f"{2:020d}.checkpoint.*"))
    without_commits(lake, until=1)
    assert known(lake.path("t")) == ID
    lake.sql("ALTER TABLE {t} ADD COLUMN (n INT)")
    assert any(log(lake).glob(f"{4:020d}.checkpoint.*"))
    for at in (2, 3, 4):
        lake.log("t", at).unlink()
    assert known(lake.path("t")) == TWO
    (log(lake) / "_last_checkpoint").unlink()
    assert known(lake.path("t")) == TWO


@pytest.mark.long
def test_a_schema_stands_in_one_of_a_checkpoints_parts(lake: Lake) -> None:
    lake.create("t", "id BIGINT", checkpointInterval="4", checkpointPolicy="classic")
    lake.spark.conf.set("spark.databricks.delta.checkpoint.partSize", "2")
    try:
        for n in range(4):
            lake.sql(f"INSERT INTO {{t}} VALUES ({n})")
    finally:
        lake.spark.conf.unset("spark.databricks.delta.checkpoint.partSize")
    assert len([*log(lake).glob(f"{4:020d}.checkpoint.*")]) > 1
    without_commits(lake, until=4)
    assert known(lake.path("t")) == ID


def test_where_there_is_no_local_table_there_is_no_schema(tmp_path: Path) -> None:
    assert known(tmp_path) is None
    assert known("s3a://bucket/t") is None
    (tmp_path / "_delta_log").mkdir()
    assert known(tmp_path) is None


def test_a_damaged_log_is_told(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    first = tmp_path / "_delta_log" / f"{0:020d}.json"
    first.write_text(json.dumps({"metaData": {"id": "a"}}))
    with pytest.raises(EngineError, match="metaData is no schema") as raised:
        known(tmp_path)
    assert raised.value.code == "log-damaged"
    first.unlink()
    (tmp_path / "_delta_log" / f"{0:020d}.checkpoint.parquet").write_bytes(b"PAR1")
    with pytest.raises(EngineError, match="cannot be read"):
        known(tmp_path)
    shutil.rmtree(tmp_path / "_delta_log")
    assert known(tmp_path) is None
