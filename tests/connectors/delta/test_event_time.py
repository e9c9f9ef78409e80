"""Event time and signals from a table, on real tables (G5, G9)."""

from __future__ import annotations

import pytest

from tests.support.lake import Lake
from tidegate import Engine, rules
from tidegate.engine.app.tables import check_tables
from tidegate.engine.store import open_store
from tidegate.rules.errors import InputError

BOOK = """\
rulebook: late
tables:
  orders: {path: ./orders, start: snapshot}
  requests: {path: ./requests}
  out: {path: ./out}
events:
  placed: {on: insert, table: orders, time: at, lateness: 10 min, ahead: 1 min}
  asked: {signal: {id: bigint, why: string}, from_table: requests, where: id > 0}
rules:
  in_order:
    on: first:(placed) ; placed
    per: id
    context: chronicle
    do:
      - sql: |
          INSERT INTO out
          SELECT 'in_order', max(id), max(n), max_by(n, occurred_at) FROM event GROUP BY firing_id
  at_once:
    on: asked
    do:
      - sql: INSERT INTO out SELECT why, id, NULL, NULL FROM event
"""


def rows(lake: Lake, *values: str) -> None:
    lake.sql(f"INSERT INTO {{orders}} VALUES {', '.join(values)}")


def test_g05_rows_stand_at_their_times_and_late_ones_are_rejected(lake: Lake) -> None:
    """The snapshot's rows are never late, however old. A later row of order 1 comes first."""
    lake.create("orders", "id BIGINT, n BIGINT, at TIMESTAMP")
    lake.create("requests", "id BIGINT, why STRING, more INT")
    lake.create("out", "what STRING, id BIGINT, most BIGINT, last BIGINT")
    (lake.folder / "late.yaml").write_text(BOOK)
    now = "current_timestamp()"
    rows(lake, "(7, 2, TIMESTAMP'2026-01-02 00:00:00Z')", "(7, 1, TIMESTAMP'2026-01-01 00:00:00Z')")
    with Engine(lake.folder / "late.yaml", spark=lake.spark) as engine:
        engine.run_once()
        rows(lake, f"(1, 2, {now} - INTERVAL 11 MINUTES)", f"(2, 0, {now} - INTERVAL 9 MINUTES)")
        rows(lake, f"(1, 9, {now} + INTERVAL 5 MINUTES)", "(3, 9, NULL)")
        rows(lake, f"(1, 8, {now} - INTERVAL 1 HOUR)")
        lake.sql("INSERT INTO {requests} VALUES (5, 'table', 0), (-5, 'none', 0)")
        engine.signal("asked", {"id": 6, "why": "signal"})
        engine.signal("asked", {"id": -6, "why": "none"})
        engine.run_once()
    assert sorted(lake.rows("out"), key=str) == [
        ("in_order", 7, 2, 2),
        ("signal", 6, None, None),
        ("table", 5, None, None),
    ]
    with open_store(f"sqlite:///{lake.folder}/late.db", create=False) as store:
        rejected = store.of("late").rejections.newest(10, whole=True)
        status = store.of("late").status.shown()
    assert sorted(row["reason"] for row in rejected) == [
        "`time: at` is more than 1 min after its commit",
        "`time: at` is null",
        "late: `time: at` is more than 10 min before its commit",
        "late: `time: at` is more than 10 min before its commit",
    ]
    assert status["rejected_rows"] == 4


def test_columns_of_other_types_are_named_before_anything_runs(lake: Lake) -> None:
    lake.create("orders", "id BIGINT, n BIGINT, at STRING")
    lake.create("requests", "id INT, more INT")
    lake.create("out", "what STRING, id BIGINT, most BIGINT, last BIGINT")
    file = lake.folder / "late.yaml"
    file.write_text(BOOK)
    with pytest.raises(InputError) as refused:
        check_tables(rules.load(file), spark_conf={})
    assert [(p.place.line, p.message) for p in refused.value.problems] == [
        (7, "column `at` is string, no timestamp"),
        (8, "field id is bigint, the column is int"),
        (8, "the table has no column `why`"),
    ]
