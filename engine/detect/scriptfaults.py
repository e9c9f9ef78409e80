"""What becomes of scripts' faults: their emissions of `$error` (design/eventscript.md 5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tidegate.engine.core.state import Parked
from tidegate.engine.core.text.times import python_values
from tidegate.engine.core.values import Rejected
from tidegate.engine.detect.scripts.emissions import ERROR_NAME, Emissions
from tidegate.rules import model
from tidegate.rules.errors import EngineError


def stop_at_fault(script: model.Script, found: Emissions) -> None:
    """Raises `EngineError('script-fault')` for the first fault under `on_error: stop`."""
    if script.on_error != "stop" or ERROR_NAME not in found.values:
        return
    fault = found.values[ERROR_NAME][0].as_py()
    raise EngineError(
        "script-fault",
        f"script {script.name}: {_reason(fault)}; `on_error: stop`",
        "mend the script, or say `on_error: log` to go on with a row in `rejected`",
    )


def kept_faults(script: model.Script, found: Emissions, limits: model.Settings) -> list[Rejected]:
    """The rows of `rejected` under `on_error: log`; one that counts those past the limit."""
    if script.on_error != "log" or ERROR_NAME not in found.values:
        return []
    most, count = limits.script_errors_kept_max, len(found.values[ERROR_NAME])
    source = f"script {script.name}"
    rows = [
        Rejected(fault["event"] or script.name, source, _reason(fault), row, fault["message"])
        for fault, row in _faults(found, most)
    ]
    if count > most:
        reason = f"{count - most:,} more faults (setting script_errors_kept_max)"
        rows.append(Rejected(script.name, source, reason, {}))
    return rows


def runaway(script: model.Script, found: Emissions, reached: int) -> Parked:
    """A script whose last emission is that a transition has run away."""
    fault = found.values[ERROR_NAME][-1].as_py()
    return Parked(script.name, fault["message"], "mend the script, or raise the limit", reached)


def _faults(found: Emissions, most: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The first faults, and what is told of each: the key of its instance, the instant."""
    at = np.flatnonzero(found.output == len(found.outputs) - 1)[:most]
    keys = [python_values(found.keys.column(name).take(at)) for name in found.keys.column_names]
    for number, fault in enumerate(found.values[ERROR_NAME].slice(0, most).to_pylist()):
        key = (column[number] for column in keys)
        yield fault, {**dict(zip(found.keys.column_names, key, strict=True)), "at": fault["at"]}


def _reason(fault: dict[str, Any]) -> str:
    """Why, without values of the user's tables."""
    event = f" at {fault['event']}" if fault["event"] else ""
    place = f", {fault['place']}" if fault["place"] else ""
    return f"{fault['kind']}{event}{place}"
