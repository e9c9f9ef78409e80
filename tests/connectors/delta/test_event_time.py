"""Event time and signals from a table, on real tables (G5, G9)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

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


def test_g05_rows_stand_at_their_times_and_late_ones_are_rejected(lake: Lake) -> None:
    """The snapshot's rows are never late, however old. A later row of order 1 comes first."""
    lake.create("orders", "id BIGINT, n BIGINT, at TIMESTAMP")
    lake.create("requests", "id BIGINT, why STRING, more INT")
    lake.create("out", "what STRING, id BIGINT, most BIGINT, last BIGINT")
    (lake.folder / "late.yaml").write_text(BOOK)
    lake.append("orders", *((7, n, datetime(2026, 1, n, tzinfo=UTC)) for n in (2, 1)))
    with Engine(lake.folder / "late.yaml", spark=lake.spark) as engine:
        engine.run_once()
        now = datetime.now(UTC)
        late, early, soon, old = (now + timedelta(minutes=n) for n in (-11, -9, 5, -60))
        lake.append("orders", (1, 2, late), (2, 0, early))
        lake.append("orders", (1, 9, soon), (3, 9, None))
        lake.append("orders", (1, 8, old))
        lake.append("requests", (5, "table", 0), (-5, "none", 0))
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
