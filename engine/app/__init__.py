"""Makes running engines out of settings and files. Only this room and the demo import
connectors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.connectors.delta.schemas import logged_schema
    from tidegate.engine.app.engine import Engine
    from tidegate.engine.app.engines import Engines, stop_on_signals
    from tidegate.engine.app.frames import detect
    from tidegate.engine.app.past import backtest
    from tidegate.engine.app.trial import spark_worlds

__all__ = [
    "Engine",
    "Engines",
    "backtest",
    "detect",
    "logged_schema",
    "spark_worlds",
    "stop_on_signals",
]

_HOMES = {
    "Engine": "tidegate.engine.app.engine",
    "Engines": "tidegate.engine.app.engines",
    "backtest": "tidegate.engine.app.past",
    "detect": "tidegate.engine.app.frames",
    "logged_schema": "tidegate.connectors.delta.schemas",
    "spark_worlds": "tidegate.engine.app.trial",
    "stop_on_signals": "tidegate.engine.app.engines",
}


def __getattr__(name: str) -> Any:
    """Imported when first used: `logged_schema` needs no Spark, nor does `detect` of a table."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tidegate.engine.app' has no attribute {name!r}")
