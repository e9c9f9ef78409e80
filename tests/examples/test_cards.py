"""The example `cards`: its README is true."""

from __future__ import annotations

from pathlib import Path

from tidegate.engine.replay.compare import compare
from tidegate.rules.model import Context

CARDS = Path(__file__).parent.parent.parent / "rules" / "examples" / "cards"


def test_what_the_readme_says_of_each_context() -> None:
    shown = compare(CARDS / "cards.yaml", CARDS / "day.jsonl", None, None)
    declined = {
        column.context: [
            [o.time // 1_000_000 % 3600 for o in found.constituents if o.event == "declined"]
            for found in column.found
        ]
        for column in shown.columns
    }
    assert declined == {
        Context.RESTRICTED: [[40, 65], [40, 65]],
        Context.RECENT: [[40, 65]],
        Context.CHRONICLE: [[0, 40]],
        Context.CONTINUOUS: [[0, 40], [40, 65]],
        Context.CUMULATIVE: [[0, 40, 65]],
        Context.UNRESTRICTED: [[0, 40], [0, 65], [40, 65]] * 2,
    }
