"""The guide's rulebook `watch`, as it stands there, on real tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.lake import Lake
from tidegate import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"


def test_the_rulebook_of_the_guide_runs(spark: SparkSession, tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(rulebook: watch\n.*?)```", GUIDE.read_text(), re.DOTALL)
    book = tmp_path / "watch.yaml"
    book.write_text(text)
    lake = Lake(spark, tmp_path / "lake")
    lake.create("accounts", "account_id BIGINT, balance DOUBLE, blocked BOOLEAN")
    lake.create(
        "transactions", "transaction_id BIGINT, account_id BIGINT, kind STRING, amount DOUBLE"
    )
    lake.create("alerts", "account_id BIGINT, at TIMESTAMP")
    lake.append("accounts", (7, 900.0, False), (8, 900.0, False))
    with Engine(book, spark=spark) as engine:
        engine.run_once()
        engine.signal("reported", account_id=7, by="ada")
        engine.run_once()
        lake.append("transactions", *((n, 7, "withdraw", 400.0) for n in range(3)))
        lake.sql("UPDATE {accounts} SET balance = 1 WHERE account_id = 7")
        engine.run(until_idle=True)
    assert [row.account_id for row in lake.sql("SELECT account_id FROM {alerts}")] == [7]
    assert lake.rows("accounts") == {(7, 1.0, True): 1, (8, 900.0, False): 1}
