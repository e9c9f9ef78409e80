"""How far a long simulation is, told on stderr."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from tidegate.engine.core.text.layout import counted

_LIVE_SECONDS = (1.0, 0.2)  # the first line after, and then every
_PLAIN_SECONDS = (10.0, 10.0)


class Progress:
    """On a terminal one line that is written over and taken away at the end; elsewhere a line now
    and then. Short runs tell nothing."""

    def __init__(self, to: TextIO | None = None) -> None:
        self._to = to or sys.stderr
        self._live = self._to.isatty()
        first, self._every = _LIVE_SECONDS if self._live else _PLAIN_SECONDS
        self._due = time.monotonic() + first
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live and self._shown:
            print("\r\x1b[K", end="", file=self._to, flush=True)

    def read(self, lines: int) -> None:
        """So many lines have been read and checked."""
        self._say(f"read {counted(lines, 'line')}")

    def detected(self, lines: int, count: int) -> None:
        """Detection is over with so many of the lines."""
        self._say(f"detected over {lines:,} of {counted(count, 'line')} ({lines / count:.0%})")

    def _say(self, text: str) -> None:
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + self._every
        self._shown = True
        if self._live:
            print(f"\r\x1b[K{text}", end="", file=self._to, flush=True)
        else:
            print(text, file=self._to, flush=True)
