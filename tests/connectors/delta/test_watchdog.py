"""A Java that answers no more is ended, and no other."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from tidegate.connectors.delta.watchdog import Watchdog


@pytest.fixture
def java() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


def test_a_java_that_is_silent_is_ended(java: subprocess.Popen[bytes]) -> None:
    watchdog = Watchdog(threading.Event().wait, java, 0.2, 0.05)
    assert java.wait(60) != 0
    watchdog.close()


def test_a_java_that_answers_goes_on_whatever_it_says(java: subprocess.Popen[bytes]) -> None:
    asked = threading.Semaphore(0)

    def answers() -> None:
        asked.release()
        raise RuntimeError("busy")

    watchdog = Watchdog(answers, java, 60, 0.01)
    for _ in range(5):
        assert asked.acquire(timeout=60)
    assert java.poll() is None
    watchdog.close()


def test_one_that_is_watched_no_more_is_left_alone(java: subprocess.Popen[bytes]) -> None:
    asked = threading.Event()

    def silent() -> None:
        asked.set()
        threading.Event().wait()

    watchdog = Watchdog(silent, java, 0.5, 0.01)
    assert asked.wait(60)
    watchdog.close()
    with pytest.raises(subprocess.TimeoutExpired):
        java.wait(1.5)
