"""`simulate` marks what `run` would damp, the same however the trace is cut."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.engine.replay import damping
from tidegate.engine.replay.simulate import simulate

BOOK = """\
rulebook: hot
tables: {t: {path: /t}}
events:
  temp: {on: insert, table: t}
  told: {signal: {}}
rules:
  pair:
    on: temp ; temp within 1 h
    context: chronicle
    per: device
    dedupe: {by: [note, device], within: 20 s}
    hysteresis: {fire: max(level) > 80, rearm: max(level) < 70}
    do: {signal: told}
  each: {on: temp, cooldown: 3 s, throttle: 2 per 10 s, do: {signal: told}}
  level: {on: temp, hysteresis: {fire: max(level) > 80, rearm: max(level) < 70}, do: {signal: told}}
"""
NOTES = ["a", "b", "a", "b", "b", "a", 1, 1.0, 1, 1, None, "a", "a", "b", "a", "b", "x", "y", "b"]


def printed(folder: Path, notes: list[Any], bucket: int | None) -> list[dict[str, Any]]:
    (folder / "book.yaml").write_text(BOOK)
    lines = [
        {"event": "temp", "time": 2 * n, "device": 1 + n // 16, "level": 99, "note": note}
        for n, note in enumerate(notes)
    ]
    (folder / "trace.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    out = io.BytesIO()
    simulate(folder / "book.yaml", folder / "trace.jsonl", out=out, bucket=bucket)
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("forgets_from", [1, 10_000])
def test_lines_are_marked_alike_for_any_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgets_from: int
) -> None:
    monkeypatch.setattr(damping, "FORGOTTEN_FROM", forgets_from)
    whole = printed(tmp_path, NOTES, None)
    assert whole == printed(tmp_path, NOTES, 1) == printed(tmp_path, NOTES, 5)
    pairs = [(line["start"], line.get("damped")) for line in whole if line["rule"] == "pair"]
    assert pairs == [
        (0, None),  # a, b
        (4, "dedupe"),  # a, b
        (8, None),  # b, a: not the same the other way round
        (12, None),  # 1, 1.0
        (16, "dedupe"),  # 1, 1
        (20, None),  # nothing, a
        (24, None),  # a, b again, 20 s after the first
        (28, "dedupe"),
        (32, None),
    ]
    each = [line.get("damped") for line in whole if line["rule"] == "each"]
    assert each[:8] == [None, "cooldown", None, "cooldown", "throttle", None, "cooldown", None]
    assert not any("damped" in line for line in whole if line["rule"] == "level")
    marked = {(line["rule"], "damped" in line, *[*line][5:]) for line in whole}
    assert marked == {  # hysteresis is not asked
        ("pair", False, "condition"),
        ("pair", True, "damped", "condition"),
        ("each", False),
        ("each", True, "damped"),
        ("level", False, "condition"),
    }
