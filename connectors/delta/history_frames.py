"""A history as a DataFrame: counted, collected up to a bound, and given to a function part by part.

Its columns `event` and `time` are those of occurrences (`docs/python.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from tidegate.connectors.delta.catalog import spark_schema

_PART = "_tidegate_part"
COUNTED = ("event", "rows", "first", "last", "lacking")
"""The columns of `counted`."""


def counted(frame: DataFrame) -> pa.Table:
    """By event type the number of rows, the first and the last `time`, and how many have none."""
    lacking = F.count_if(F.col("event").isNull() | F.col("time").isNull())
    rows = F.count(F.lit(1))
    columns = rows, F.min("time"), F.max("time"), lacking
    names = zip(columns, COUNTED[1:], strict=True)
    return frame.groupBy("event").agg(*(c.alias(name) for c, name in names)).toArrow()


def rows_of(frame: DataFrame, events: Collection[str]) -> pa.Table:
    """The rows of some event types, all of them, here."""
    return frame.where(F.col("event").isin(*sorted(events))).toArrow()


def by_part(
    frame: DataFrame,
    keys: Sequence[str],
    places: Callable[[pa.Array, Mapping[str, pa.Array]], pa.Array],
    step: Callable[[int, pa.Table], pa.Table],
    parts: int,
    schema: pa.Schema,
) -> DataFrame:
    """What `step` gives for each of so many parts of the rows, one call a part. `places` says for
    each row, from its event type and the columns `keys`, which parts it is of, if any."""

    def placed(event: pa.Array, *columns: pa.Array) -> pa.Array:
        return places(event, dict(zip(keys, columns, strict=True)))

    def stepped(rows: pa.Table) -> pa.Table:
        return step(rows.column(_PART)[0].as_py(), rows.drop_columns(_PART))

    made: Any = arrow_udf  # whose types are of functions with named columns
    place: Column = made(placed, "array<int>")("event", *keys)
    cut = frame.select("*", F.explode(place).alias(_PART)).repartitionById(parts, _PART)
    return cut.groupBy(_PART).applyInArrow(stepped, spark_schema(schema))
