"""Running `simulate` on rulebooks and histories of the reference."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.reference.evaluate import Line, canonical, seconds
from tidegate.engine.replay.simulate import run
from tidegate.engine.replay.trace import read
from tidegate.rules.model import Rulebook


def write(history: Iterable[Line], path: Path) -> Path:
    """A history as a trace, lines as they come."""
    lines = ({"event": event, "time": seconds(time), **fields} for event, time, fields in history)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def simulated(
    book: Rulebook,
    history: Iterable[Line],
    folder: Path,
    bucket: int | None = None,
    until: int | None = None,
) -> list[dict[str, Any]]:
    """What `simulate` prints, in its order."""
    out = io.BytesIO()
    trace = read(write(history, folder / "trace.jsonl"), book, until, folder)
    run(book, trace, bucket, out, until)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def canonical_simulated(*args: Any, **options: Any) -> list[str]:
    return canonical(simulated(*args, **options))
