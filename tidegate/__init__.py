"""tidegate: event-condition-action rules on Delta tables.

Public: `Engine` (one rulebook on its tables), `Engines` (several), `backtest` (one over the past of
its tables), `detect` (the detector alone), `load` and `parse` (the language alone). The subpackages
are the repository's top-level folders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.engine.app import Engine, Engines, backtest, detect
    from tidegate.rules import load, parse

__all__ = ["Engine", "Engines", "backtest", "detect", "load", "parse"]


def __getattr__(name: str) -> Any:
    """Imported when first used: `detect` of a table needs no Spark, `load` not even
    Arrow."""
    if name in ("Engine", "Engines", "backtest", "detect"):
        from tidegate.engine import app

        return getattr(app, name)
    if name in ("load", "parse"):
        from tidegate import rules

        return getattr(rules, name)
    raise AttributeError(f"module 'tidegate' has no attribute {name!r}")
