"""Reads plain appends from their files, without a Spark job.

A plain append is a commit whose only changes are `add` actions: its rows in the change data feed
are the rows of those files, all of them inserts. Everything that is not known to read the same as
Spark reads it is left to Spark: other file systems, other actions, other table features, nested
types, `char(n)`, calendars of Spark 2, a file with a column of another type.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import orjson
import pyarrow as pa

from tidegate.engine.core.evaluator.filters import compile_filter, held_by_any
from tidegate.engine.core.evaluator.nodes import UndecidedError
from tidegate.engine.core.ports import FEED_KINDS, KIND, SAME_1, SAME_2, VERSION, ReadRequest
from tidegate.engine.core.types.spark import arrow_schema, plain_columns

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

FILES_MAX = 1_000  # of one commit; a larger one is read by Spark
READABLE = frozenset(
    {
        *("allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints"),
        *("checkpointProtection", "clustering", "deletionVectors", "domainMetadata"),
        *("generatedColumns", "identityColumns", "inCommitTimestamp", "invariants"),
        *("rowTracking", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"),
    }
)
"""The table features under which an added file without a deletion vector holds the rows as they
are."""
_MAPPING = "delta.columnMapping."
_FLAT = frozenset(
    [
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.string(), pa.binary(), pa.date32()),
        *(pa.timestamp("us"), pa.timestamp("us", "UTC")),
    ]
)
_IN_PATHS = frozenset([pa.string(), pa.date32(), pa.int8(), pa.int16(), pa.int32(), pa.int64()])
_SPARK_VERSION, _LEGACY = b"org.apache.spark.version", b"org.apache.spark.legacy"
_ADDED_COLUMNS = {KIND: pa.int8(), VERSION: pa.int64()}
_SAME = {SAME_1: pa.int64(), SAME_2: pa.int32()}


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file of a plain append. `path`: below the table's folder. `partition`: its values of the
    columns that the table is partitioned by, as texts."""

    path: str
    partition: Mapping[str, str | None]


