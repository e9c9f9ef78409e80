"""The engine. Public: `Engine` (one rulebook on its tables) and `detect` (the detector alone)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.app import Engine
    from engine.detector.detect import detect

__all__ = ["Engine", "detect"]


def __getattr__(name: str) -> Any:
    """Imported when first used: `detect` needs no Spark, the command line neither."""
    if name == "Engine":
        from engine.app import Engine

        return Engine
    if name == "detect":
        from engine.detector.detect import detect

        return detect
    raise AttributeError(f"module 'engine' has no attribute {name!r}")
