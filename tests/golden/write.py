"""Writes a case as the text fixture that `load.py` reads: how a shrunk failing case is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.model import Rulebook, SignalEvent


def fixture(
    title: str,
    rulebook: Rulebook,
    history: Iterable[tuple[str, int, Mapping[str, Any]]],
    expected: Sequence[Mapping[str, Any]],
) -> str:
    """A block of text. `history` times are microseconds, `expected` is as `simulate` prints it."""
    lines = [f"title: {title}"]
    signals = [e for e in rulebook.events.values() if isinstance(e, SignalEvent)]
    lines += ["events: " + " ".join(f"{e.name}({','.join(e.fields)})" for e in signals)]
    for rule in rulebook.rules.values():
        lines += [f"rule {rule.name}: {format_expression(rule.pattern.on)}"]
        lines += [f"context {rule.name}: {rule.pattern.context}"]
        if rule.pattern.where:
            lines += [f"where {rule.name}: {rule.pattern.where.text}"]
        if rule.pattern.key_names:
            lines += [f"per {rule.name}: {' '.join(rule.pattern.key_names)}"]
    lines += ["history: " + " ".join(_occurrence(n, t / 1_000_000, p) for n, t, p in history)]
    lines += ["expect:", *("  " + detection_text(detection) for detection in expected)]
    return "\n".join(lines) + "\n"


def _occurrence(name: str, seconds: float, fields: Mapping[str, Any]) -> str:
    inside = ",".join(f"{column}={_text(value)}" for column, value in fields.items())
    return f"{name}@{seconds:g}" + (f"({inside})" if inside else "")


def _text(value: Any) -> str:
    return (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )


def detection_text(detection: Mapping[str, Any]) -> str:
    """One detection, as printed by `simulate`, as a line of a fixture."""
    key = " ".join(f"{name}={_text(value)}" for name, value in detection["key"].items())
    inside = " ".join(
        _occurrence(
            c["event"], c["time"], {k: v for k, v in c.items() if k not in ("event", "time")}
        )
        for c in detection["constituents"]
    )
    span = f"[{detection['start']:g},{detection['end']:g}]"
    return " ".join(filter(None, [detection["rule"], key, span])) + f" {{{inside}}}"
