"""`simulate` marks what `run` would damp, the same however the trace is cut."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.engine.replay import damping
from tidegate.engine.replay.simulate import simulate
from tidegate.rules.errors import InputError

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


LEVELS = """\
rulebook: hot
events: {temp: {signal: {device: bigint, level: double}}}
rules:
  alarm:
    on: temp
    per: device
    if: max(level) < 1000
    hysteresis: {fire: max(level) > 80, rearm: 100 / max(level) > 2}
"""


@pytest.mark.parametrize("bucket", [None, 1, 3])
def test_hysteresis_is_asked_with_if(tmp_path: Path, bucket: int | None) -> None:
    levels = [70, 90, 95, 2000, 60, 30, 90, 0, 85]
    lines = [{"event": "temp", "time": n, "device": 1, "level": x} for n, x in enumerate(levels)]
    (tmp_path / "book.yaml").write_text(LEVELS)
    (tmp_path / "trace.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    out = io.BytesIO()
    simulate(
        tmp_path / "book.yaml", tmp_path / "trace.jsonl", out=out, bucket=bucket, conditions=True
    )
    said = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(one["condition"], one.get("damped")) for one in said] == [
        ("held", "hysteresis"),
        ("held", None),
        ("held", "hysteresis"),
        ("failed", None),  # the if
        ("held", "hysteresis"),
        ("held", "hysteresis"),  # armed again
        ("held", None),
        ("dead", None),  # rearm divides by zero
        ("held", "hysteresis"),
    ]


def test_a_level_that_needs_spark_is_refused(tmp_path: Path) -> None:
    (tmp_path / "book.yaml").write_text(LEVELS.replace("max(level) > 80", "stddev(level) > 80"))
    (tmp_path / "trace.jsonl").write_text("")
    with pytest.raises(InputError, match="the condition of rule alarm needs Spark"):
        simulate(
            tmp_path / "book.yaml", tmp_path / "trace.jsonl", out=io.BytesIO(), conditions=True
        )
