"""A backtest as JSON lines: one a firing, as `firings --json` prints it. There are no entries, and
no bucket: how the past is cut says nothing."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from tidegate.engine.replay.backtest.model import Backtest
from tidegate.engine.store.firings import rule_firings


def lines(found: Backtest) -> Iterator[dict[str, Any]]:
    """The firings in order of (end, rule)."""
    whole = sorted(found.whole.items())
    streams = (rule_firings({}, fired, (), None, None) for _, fired in whole)
    for _, firing in heapq.merge(*streams, key=lambda timed: (timed[0], timed[1]["rule"])):
        del firing["entries"]
        yield firing
