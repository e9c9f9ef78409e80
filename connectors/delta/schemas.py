"""The schema of a local Delta table, from its log alone: no Spark.

The newest metadata action wins. It is looked for from the last commit down to the first version
that has a checkpoint, which holds the metadata of its version. `_last_checkpoint` is only a hint
of where to look, and is not needed.

Example: commits 11 and 12 add rows, 10 has a checkpoint: the metadata is read from that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from tidegate.connectors.delta.commit import parse_commit
from tidegate.rules.errors import EngineError

_SCHEME = re.compile(r"(?i)[a-z][a-z0-9+.-]*:")
_COMMIT = re.compile(r"(\d{20})\.json")
# Classic, `n.checkpoint.parquet`; one of several parts, `n.checkpoint.0000000001.0000000002.
# parquet`; V2, `n.checkpoint.UUID.json`, whose sidecars hold no metadata.
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.(?:(\d{10})\.(\d{10})\.|[\w-]+\.)?(parquet|json)")


def logged_schema(path: str) -> str | None:
    """The schema of the table at a path as it is now, as Spark's JSON. None if there is no Delta
    table in a local folder, as on other file systems. Raises EngineError `log-damaged`."""
    folder = _local(path)
    log = folder and folder / "_delta_log"
    if log is None or not log.is_dir():
        return None
    try:
        return _newest(log)
    except (ValueError, KeyError, OSError, pa.ArrowException) as error:
        raise EngineError(
            "log-damaged",
            f"the log of the table in {folder} cannot be read: {error}",
            "mend it, or declare the table's columns",
        ) from error


def _local(path: str) -> Path | None:
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    return None if _SCHEME.match(path) else Path(path)


def _newest(log: Path) -> str | None:
    """The newest schema in a log, as JSON; None in a log that does not begin."""
    commits: dict[int, Path] = {}
    checkpoints: dict[int, list[Path]] = {}
    for file in log.iterdir():
        if match := _COMMIT.fullmatch(file.name):
            commits[int(match[1])] = file
        elif match := _CHECKPOINT.fullmatch(file.name):
            checkpoints.setdefault(int(match[1]), []).append(file)
    version = max((*commits, *checkpoints), default=-1)
    while version in commits or version in checkpoints:
        found = _of_checkpoint(checkpoints.get(version, ()))
        if found is None and version in commits:
            commit = parse_commit(version, commits[version].read_text("utf-8"), 0)
            found = None if commit.metadata is None else commit.metadata.schema
        if found is not None:
            return found
        version -= 1
    return None


def _of_checkpoint(files: Sequence[Path]) -> str | None:
    """The schema in the checkpoints of one version; None without any. A part that is missing does
    not matter, unless it is the one with the metadata."""
    return next((schema for file in sorted(files) for schema in _in(file)), None)


def _in(file: Path) -> Iterator[str]:
    if file.suffix == ".json":
        metadata = parse_commit(0, file.read_text("utf-8"), 0).metadata
        yield from () if metadata is None else (metadata.schema,)
        return
    import pyarrow.parquet as pq

    rows = pq.ParquetFile(file).read(["metaData.schemaString"])["metaData"]
    yield from (action["schemaString"] for action in rows.drop_null().to_pylist())
