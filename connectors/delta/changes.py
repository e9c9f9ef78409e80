"""Reads the changes of a table, for all rules in one Spark job, into an Arrow table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.serializers import Serializer
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.serializers import ArrowCollectSerializer
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType
from pyspark.util import _load_from_socket

from tidegate.connectors.delta.appends import mapped
from tidegate.connectors.delta.catalog import collected, planned, quoted, spark_schema
from tidegate.connectors.delta.plans import tried
from tidegate.engine.core.ports import FEED_KINDS, KIND, SAME_1, SAME_2, VERSION, ReadRequest
from tidegate.engine.core.values import TableRange

_ROW = "_tidegate_row"
_CHANGE = "_change_type"  # the feed's own column
_MARKS = (_CHANGE, VERSION, "_commit_timestamp")


def changes(
    session: SparkSession, location: str, span: TableRange, request: ReadRequest
) -> DataFrame:
    """The changed rows of `span`, as a frame: no job has run yet."""
    rows = _snapshot(session, location, span) if span.snapshot else _feed(session, location, span)
    columns = [name for name in rows.columns if name not in _MARKS]
    rows = rows.where(F.col(_CHANGE).isin(*sorted(request.changes)))
    if span.skipped:
        rows = rows.where(~F.col(VERSION).isin(*sorted(span.skipped)))
    if request.only:
        wanted = (F.coalesce(tried(session, text), F.lit(True)) for text in request.only)
        rows = rows.where(reduce(or_, wanted))
    return rows.select(
        _kind(request).alias(KIND),
        VERSION,
        *(_column(name) for name in request.columns),
        *(tried(session, text).alias(name) for name, text in request.where.items()),
        *(_hashes(rows.schema, columns) if request.same else ()),
    )


def sortable(kind: DataType) -> bool:
    """Whether Spark orders values of a type, and cuts rows by them: not if a map or a variant is
    anywhere in it."""
    if isinstance(kind, StructType):
        return all(sortable(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return sortable(kind.elementType)
    return not isinstance(kind, MapType | VariantType)


def decisions(session: SparkSession, rows: pa.Table, where: Mapping[str, str]) -> pa.Table:
    """Evaluates predicates over rows in memory. Gives a boolean column for each, one value a row,
    in the order of the rows."""
    number = pa.array(range(rows.num_rows), pa.int64())
    numbered = rows.append_column(_ROW, number)
    frame = session.createDataFrame(numbered, schema=spark_schema(numbered.schema))
    columns = [tried(session, text).alias(name) for name, text in where.items()]
    return collected(frame.select(_ROW, *columns)).sort_by(_ROW).drop_columns(_ROW)


def to_arrow(frame: DataFrame, spool: bool) -> pa.Table:
    """Run the job. With `spool`, each batch is written to a file when it arrives, and the table is
    mapped from that file: it need not fit in memory."""
    return _spooled(planned(frame)) if spool else collected(frame)


def _feed(session: SparkSession, location: str, span: TableRange) -> DataFrame:
    reader = session.read.format("delta").option("readChangeFeed", "true")
    reader = reader.option("startingVersion", span.first).option("endingVersion", span.last)
    return reader.load(location)


def _snapshot(session: SparkSession, location: str, span: TableRange) -> DataFrame:
    rows = session.read.format("delta").option("versionAsOf", span.last).load(location)
    return rows.withColumns({_CHANGE: F.lit("insert"), VERSION: F.lit(span.last).cast("long")})


def _kind(request: ReadRequest) -> Column:
    """The change type as a number, which is cheaper to carry than its name."""
    first, *others = sorted(request.changes)
    kind = F.lit(FEED_KINDS[first])
    for name in others:
        kind = F.when(F.col(_CHANGE) == name, FEED_KINDS[name]).otherwise(kind)
    return kind.cast("byte")


def _column(name: str) -> Column:
    return F.col(quoted(name))


def _hashes(schema: StructType, columns: list[str]) -> tuple[Column, Column]:
    """Two hashes of different families over all columns, to tell whether two rows are the same.

    Spark's hashes skip nulls: each column is hashed with its `IS NULL` before it. A nested value is
    hashed as JSON, which names the fields that are not null.
    """
    parts: list[Column] = []
    for name in columns:
        nested = isinstance(schema[name].dataType, ArrayType | MapType | StructType)
        parts += [
            _column(name).isNull(),
            F.to_json(F.struct(_column(name))) if nested else _column(name),
        ]
    return F.xxhash64(*parts).alias(SAME_1), F.hash(*parts).alias(SAME_2)


def _spooled(frame: DataFrame) -> pa.Table:
    order: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for arrived in _arriving(frame):
            if isinstance(arrived, list):
                order.extend(arrived)
            else:
                yield arrived

    stored = mapped(batches())
    if stored is None:
        return frame.limit(0).toArrow()
    return pa.Table.from_batches([stored.get_batch(at) for at in order], stored.schema)


def _arriving(frame: DataFrame) -> Iterator[Any]:
    """The record batches, in the order in which partitions end; last, a list of their numbers in
    the order of the rows."""
    port, secret, server = frame._jdf.collectAsArrowToPython()
    serializer: Serializer = ArrowCollectSerializer()  # type: ignore[no-untyped-call]
    try:
        with _load_from_socket((port, secret), serializer) as stream:
            yield from stream
    finally:
        with unwrap_spark_exception():
            server.getResult()