def added_files(text: str) -> tuple[AddedFile, ...] | None:
    """The files of a commit from the text of its log file; None if it is not a plain append, or has
    more than FILES_MAX files.

    Example: `{"add": {"path": "a%20b.parquet", "dataChange": true}}` -> the file `a b.parquet`.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > FILES_MAX:
        return None
    found = []
    for line in lines:
        try:
            action = orjson.loads(line)
        except ValueError:
            return None
        if not isinstance(action, dict) or len(action) != 1:
            return None
        ((kind, fields),) = action.items()
        if kind in ("commitInfo", "txn"):
            continue
        added = _added(fields) if kind == "add" and isinstance(fields, dict) else None
        if added is None:
            return None
        found.append(added)
    return tuple(found)


def _added(fields: Mapping[str, Any]) -> AddedFile | None:
    path, partition = fields.get("path"), fields.get("partitionValues") or {}
    if not isinstance(path, str) or not isinstance(partition, dict):
        return None
    if not all(v is None or isinstance(v, str) for v in partition.values()):
        return None
    if fields.get("dataChange") is not True or fields.get("deletionVector") is not None:
        return None
    if ":" in path or path.startswith("/"):  # another table's file, of a shallow clone
        return None
    return AddedFile(unquote(path), partition)


def readable(features: Collection[str], configuration: Mapping[str, str]) -> bool:
    """Whether the files of a table with these features and properties may be read as they are."""
    return READABLE.issuperset(features) and configuration.get(f"{_MAPPING}mode", "none") == "none"


def read_appends(
    folder: Path,
    files: Sequence[tuple[int, AddedFile]],
    request: ReadRequest,
    schema_json: str,
    *,
    spool: bool,
) -> pa.Table | None:
    """The rows of plain appends, as `engine.core.ports.Feed.read` gives them; None if Spark must
    read them.

    `files`: each with the version that added it. `schema_json`: the table's schema in these
    versions. `spool`: the rows go to a file, batch by batch, which is mapped.
    """
    types = _types(request, schema_json)
    if types is None:
        return None
    filters = [compile_filter(text, types) for text in request.only]
    only = [each for each in filters if each is not None]
    if len(only) < len(filters):
        return None
    schema = pa.schema({**_ADDED_COLUMNS, **types, **(_SAME if request.same else {})})
    wanted = files if "insert" in request.changes else ()
    try:
        tables = (
            held_by_any(only, table)
            for table in _tables(folder, wanted, types, schema, in_batches=spool)
        )
        if spool and (stored := mapped(b for table in tables for b in table.to_batches())):
            return stored.read_all()
        return pa.concat_tables([schema.empty_table(), *tables])
    except (_LeftToSpark, UndecidedError, OSError, ValueError, pa.ArrowException):
        return None  # Spark reads it, or says what is wrong with it


class _LeftToSpark(Exception):
    """A file that Spark may read otherwise."""


def _types(request: ReadRequest, schema_json: str) -> dict[str, pa.DataType] | None:
    """The type of each column that is asked for; None where Arrow may read one otherwise."""
    if request.where or _MAPPING in schema_json:
        return None
    schema, plain = arrow_schema(schema_json), plain_columns(schema_json)
    found = {}
    for name in request.columns:
        at = schema.get_field_index(name)
        if at < 0 or name not in plain or "." in name:
            return None
        kind = schema.types[at]
        if kind not in _FLAT and not pa.types.is_decimal(kind):
            return None
        found[name] = kind
    return found


def _tables(
    folder: Path,
    files: Sequence[tuple[int, AddedFile]],
    types: Mapping[str, pa.DataType],
    schema: pa.Schema,
    *,
    in_batches: bool,
) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    for version, added in files:
        stored = [name for name in types if name not in added.partition]
        with pq.ParquetFile(
            folder / added.path, coerce_int96_timestamp_unit="us", page_checksum_verification=True
        ) as file:
            for name in stored:
                _check(file, name, types[name])
            for rows in _read(file, stored, in_batches=in_batches):
                yield _changes(rows, version, added, types, schema)


def _read(file: ParquetFile, columns: list[str], *, in_batches: bool) -> Iterator[pa.Table]:
    if not columns:
        none = pa.table({"rows": pa.nulls(file.metadata.num_rows)})
        yield none.select([])
    elif in_batches:
        yield from (pa.Table.from_batches([one]) for one in file.iter_batches(columns=columns))
    else:
        yield file.read(columns=columns)


def _changes(
    rows: pa.Table,
    version: int,
    added: AddedFile,
    types: Mapping[str, pa.DataType],
    schema: pa.Schema,
) -> pa.Table:
    n = rows.num_rows
    columns = {name: rows.column(name).cast(types[name]) for name in rows.column_names}
    for name in types.keys() & added.partition.keys():
        columns[name] = pa.repeat(_partition_value(added.partition[name], types[name]), n)
    columns[KIND] = pa.array(np.full(n, FEED_KINDS["insert"], np.int8))
    columns[VERSION] = pa.array(np.full(n, version, np.int64))
    for name in _SAME.keys() & set(schema.names):  # they compare the images of an update
        columns[name] = pa.array(np.zeros(n, schema.field(name).type.to_pandas_dtype()))
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _check(file: ParquetFile, name: str, kind: pa.DataType) -> None:
    """Raises _LeftToSpark unless a file's column has exactly the type that the table says, in a
    calendar that Arrow knows."""
    stored = file.schema_arrow
    at = stored.get_field_index(name)  # -1 also if there are two
    if at < 0:
        raise _LeftToSpark
    metadata = stored.metadata or {}
    if pa.types.is_temporal(kind) and (
        any(key.startswith(_LEGACY) for key in metadata)
        or metadata.get(_SPARK_VERSION, b"3").partition(b".")[0] < b"3"
    ):
        raise _LeftToSpark
    found = stored.types[at]
    if kind == pa.timestamp("us", "UTC") and found == pa.timestamp("us"):
        column = next(c for c in map(file.schema.column, range(len(file.schema))) if c.path == name)
        if column.physical_type == "INT96":
            return
    if found != kind:
        raise _LeftToSpark


def _partition_value(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """A partition's value. An empty text is null, as in Delta's protocol."""
    if kind not in _IN_PATHS:
        raise _LeftToSpark
    return pa.scalar(text or None, pa.string()).cast(kind)


def mapped(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchFileReader | None:
    """The batches in a file without a name, each as soon as it comes; None if there is none."""
    with tempfile.NamedTemporaryFile(prefix="tidegate-", suffix=".arrow") as file:
        writer = None
        for batch in batches:
            writer = writer or pa.ipc.new_file(file, batch.schema)
            writer.write_batch(batch)
        if writer is None:
            return None
        writer.close()
        file.flush()
        # The file has no name from here on: the mapping keeps its content.
        return pa.ipc.open_file(pa.memory_map(file.name))
