"""The demo's other process, as the demo starts, commands and ends it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from tidegate.rules.errors import EngineError

START_SECONDS_MAX = 180.0


class OtherProcess:
    """Runs `engine.cli.demo.writer`. Each line that is sent to it makes one commit. It is ended
    with the `with` block."""

    def __init__(self, folder: Path) -> None:
        self._log = tempfile.TemporaryFile(  # noqa: SIM115, closed by __exit__
            "w+", encoding="utf-8", errors="replace"
        )
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "tidegate.engine.cli.demo.writer", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._stdin: IO[str] = self._process.stdin  # type: ignore[assignment]
        self._stdout: IO[str] = self._process.stdout  # type: ignore[assignment]
        self._reader = ThreadPoolExecutor(1)
        self._said = self._reader.submit(self._stdout.readline)

    def __enter__(self) -> OtherProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.shutdown()
        self._log.close()

    def wait_ready(self) -> None:
        """Returns when the tables stand. Raises EngineError `demo-writer`."""
        try:
            self._check(START_SECONDS_MAX)
        except TimeoutError:
            raise EngineError(
                "demo-writer",
                f"the demo's other process made no tables in {START_SECONDS_MAX:.0f} s",
                "is the machine busy?",
            ) from None

    def commit(self) -> None:
        """Ask for the next commit. Returns at once."""
        self._stdin.write("\n")
        self._stdin.flush()
        self._said = self._reader.submit(self._stdout.readline)

    def committed(self) -> bool:
        """Whether the last requested commit is done. Raises EngineError `demo-writer`."""
        if not self._said.done():
            return False
        self._check()
        return True

    def _check(self, seconds: float | None = None) -> None:
        """Wait for the line that answers. Raises EngineError where there is none, TimeoutError."""
        if not self._said.result(seconds):
            self._log.seek(0)
            raise EngineError(
                "demo-writer",
                "the demo's other process ended early",
                "its last words: " + self._log.read().strip()[-2000:],
            )
