"""Windows that stand alone as `on:`, straight from their definitions (windows 2, 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.reference.meaning import World
from tests.reference.values import Instance
from tests.reference.windows import crossing, holding, session, sliding, tumbling
from tidegate.rules.expressions import windows as w

_KINDS: dict[type[w.Window], Callable[[Any, World], list[Instance]]] = {
    w.Tumbling: tumbling.detected,
    w.Session: session.detected,
    w.Sliding: sliding.detected,
    w.Crossing: crossing.detected,
    w.Holding: holding.detected,
}


def detected(window: w.Window, world: World, until: int | None) -> list[Instance]:
    """What a rule over this window detects, up to and including `until`."""
    found = _KINDS[type(window)](window, world)
    return [instance for instance in found if until is None or instance.end <= until]
