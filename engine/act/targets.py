"""Looks up in advance what statements have to know of their targets."""

from __future__ import annotations

import threading
from collections.abc import Collection

from tidegate.engine.core.ports import Sink

_CLOSING_SECONDS = 2.0


class Targets:
    """Looks up in advance what a statement has to know of its target, which every commit changes.
    A thread looks at one table after the other while the engine is idle or reads a bucket. Not for
    use by several threads."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._written: set[str] = set()
        self._thread: threading.Thread | None = None

    def wrote(self, tables: Collection[str]) -> None:
        """Say that these tables have changed."""
        self._written.update(tables)

    def make_ready(self) -> None:
        """Start to look at the tables that have changed since the last look. Returns at once."""
        if self._written and (self._thread is None or not self._thread.is_alive()):
            given = (frozenset(self._written),)
            self._thread = threading.Thread(target=self._sink.ready, args=given, daemon=True)
            self._thread.start()
            self._written.clear()

    def close(self) -> None:
        """Wait for the thread, but not for long: nothing depends on it."""
        if self._thread is not None:
            self._thread.join(_CLOSING_SECONDS)
