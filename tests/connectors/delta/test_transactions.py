"""Commits as events: a gate on the quality of each load, and what a commit tells of itself."""

from __future__ import annotations

from collections import Counter

from tests.support.lake import Lake
from tidegate import Engine

BOOK = """\
rulebook: gate
tables:
  readings: {path: ./readings, start: earliest}
  gate: {path: ./gate}
  seen: {path: ./seen}
events:
  load: {on: transaction, table: readings, where: operation = 'WRITE'}
  large:
    on: transaction
    table: readings
    where: cast(operation_metrics['numOutputRows'] AS INT) > 2
  bad: {on: insert, table: readings, where: value IS NULL}
  good: {on: insert, table: readings, where: value IS NOT NULL}
  loud: {signal: {by: string, level: bigint}, where: level > 3 and by <> 'test'}
rules:
  quality:
    on: A*(begin_of load, bad or good, end_of load)
    if: count_if(event_type = 'bad') * 2 > count(event_type)
    do:
      - sql: INSERT INTO gate SELECT min(id), count(*) FROM event GROUP BY firing_id
  told:
    on: large
    do:
      - sql: |
          INSERT INTO seen
          SELECT operation, version, user_metadata, operation_parameters['mode'] FROM event
  alarm:
    on: loud
    do:
      - sql: INSERT INTO seen SELECT 'loud', level, by, NULL FROM event
"""


def test_s10_a_commit_is_judged_by_its_rows(lake: Lake) -> None:
    """Each load is a window of its own rows: the second has two bad ones of three."""
    lake.create("readings", "id BIGINT, value DOUBLE")
    lake.create("gate", "first BIGINT, n BIGINT")
    lake.create("seen", "what STRING, version BIGINT, who STRING, mode STRING")
    book = lake.folder / "gate.yaml"
    book.write_text(BOOK)
    lake.append("readings", (1, 1.0), (2, None))
    lake.append("readings", (3, None), (4, None), (5, 2.0))
    lake.sql("DELETE FROM {readings} WHERE id = 1")
    frame = lake.spark.sql("SELECT * FROM VALUES (6L, 1D), (7L, 1D), (8L, 1D)")
    written = frame.toDF("id", "value").write.format("delta").mode("append")
    written.option("userMetadata", "nightly").save(lake.path("readings"))
    with Engine(book, spark=lake.spark) as engine:
        engine.signal("loud", by="ops", level=4)
        engine.signal("loud", by="ops", level=3)
        engine.signal("loud", by="test", level=9)
        engine.run_once()
    assert lake.rows("gate") == Counter([(3, 3)])
    assert lake.rows("seen") == Counter(
        [("WRITE", 2, None, "Append"), ("WRITE", 4, "nightly", "Append"), ("loud", 4, "ops", None)]
    )
