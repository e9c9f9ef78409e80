"""This machine's clock against the store's (G3)."""

from __future__ import annotations

from tidegate.connectors.clock import SystemClock
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook


def check_clock(store: SqlStore, book: Rulebook) -> None:
    """The two must agree; SQLite has this machine's. Raises EngineError `clock-skew`."""
    skew_seconds = abs(store.wall() - SystemClock().wall()) / 1e6
    if skew_seconds > book.settings.skew_max_seconds:
        raise EngineError(
            "clock-skew",
            f"this machine's clock and the store's differ by {skew_seconds:.1f} s, allowed are "
            f"{book.settings.skew_max_seconds} (skew_max_seconds)",
            "set the machine's clock right (NTP), then run again",
        )
