"""The tables that actions write, made ready while nothing waits for them."""

from __future__ import annotations

import threading
from collections.abc import Collection

from tidegate.engine.core.ports import Sink

_CLOSING_SECONDS = 2.0


class Targets:
    """What a statement has to know of its target changes with every commit to it. It is looked up
    in a thread, for one table after the other, as soon as nothing is left to do and while a bucket
    is read. Not for use by several threads."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._written: set[str] = set()
        self._thread: threading.Thread | None = None

    def wrote(self, tables: Collection[str]) -> None:
        """What is known of these tables is of no use any more."""
        self._written.update(tables)

    def make_ready(self) -> None:
        """Start to look at what was written since it was last looked at; returns at once."""
        if self._written and (self._thread is None or not self._thread.is_alive()):
            given = (frozenset(self._written),)
            self._thread = threading.Thread(target=self._sink.ready, args=given, daemon=True)
            self._thread.start()
            self._written.clear()

    def close(self) -> None:
        """Wait for what is under way, but not for long: nothing depends on it."""
        if self._thread is not None:
            self._thread.join(_CLOSING_SECONDS)
