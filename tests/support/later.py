"""An engine whose clock is set on: hours pass at once, over real tables and a real store."""

from __future__ import annotations

import pytest

from tidegate.connectors.clock import SystemClock


class Later(SystemClock):
    """The system's clock, set on by `ahead` microseconds."""

    ahead = 0

    def wall(self) -> int:
        return super().wall() + self.ahead

    @classmethod
    def reach(cls, instant: int) -> None:
        """Set it on to an instant, microseconds."""
        cls.ahead = instant - SystemClock().wall()


def set_on(monkeypatch: pytest.MonkeyPatch) -> type[Later]:
    """The clock of every engine of this test."""
    monkeypatch.setattr("tidegate.engine.app.parts.SystemClock", Later)
    monkeypatch.setattr("tidegate.engine.app.engine.check_clock", lambda *_: None)
    monkeypatch.setattr(Later, "ahead", 0)
    return Later
