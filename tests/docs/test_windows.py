"""What the page on windows says of its rules is what they do."""

from __future__ import annotations

import io
import json
from pathlib import Path

from tests.docs.pages import blocks
from tidegate.engine.replay.simulate import simulate

BOOK = next(text for place, text in blocks("yaml") if place.startswith("windows"))


def test_the_rules_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "traffic.yaml").write_text(BOOK)
    lines = [
        {"event": "req", "time": "2026-03-29T00:04:59.999999", "host": "a"},
        {"event": "req", "time": "2026-03-29T00:05:00", "host": "a"},
        {"event": "click", "time": "2026-03-29T23:10:00", "customer": 7},
        {"event": "click", "time": "2026-03-29T23:40:00", "customer": 7},
        {"event": "click", "time": "2026-03-30T00:10:00.000001", "customer": 7},
    ]
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    out = io.BytesIO()
    simulate(tmp_path / "traffic.yaml", trace, out=out)
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    ends = [(one["rule"], one["end"], len(one["constituents"])) for one in found]
    assert ends == [
        ("busy", "2026-03-28T23:05:00Z", 1),  # five minutes of UTC
        ("busy", "2026-03-28T23:10:00Z", 1),
        ("daily", "2026-03-29T22:00:00Z", 4),  # a day of 23 hours in Berlin
        ("bounced", "2026-03-29T22:10:00Z", 2),  # its `if` is not asked
        ("visit", "2026-03-29T22:10:00Z", 2),
        ("bounced", "2026-03-29T22:40:00.000001Z", 1),
        ("visit", "2026-03-29T22:40:00.000001Z", 1),
        ("daily", "2026-03-30T22:00:00Z", 1),
    ]
