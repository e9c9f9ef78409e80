"""Named points at which a test makes the engine fail, as a crash or a full disk would.

`TIDEGATE_FAILPOINTS="name=exit[:nth][xtimes],.."` arms them when the process starts. The nth pass
through `failpoint(name)` is the first that does what the kind says (default 1), `times` passes do
it in all (default 1). An unarmed failpoint only looks at an empty mapping.

Example: `settle.before=raise:3x2` raises at the third and the fourth pass.

    exit   ends the process at once, without any clean-up
    raise  raises
    late   raises after the store's next commit, as if the answer was lost
    delay  waits DELAY_SECONDS, then goes on
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.rules.errors import EngineError

VARIABLE = "TIDEGATE_FAILPOINTS"
EXIT_CODE = 86
DELAY_SECONDS = 0.2
KINDS = ("exit", "raise", "late", "delay")
COMMITTED = "transaction.committed"
_ITEM = re.compile(
    rf"(?P<name>[\w.]+)=(?P<kind>{'|'.join(KINDS)})(:(?P<nth>[1-9]\d*))?(x(?P<times>[1-9]\d*))?"
)


class FailpointError(Exception):
    """Raised by an armed failpoint: an error that nobody expects."""


@dataclass
class _Armed:
    kind: str
    passes_left: int
    times_left: int


def failpoint(name: str) -> None:
    """Fail here if the point `name` is armed and this is its pass."""
    if _armed:
        _pass(name)


def arm(text: str) -> None:
    """Arm the points that `text` names, and no others.

    Raises EngineError `bad-failpoints` naming the item that cannot be read.
    """
    _armed.clear()
    for item in filter(None, (part.strip() for part in text.split(","))):
        if not (match := _ITEM.fullmatch(item)):
            raise EngineError(
                "bad-failpoints",
                f"{VARIABLE}: {item!r} is no failpoint",
                "write name=exit, name=raise, name=late or name=delay, with :3 behind it for the "
                "third pass, x2 for two passes, comma separated",
            )
        nth, times = int(match["nth"] or 1), int(match["times"] or 1)
        _armed[match["name"]] = _Armed(match["kind"], nth - 1, times)


def _pass(name: str) -> None:
    kind = _kind_now(name)
    if kind == "exit":
        _end_process(EXIT_CODE)
    elif kind == "delay":
        _wait(DELAY_SECONDS)
    elif kind == "late" and name != COMMITTED:
        _armed[COMMITTED] = _Armed("raise", 0, 1)
    elif kind is not None:
        raise FailpointError(f"failpoint {name}")


def _kind_now(name: str) -> str | None:
    """Count this pass through a point. Returns what it does, None: nothing."""
    with _lock:
        point = _armed.get(name)
        if point is None:
            return None
        if point.passes_left:
            point.passes_left -= 1
            return None
        point.times_left -= 1
        if not point.times_left:
            del _armed[name]
        return point.kind


_end_process: Callable[[int], object] = os._exit
_wait: Callable[[float], object] = time.sleep
_armed: dict[str, _Armed] = {}
_lock = threading.Lock()
arm(os.environ.get(VARIABLE, ""))
