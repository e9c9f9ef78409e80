"""The poll that wakes the loop."""

from __future__ import annotations

import logging
import subprocess
import sys
import time

import pytest

from tidegate.connectors.scheduler import Wakeup


def test_a_poll_left_out_on_a_busy_machine_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with Wakeup(0.01) as wakeup:
        with wakeup._event._cond:  # nothing can be set meanwhile
            time.sleep(0.2)
        wakeup.wait(5)
    assert not caplog.records


def test_stop_ends_a_wait_at_once_and_for_good() -> None:
    with Wakeup(3600) as wakeup:
        wakeup.stop()
        wakeup.wait()
        wakeup.wait()
        assert wakeup.stopped


def test_polls_go_on_in_a_thread_that_outlives_the_main_one() -> None:
    script = (
        "import threading\n"
        "from tidegate.connectors.scheduler import Wakeup\n"
        "def loop():\n"
        "    threading.main_thread().join()\n"
        "    with Wakeup(0.01) as wakeup:\n"
        "        before = wakeup._event\n"
        "        for _ in range(3): assert before.wait(20); wakeup.wait(20)\n"
        "    print('three polls')\n"
        "threading.Thread(target=loop).start()\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("three polls\n", "")


def test_a_timer_that_is_due_in_a_thousand_years_lets_the_next_poll_come() -> None:
    with Wakeup(0.01) as wakeup:
        for years in (300, 1_000, 10_000):
            begun = time.monotonic()
            wakeup.wait(years * 365 * 86_400.0)
            assert time.monotonic() - begun < 5
