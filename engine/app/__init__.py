"""Makes running engines out of settings and files. Only this room and the demo import
connectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.connectors.delta.schemas import logged_schema
    from tidegate.engine.app.engine import Engine
    from tidegate.engine.app.engines import Engines, stop_on_signals

__all__ = ["Engine", "Engines", "logged_schema", "stop_on_signals"]


def __getattr__(name: str) -> Any:
    """Imported when first used: `logged_schema` needs no Spark."""
    if name == "Engine":
        from tidegate.engine.app.engine import Engine

        return Engine
    if name in ("Engines", "stop_on_signals"):
        from tidegate.engine.app import engines

        return getattr(engines, name)
    if name == "logged_schema":
        from tidegate.connectors.delta.schemas import logged_schema

        return logged_schema
    raise AttributeError(f"module 'tidegate.engine.app' has no attribute {name!r}")
