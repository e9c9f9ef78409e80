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
from tidegate.engine.core.text.logs import STAGES, Stages

NAMES = ("idle", *STAGES)


def stage_in(file: Path) -> str:
    """What the engine does, or did when it was killed."""
    return NAMES[file.read_bytes()[0]]


def main() -> None:
    with open(sys.argv[1], "r+b") as file:
        told = mmap.mmap(file.fileno(), 1)
    at = Stages.at

    @contextmanager
    def telling(stages: Stages, name: str) -> Iterator[None]:
        told[0] = NAMES.index(name)
        try:
            with at(stages, name):
                yield
        finally:
            told[0] = 0

    Stages.at = telling  # type: ignore[method-assign]
    sys.argv = ["tidegate", *sys.argv[2:]]
    cli.main()


if __name__ == "__main__":
    main()
