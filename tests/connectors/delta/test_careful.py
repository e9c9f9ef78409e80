"""A careful read gives what a plain one gives, on real tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from tests.quarantine.poison import Engine
from tests.support.lake import Lake
from tests.support.rulebooks import event, rulebook, table
from tidegate.connectors.delta.feed import DeltaFeed
from tidegate.engine.core.ports import KIND, VERSION, ReadRequest
from tidegate.engine.core.suspect import DEATH, Strikes
from tidegate.engine.core.values import TableRange
from tidegate.engine.quarantine.feed import WatchedFeed
from tidegate.rules.model import Start

ODD = (
    "id INT, c CHAR(5), ts TIMESTAMP, tn TIMESTAMP_NTZ, f DOUBLE, d DECIMAL(38,10), "
    "m MAP<STRING,INT>, s STRUCT<a: ARRAY<DOUBLE>, c: CHAR(3)>, v VARIANT"
)
ROWS = (
    "SELECT 1, 'ab', timestamp'2024-03-31 02:30:00 Europe/Berlin', "
    "timestamp_ntz'2024-03-31 02:30:00', -0.0D, 1.5, map('a', 1), "
    "named_struct('a', array(double('NaN'), -0.0D), 'c', 'a'), "
    "to_variant_object(named_struct('a', 1)) UNION ALL "
    "SELECT 2, 'ab   ', timestamp'1582-10-10 00:00:00', timestamp_ntz'0001-01-01 00:00:00', "
    "double('NaN'), 12345678901234567890123456.1234567891, map(), null, "
    "to_variant_object(named_struct('a', 2)) UNION ALL "
    "SELECT 3, null, null, null, null, null, null, null, null"
)
TEXTS = (
    "(c = 'ab') = (id = 1)",
    "string(ts) like '%00' or hour(tn) = 2",
    "string(f) like '-0%' or isnan(f)",
    "d > 5 or size(m) = 0",
    "(s.c = 'a') = (hash(s.a) = 0) or s.c = 'a'",
    "variant_get(v, '$.a', 'int') = 1",
)


@pytest.fixture(scope="module")
def odd(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Table `odd` of three commits after its creation."""
    lake = Lake(spark, tmp_path_factory.mktemp("odd"))
    lake.create("odd", ODD)
    lake.sql(f"INSERT INTO {{odd}} {ROWS}")
    lake.sql("INSERT INTO {odd} SELECT * FROM {odd}")
    lake.sql("DELETE FROM {odd} WHERE id = 3")
    return lake


@pytest.mark.parametrize("snapshot", [False, pytest.param(True, marks=pytest.mark.long)])
def test_g13_suspects_that_harm_nobody_say_of_each_row_what_they_always_say(
    odd: Lake, snapshot: bool
) -> None:
    book = rulebook(
        tables=[table("odd", odd.path("odd"), start=Start("version", 1))],
        events=[event(f"e{n}", "odd", where=text) for n, text in enumerate(TEXTS)],
    )
    feed = DeltaFeed(odd.spark)
    cursor = feed.head(book.tables["odd"], None).cursor
    span = TableRange("odd", 1, 3, {v: v for v in (1, 2, 3)}, replace(cursor, version=3))
    if snapshot:
        span = replace(span, first=3, instants={3: 3}, snapshot=True)
    changes = frozenset({"insert", "delete"})
    request = ReadRequest(("id",), changes, {f"w{n}": text for n, text in enumerate(TEXTS)})
    engine = Engine()
    watched = WatchedFeed(feed, engine.quarantine, book)
    for text in TEXTS:
        suspect = watched._where(text, "odd", "1-3")
        engine.quarantine._known[suspect.key] = Strikes(suspect).struck(suspect, DEATH, "with all")
    found = [
        sorted(
            zip(*(rows[n].to_pylist() for n in (KIND, VERSION, *request.where)), strict=True),
            key=str,
        )
        for rows in (
            feed.read(book.tables["odd"], span, request),
            watched.read(book.tables["odd"], span, request),
        )
    ]
    assert found[0] == found[1]
    assert all(any(row[2 + n] for row in found[0]) for n in range(len(TEXTS)))
    assert not any(engine.quarantine.of(watched._where(t, "odd", "")).suspected for t in TEXTS)
