"""Makes running engines out of settings and files. Only this room and the demo import
connectors."""

from tidegate.engine.app.engine import Engine
from tidegate.engine.app.engines import Engines, stop_on_signals

__all__ = ["Engine", "Engines", "stop_on_signals"]
