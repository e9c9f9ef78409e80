"""The machine's clocks."""

from __future__ import annotations

import time


class SystemClock:
    """Implements `engine.core.ports.Clock`, in microseconds."""

    def wall(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> int:
        return time.monotonic_ns() // 1000
