"""Pages look for as long as it takes: what is found must not depend on the machine."""

from __future__ import annotations

import math

import pytest

from tidegate.engine.control.console import firings


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firings, "LOOK_SECONDS", math.inf)
