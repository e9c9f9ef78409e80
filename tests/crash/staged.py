"""`tidegate run` as a user starts it, which writes what it is doing into a byte of a file: that
byte stays when it is killed.

    python -m tests.crash.staged FILE run RULEBOOK --store URL
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.engine.cli import main as cli
from tidegate.engine.core.text.logs import STAGES
from tidegate.engine.loop.loop import Loop

NAMES = ("idle", *STAGES)


def stage_in(file: Path) -> str:
    """What the engine does, or did when it was killed."""
    return NAMES[file.read_bytes()[0]]


def main() -> None:
    with open(sys.argv[1], "r+b") as file:
        told = mmap.mmap(file.fileno(), 1)
    timed = Loop._timed

    @contextmanager
    def telling(loop: Loop, stage: str) -> Iterator[None]:
        told[0] = NAMES.index(stage)
        try:
            with timed(loop, stage):
                yield
        finally:
            told[0] = 0

    Loop._timed = telling  # type: ignore[method-assign]
    sys.argv = ["tidegate", *sys.argv[2:]]
    cli.main()


if __name__ == "__main__":
    main()
