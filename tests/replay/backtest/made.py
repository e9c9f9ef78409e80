"""Backtests made by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from tidegate.engine.replay.backtest.model import Backtest, RuleFound, Span, firings_table

Row: TypeAlias = dict[str, Any]
SECOND = 1_000_000
DAY = 86_400 * SECOND
MARCH = 1_772_323_200 * SECOND  # 2026-03-01T00:00:00Z, a Sunday
APRIL = MARCH + 31 * DAY


def firing(rule: str, key: str | None, end: int, made_of: str = "", **others: Any) -> Row:
    """A firing of two seconds."""
    start = end - 2 * SECOND
    return {"rule": rule, "key": key, "start": start, "end": end, "made_of": made_of, **others}


def backtest(rows: Iterable[Row], /, *rules: RuleFound | str, **others: Any) -> Backtest:
    """Over March. Without `rules` those that have firings."""
    rows = sorted(rows, key=lambda r: (r["end"], r["rule"], r["key"] or "", r["start"]))
    named = rules or tuple(dict.fromkeys(row["rule"] for row in rows))
    found = tuple(RuleFound(rule) if isinstance(rule, str) else rule for rule in named)
    values = {"rulebook": "bank", "label": "bank.yaml", "span": Span(MARCH, APRIL)}
    return Backtest(**{**values, **others}, rules=found, firings=firings_table(rows))
