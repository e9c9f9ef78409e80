"""What a rulebook does and how far behind it is, in words, from its status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.engine.core.lifecycle import CATCHING_UP, LOOKED, WAITING
from tidegate.engine.core.text.layout import age_text, counted, time_text


def state_text(status: Mapping[str, Any]) -> str:
    """`idle (process 71 on m1)`, `stopped: table t is gone`, `never run yet`."""
    if holder := status["lease_holder"]:
        waits = f", {process_text(status['standby'])} is its standby" if status["standby"] else ""
        return f"{_activity(status)} ({process_text(holder)}{waits})"
    if status["stopped"]:
        return f"stopped: {status['stopped']}"
    if status["vanished"]:
        return "stopped: its process ended without notice (killed?); `tidegate run` goes on"
    return "stopped (not running); `tidegate run` goes on" if status["bucket"] else "never run yet"


def behind_text(status: Mapping[str, Any]) -> str | None:
    """How far behind the engine is, where its state does not tell."""
    lag = status["lag"]
    if status["state"] in LOOKED or not (status["lease_holder"] or status["bucket"]):
        return None
    if lag["commits"] is None:
        return "behind: not known yet"
    some = _waiting(lag)
    if not some and not lag["seconds"]:
        return None
    said = f"behind: {some or 'what was due'}, the oldest of {lag_text(lag['seconds'])} ago"
    as_of = lag["as_of"]
    return f"{said}, as of {time_text(as_of, status['timezone'])}" if as_of else said


def detected_text(status: Mapping[str, Any]) -> str | None:
    """Where the last bucket was detected, and why; None before the first one."""
    if (detected := status["detected"]) is None:
        return None
    because = f": {detected['because']}" if detected["because"] else ""
    return f"the last bucket was detected by the {detected['by']}{because}"


def lag_text(seconds: float | None) -> str:
    """An age, which may not be known."""
    return "not known" if seconds is None else age_text(seconds)


def process_text(holder: str) -> str:
    """`process 71 on m1`: the holder of a lease."""
    machine, _, process = holder.rpartition("/")[0].rpartition("/")
    return f"process {process} on {machine}" if process else holder


def _activity(status: Mapping[str, Any]) -> str:
    """`starting: checking tables and SQL`, `catching up: 214 commits, the oldest of 12 min ago;
    asking conditions, 3 of 12`."""
    state, behind = status["state"], status["behind"]
    if state == WAITING:
        return f"waiting for {status['doing']}"
    if state != CATCHING_UP:
        return f"{state}: {status['doing']}" if status["doing"] else str(state)
    said = ["what was due"]
    if some := _waiting(behind):
        said = [f"{some}, the oldest of {age_text(behind['seconds'])} ago"]
    if since := status["losing_ground_since"]:
        said.append(f"losing ground since {time_text(since, status['timezone'])}")
    if status["doing"]:
        said.append(status["doing"])
    return f"{state}: {'; '.join(said)}"


def _waiting(counts: Mapping[str, Any]) -> str:
    """`214 commits, 1 signal`."""
    nouns = (noun for noun in ("commit", "signal") if counts[f"{noun}s"])
    return ", ".join(counted(counts[f"{noun}s"], noun) for noun in nouns)
