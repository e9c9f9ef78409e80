"""The feed on real Delta tables: which changes become occurrences, in which bucket."""

from __future__ import annotations

from collections import Counter

import pytest

from connectors.delta.feed import DeltaFeed
from tests.capture.build import Loop, event, needs, rows, rulebook, table
from tests.delta.conftest import Lake

KINDS = ("insert", "delete", "update", "change")


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_what_each_statement_raises(lake: Lake, vectors: str) -> None:
    """Insert, update, delete, merge with a no-op, optimize and overwrite, in a partitioned table
    with and without deletion vectors."""
    path = lake.create(
        "t", "id INT, kind STRING, n INT", "PARTITIONED BY (kind)", enableDeletionVectors=vectors
    )
    book = rulebook([table("t", path, key=("id",))], [event(k, "t", k) for k in KINDS])
    loop = Loop(book, needs(book, "id", "n"), DeltaFeed(lake.spark))
    loop.drain()

    lake.sql("INSERT INTO {t} VALUES (1, 'a', 10), (2, 'a', 20), (3, 'b', 30), (3, 'b', 30)")
    lake.sql("DELETE FROM {t} WHERE id = 3")
    first = loop.step()
    assert rows(first, "insert") == Counter({(1, 10): 1, (2, 20): 1, (3, 30): 2})
    assert rows(first, "delete") == Counter({(3, 30): 2})
    assert rows(first, "update") == Counter()
    assert rows(first, "change") == rows(first, "insert") + rows(first, "delete")

    lake.sql("UPDATE {t} SET n = 11 WHERE id = 1")
    lake.sql(
        "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 'a', 11), (2, 'a', 21), (4, 'c', 40) "
        "AS s(id, kind, n)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    lake.sql("OPTIMIZE {t}")
    second = loop.step()
    assert rows(second, "update") == Counter({(1, 11): 1, (2, 21): 1})  # 1 stays 11: no update
    assert rows(second, "insert") == Counter({(4, 40): 1})
    assert rows(second, "delete") == Counter()

    lake.sql("INSERT OVERWRITE {t} VALUES (2, 'a', 21), (5, 'b', 50)")
    third = loop.step()
    assert rows(third, "delete") == Counter({(1, 11): 1, (2, 21): 1, (4, 40): 1})
    assert rows(third, "insert") == Counter({(2, 21): 1, (5, 50): 1})
    assert loop.step() is None
