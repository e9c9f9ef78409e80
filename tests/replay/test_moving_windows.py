"""`simulate` asks windows over values of the declared types."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tidegate.engine.replay.simulate import simulate

BOOK = """
rulebook: kiln
events:
  reading: {signal: {k: bigint, celsius: double, cost: "decimal(6,2)"}}
rules:
  hot: {on: {over: {window: 10 s, of: reading, fire: avg(celsius) > 80}}, per: k}
  dear: {on: {over: {window: 10 s, of: reading, fire: sum(cost) = 0.2}}}
  slide: {on: {window: 10 s, every: 5 s, of: reading}, per: k}
"""


@pytest.mark.parametrize("bucket", [None, 1])
def test_values_have_their_types(tmp_path: Path, bucket: int | None) -> None:
    """80 of the trace is a double, and "0.10" a decimal."""
    (tmp_path / "kiln.yaml").write_text(BOOK)
    lines = [
        {"event": "reading", "time": 1, "k": 1, "celsius": 80, "cost": "0.10"},
        {"event": "reading", "time": 2, "k": 1, "celsius": 82, "cost": "0.10"},
    ]
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    out = io.BytesIO()
    simulate(tmp_path / "kiln.yaml", trace, out=out, bucket=bucket)
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    ends = [(one["rule"], one["end"], len(one["constituents"])) for one in found]
    assert ends == [("dear", 2, 2), ("hot", 2, 2), ("slide", 5, 2), ("slide", 10, 2)]
