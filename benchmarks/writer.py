"""The other process of the latency figure: appends one row for each table named on stdin."""

from __future__ import annotations

import sys

from tidegate.connectors.delta.session import start_session


def main() -> None:
    """Says `ready`, then `done` after each commit; ends with stdin."""
    spark = start_session("writer", {"spark.driver.memory": "1g"})
    print("ready", flush=True)
    for number, line in enumerate(sys.stdin):
        row = spark.range(number, number + 1).selectExpr("id % 10000 AS k", "1.0D AS amount")
        row.write.format("delta").mode("append").save(line.strip())
        print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
