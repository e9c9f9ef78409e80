"""Rows of firings that Spark reads from files (G26)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.support import make
from tidegate.connectors.delta.catalog import collected, show
from tidegate.connectors.delta.faults import SPARK_ERRORS
from tidegate.engine.store.shelf import FileShelf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("how", ["gone", "torn", "flipped"])
def test_rows_that_are_not_there_are_no_empty_event(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    """Whatever Spark is told of the files of others: an action without its rows would do nothing,
    and be done."""
    session = spark.newSession()
    for passed_over in ("Missing", "Corrupt"):
        session.conf.set(f"spark.sql.files.ignore{passed_over}Files", "true")
    plain = make.firings("a", 3)
    filed = plain.on(FileShelf("", str(tmp_path), "one"), always=True)
    some = [filed.some(pa.array(chosen)) for chosen in ([True, False, True], [False] * 3)]
    counts = [collected(show(session, one.relation)).num_rows for one in (filed, *some)]
    assert counts == [6, 4, 0]
    frame = show(session, filed.relation)
    (file,) = tmp_path.glob("*.parquet")
    if how == "gone":
        file.unlink()
    elif how == "torn":
        file.write_bytes(file.read_bytes()[:-40])
    else:
        data = file.read_bytes()
        place = data.index(b"withdrawal")  # zstd leaves it as it is
        file.write_bytes(data[:place] + b"x" + data[place + 1 :])
    with pytest.raises(SPARK_ERRORS):
        collected(frame)
    with pytest.raises(SPARK_ERRORS):
        collected(show(session, filed.relation))
