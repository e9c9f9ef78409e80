"""Settings and files -> objects that run: the only importer of `connectors`."""

from tidegate.engine.app.engine import Engine
from tidegate.engine.app.engines import Engines, stop_on_signals

__all__ = ["Engine", "Engines", "stop_on_signals"]
