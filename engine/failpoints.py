"""Named points at which a test makes the engine fail, as a crash or a full disk would.

`TIDEGATE_FAILPOINTS="name=exit[:nth],name=raise[:nth]"` arms them when the process starts: the
nth pass (default the first) through `failpoint(name)` ends the process at once, without any
clean-up, or raises. Unarmed, a failpoint is one look at an empty mapping.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from tidegate.rules.errors import EngineError

VARIABLE = "TIDEGATE_FAILPOINTS"
EXIT_CODE = 86
_ITEM = re.compile(r"(?P<name>[\w.]+)=(?P<action>exit|raise)(:(?P<nth>[1-9]\d*))?")


class FailpointError(Exception):
    """Raised by an armed failpoint: an error that nobody expects."""


@dataclass
class _Armed:
    action: str
    passes_left: int


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
                "write name=exit, name=raise or name=exit:3 (the third pass), comma separated",
            )
        _armed[match["name"]] = _Armed(match["action"], int(match["nth"] or 1))


def _pass(name: str) -> None:
    point = _armed.get(name)
    if point is None:
        return
    point.passes_left -= 1
    if point.passes_left == 0:
        if point.action == "exit":
            os._exit(EXIT_CODE)
        raise FailpointError(f"failpoint {name}")


_armed: dict[str, _Armed] = {}
arm(os.environ.get(VARIABLE, ""))
