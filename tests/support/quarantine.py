"""A Spark that is always well, and quarantines over it."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.engine.core.ledger import Suspects
from tidegate.engine.quarantine.quarantine import Health, Quarantine
from tidegate.engine.quarantine.turns import Gate
from tidegate.rules.errors import EngineError


class Healthy:
    """A Spark that never ends by itself. What says that it has ended is believed."""

    def lost(self, error: BaseException | None = None) -> EngineError | None:
        known = isinstance(error, EngineError) and error.code == "spark-lost"
        return error if known else None

    def overrun(self) -> tuple[bool, EngineError | None]:
        return False, None


def quarantine(
    records: Suspects,
    health: Health | None = None,
    most: int = 10,
    stopped: Callable[[], bool] = lambda: False,
) -> Quarantine:
    """With a gate of its own."""
    return Quarantine(records, Gate(), health or Healthy(), most, stopped)
